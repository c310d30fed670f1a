/* SPDX-License-Identifier: Apache-2.0 */
/* The name that a program has given a thread by Python's own module, threading, which tells the
 * kernel of it from 3.14 on only: sys.modules["threading"]._active is a dict of threading.Thread by
 * threading.get_ident(), each of which has its name at _name (Lib/threading.py).
 *
 * CPython 3.6 to 3.13, 64 bits, with the lock. Objects/dict-common.h and dictobject.c,
 * Include/internal/pycore_dict.h, pycore_object.h and pycore_interp.h; the test compares with what
 * interpreters say. The memory is a stranger's: so many keys are read and no more. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_THREAD_NAME_H
#define NODE_AGENT_RUNTIMES_PYTHON_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/runtimes/python_layout.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	PYTHON_THREAD_NAME_BYTES = 96, /* with its end; a longer one is cut */
	PYTHON_KEYS_MAX = 4096,        /* of one dict */
};

/* Where a process has its threads; the dict stays, also over fork(). */
struct python_thread_table {
	uint64_t active, dict_type;
};

/* state: the address of _PyRuntime, before 3.7 of _PyThreadState_Current. False: not known of this
 * version, or threading is not imported (yet), or, before 3.7, no thread runs. */
bool python_thread_table_find(const struct python_memory *memory,
			      const struct python_layout *layout, uint64_t state,
			      struct python_thread_table *out);

/* thread: pthread_self() of it, which is its ident. False: it is none of threading's. */
bool python_thread_name_read(const struct python_memory *memory, const struct python_layout *layout,
			     const struct python_thread_table *table, uint64_t thread,
			     char name[PYTHON_THREAD_NAME_BYTES]);

#endif
