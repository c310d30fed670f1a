/* SPDX-License-Identifier: Apache-2.0 */
/* A BPF program at an instruction of a file's code, in every process that runs it: uprobes by
 * perf_event_open(2), which are in every kernel from 4.17 on and need no tracefs. */
#ifndef NODE_AGENT_KERNEL_UPROBE_H
#define NODE_AGENT_KERNEL_UPROBE_H

#include <stdint.h>

#include "common/error.h"

/* file: open for reading, borrowed; where it lies does not matter. offset: in the file, where an
 * instruction begins. semaphore: the offset of a 16-bit count that is raised while the probe is
 * there; 0: there is none. The probe lasts until the descriptor that is returned is closed;
 * opening takes some 10 ms. −1: it cannot be; ERROR_UNSUPPORTED: not on this
 * kernel, or not with these privileges. */
int uprobe_open(int file, uint64_t offset, uint32_t semaphore, int program, struct error *err);

/* The same in one process alone, all its threads; the others are left as they are. tgid: as this
 * process sees it. */
int uprobe_open_process(int file, uint64_t offset, uint32_t tgid, int program, struct error *err);

/* Closing takes some 80 ms, in which the kernel waits for other CPUs: a thread of its own does, and
 * the program may still be called. */
void uprobe_close(int fd);

#endif
