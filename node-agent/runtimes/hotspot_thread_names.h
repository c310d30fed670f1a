/* SPDX-License-Identifier: Apache-2.0 */
/* Threads' names that were read (hotspot_thread_name.h), by {process, tid}: of those that the
 * kernel has cut, when a thread is first seen, and again now and then, since it may get another. So
 * many are kept, and so many read a second, whatever programs do. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_THREAD_NAMES_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_THREAD_NAMES_H

#include <stdint.h>

#include "node-agent/processes/process_key.h"
#include "node-agent/runtimes/hotspot_thread_name.h"

enum {
	HOTSPOT_THREAD_NAMES_MAX = 4096,
	HOTSPOT_THREAD_NAMES_BURST = 20, /* read at once, 0.8 ms each, … */
	HOTSPOT_THREAD_NAMES_A_SECOND = 20,
	HOTSPOT_THREAD_NAMES_AGAIN_S = 30,
};

struct hotspot_thread_names;

/* NULL: no memory. */
struct hotspot_thread_names *hotspot_thread_names_new(void);
void hotspot_thread_names_free(struct hotspot_thread_names *names);

struct hotspot_thread { /* borrowed */
	struct process_key process;
	uint32_t tid;
	const char *kernel; /* its name there */
	uint64_t now_ns;    /* of any clock that only goes forward */
	const struct python_memory *memory;
	const struct hotspot_layout *layout;
};

/* NULL: it is not known, or not yet. What is returned is one that the kernel's name is of. Lent
 * until the next call. */
const char *hotspot_thread_names_find(struct hotspot_thread_names *names,
				      const struct hotspot_thread *thread);

#endif
