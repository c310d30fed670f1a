/* SPDX-License-Identifier: Apache-2.0 */
/* Threads' names that were read (python_thread_name.h), by {process, tid}: each when the thread is
 * first seen, and again now and then, since it may get one later, or another. So many are kept, and
 * so many read a second, whatever programs do. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_THREAD_NAMES_H
#define NODE_AGENT_RUNTIMES_PYTHON_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/processes/process_key.h"
#include "node-agent/runtimes/python_thread_name.h"

enum {
	PYTHON_THREAD_NAMES_MAX = 4096,
	PYTHON_THREAD_NAMES_BURST = 200, /* read at once … */
	PYTHON_THREAD_NAMES_A_SECOND = 50,
	PYTHON_THREAD_NAMES_AGAIN_S = 30,
};

struct python_thread_names;

/* NULL: no memory. */
struct python_thread_names *python_thread_names_new(void);
void python_thread_names_free(struct python_thread_names *names);

struct python_thread { /* borrowed */
	struct process_key process;
	uint32_t tid;
	uint64_t thread; /* pthread_self() */
	uint64_t state;  /* as python_thread_table_find() takes it */
	uint64_t now_ns; /* of any clock that only goes forward */
	const struct python_memory *memory;
	const struct python_layout *layout;
	/* Whether there still is a thread of that tid: what stands at its ident is its own then.
	 * Has the memory's context. */
	bool (*is_alive)(void *context, uint32_t tid);
};

/* NULL: it has none, or it is not known yet. Lent until the next call. */
const char *python_thread_names_find(struct python_thread_names *names,
				     const struct python_thread *thread);

#endif
