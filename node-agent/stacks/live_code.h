/* SPDX-License-Identifier: Apache-2.0 */
/* Code that lies in no file, as a program's own compiler makes it, and what is told of it: read
 * from the process' memory, a page at a time, and kept for a moment. What a page had when a sample
 * was taken may be another thing by now; so seldom that it is no matter where code is only looked
 * at to see whether a call is there. Bounded in pages, and in reads a second. */
#ifndef NODE_AGENT_STACKS_LIVE_CODE_H
#define NODE_AGENT_STACKS_LIVE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_code;

/* reads: so many pages a second. NULL: no memory. */
struct live_code *live_code_new(uint32_t reads);
void live_code_free(struct live_code *code);

/* Of the process that began then; now_ns as of any clock that goes on. What was read before
 * since_ns is read again. length: at most 512. False: not to be had, or not now. */
bool live_code_read(struct live_code *code, uint32_t tgid, uint64_t start_time_ns, uint64_t now_ns,
		    uint64_t since_ns, uint64_t address, void *to, size_t length);

#endif
