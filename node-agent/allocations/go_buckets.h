/* SPDX-License-Identifier: Apache-2.0 */
/* What Go's runtime itself counts of a bucket of its heap profile, read out of the program's
 * memory: runtime/mprof.go of Go 1.12 to 1.26, struct bucket, then its stack, then struct
 * memRecord. */
#ifndef NODE_AGENT_ALLOCATIONS_GO_BUCKETS_H
#define NODE_AGENT_ALLOCATIONS_GO_BUCKETS_H

#include <stdint.h>

/* Sampled pieces in use of the bucket at that address. directory: /proc/PID. UINT64_MAX: not to be
 * had, or it looks like no bucket. */
uint64_t go_bucket_in_use(int directory, uint64_t bucket);

#endif
