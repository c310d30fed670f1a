/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process with CPython, as whoever looks into it is given it: a stranger's, by
 * kernel/stranger_reader.h, or what a test has made up. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_MEMORY_H
#define NODE_AGENT_RUNTIMES_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtime_code_event;

struct python_memory {
	bool (*read)(void *context, uint64_t address, void *to, size_t bytes); /* all or nothing */
	void *context;
	/* The code object at told->address at once, as the kernel side copies it; NULL: one read
	 * after the other. False: it is not there, or has changed meanwhile. */
	bool (*copy_code)(void *context, struct runtime_code_event *told);
	bool is_copy; /* what is not asked for may not be there: nothing is read ahead */
};

#endif
