/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs the hosts behind an answer have. */
#ifndef SYMBOL_SERVER_API_HOST_CPUS_H
#define SYMBOL_SERVER_API_HOST_CPUS_H

#include "symbol-server/store/samples.h"

/* Of those hosts that reported in one of the steps, together; 0: not known of all of them. */
uint64_t host_cpus(struct samples_store *store, const struct host_accounting *hosts,
		   uint32_t host_count, const struct host_step *steps, uint32_t step_count);

#endif
