/* SPDX-License-Identifier: Apache-2.0 */
/* Where the threads of a process with CPython have their states, found in its memory: the
 * interpreter's list of states says each one's thread; where that thread has the address near its
 * thread pointer is the same place in all of them. Such a place is a slot of pthread_setspecific()
 * (PyGILState_…'s key, since 3.6; glibc's nptl/descr.h, musl's src/internal/pthread_impl.h) or a
 * thread-local variable (_Py_tss_tstate, since 3.12). The kernel side uses none whose state does
 * not name the thread, so that a place that is wrong gives no list rather than a wrong one.
 *
 * The memory is a stranger's: whatever it says, so many states and words are read and no more. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_THREADS_H
#define NODE_AGENT_RUNTIMES_PYTHON_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/runtime_frames.h"
#include "node-agent/file_parser/runtime_symbols.h"
#include "node-agent/runtimes/python_layout.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	PYTHON_THREADS_MAX = 32,      /* that are looked at, the newest of each interpreter first */
	PYTHON_INTERPRETERS_MAX = 16, /* likewise */
	/* Where the place is not near thread pointers, each word there is followed once, of so many
	 * threads. */
	PYTHON_DEEP_THREADS = 4,
	PYTHON_READS_MAX = 512, /* of one search; some 4 a thread are usual */
};

enum python_found {
	PYTHON_FOUND,
	PYTHON_NOT_STARTED,  /* there are no threads yet */
	PYTHON_NO_PLACE,     /* threads, and none of them has its state near its thread pointer */
	PYTHON_CONTRADICTED, /* what stands there is no such list */
	/* Layouts that are not known: */
	PYTHON_NO_POINTER, /* arm64: which thread pointer a thread's id belongs to */
	PYTHON_TOO_NEW,
	PYTHON_UNRELEASED, /* alphas and betas, which differ from their release */
	PYTHON_COPIED,     /* PYTHON_CODE_IS_COPIED */
	PYTHON_UNKNOWN,    /* any other version or build */
	PYTHON_FOUND_COUNT,
};

struct python_threads {
	uint32_t version; /* as PY_VERSION_HEX, as far as it is known */
	uint32_t states;  /* that were looked at */
	uint32_t placed;  /* whose threads have them at the place */
	bool is_cut;      /* there are more */
	uint32_t reads;
	struct runtime_place place; /* without identity */
	struct python_layout layout;
};

/* base: what is to be added to the file's ELF addresses. FOUND: out->place is whole. Fewer placed
 * than states: some thread was just beginning or ending, or it is worth looking again. */
enum python_found python_threads_find(const struct python_memory *memory,
				      const struct runtime_symbols *symbols, uint64_t base,
				      struct python_threads *out);

/* Why, for the log, and what would help. */
const char *python_found_text(enum python_found found);
/* There is an interpreter, and its layout is not known. */
bool python_found_is_unknown(enum python_found found);

#endif
