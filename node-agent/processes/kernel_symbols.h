/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/kallsyms line by line, and the relative texts made of it. */
#ifndef NODE_AGENT_PROCESSES_KERNEL_SYMBOLS_H
#define NODE_AGENT_PROCESSES_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct kernel_symbol {
	uint64_t address;
	char type;                 /* as nm(1) has it */
	const char *name, *module; /* borrowed; NUL-terminated; module "" for the kernel image */
};

/* Takes one line apart in place (it is NUL-terminated). False: not a kallsyms line. Pure. */
bool kernel_symbol_parse(char *line, struct kernel_symbol *symbol);

/* Calls each for every symbol until it returns false; a few KiB of memory. */
bool kernel_symbols_each(const char *proc_root,
			 bool (*each)(void *context, const struct kernel_symbol *symbol),
			 void *context, struct error *err);

/* Where the kernel image's code is now, KASLR included. ERROR_UNSUPPORTED: kptr_restrict hides it.
 */
bool kernel_text_range(const char *proc_root, uint64_t *text, uint64_t *end, struct error *err);

/* Ranges of addresses, the end outside; 0, 0: the kernel does not say. */
struct kernel_scheduler {
	uint64_t start, end;               /* the functions that others wait in */
	uint64_t waking_start, waking_end; /* the one that wakes, try_to_wake_up() */
};

void kernel_scheduler_find(const char *proc_root, struct kernel_scheduler *out);

/* frames: of the kernel part, leaf first. How many leaves of a wake-up's stack belong to the taking
 * of the sample: the rest begins with the function that wakes. */
size_t kernel_scheduler_waking(const struct kernel_scheduler *scheduler, const uint64_t *frames,
			       size_t count);
/* How many leaves of a switch's stack belong to the sample's taking and to the scheduler: the rest
 * begins with the function that waits, as /proc/PID/wchan has it. */
size_t kernel_scheduler_switching(const struct kernel_scheduler *scheduler, const uint64_t *frames,
				  size_t count);

#endif
