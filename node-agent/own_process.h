/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent asks of the kernel for itself. Each is done as far as it is permitted. */
#ifndef FARFLAME_OWN_PROCESS_H
#define FARFLAME_OWN_PROCESS_H

#include <stddef.h>

/* Memory is what an agent is judged by on every host: one heap for all threads, and what a report
 * took goes back to the kernel after it. Before the first thread. */
void own_memory_small(void);

/* As many descriptors as may be. Returns how many files may be kept open twice beside reserved
 * descriptors, most at most. */
size_t own_file_limit(size_t reserved, size_t most);

/* A stack that is copied up waits for us while others of its kind come: what we do is little, and
 * on a busy host it is wanted soon. A priority that somebody chose stays. */
void own_priority_high(void);

/* Proportional share of memory in KiB; 0 where the kernel does not tell. */
unsigned long own_memory_kib(void);

#endif
