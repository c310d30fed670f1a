/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that wait to be told many in one trap, as bpf/alloc_batch.h has them. A trap for
 * each costs many times what copying its stack does; but until a batch is told nobody knows what it
 * has, and whoever walks it has to know the code, so that those of the first second, a hundred more
 * and twenty a second from then on are told one by one, as are those of stacks that are deep or of
 * no thread's own, and of threads that serve a request; and all once Python is known
 * to run (python.h).
 *
 * A block that ends while it waits is told as one that has: that costs no end. What has waited for
 * half a second is told by whoever takes or gives back a sampled block next, and at exit(). No
 * locks that anybody waits for, nothing allocated after the start; a child of fork() begins with
 * nothing. */
#ifndef NODE_AGENT_MALLOC_BATCH_H
#define NODE_AGENT_MALLOC_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Without it, or where it fails, nothing is batched. */
void batch_init(void);

/* The block was sampled and is nobody else's yet. True: it will be told, and is among the
 * sampled_blocks.h; false: it is to be told now. */
bool batch_add(uintptr_t address, uint64_t bytes, uint64_t weighted);

/* Tells what has waited for long. */
void batch_tick(void);
/* Tells all that waits. */
void batch_flush(void);
/* From now on nothing is batched. */
void batch_end(void);
/* Nobody listens: forgets what waits. */
void batch_drop(void);

#endif
