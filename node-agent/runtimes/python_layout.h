/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPython's structures have what a profiler reads: thread states, frames, code objects and
 * strings, in bytes from their beginning.
 *
 * 3.6 to 3.12: one table, of 64-bit builds. Its numbers are those of the debug information of
 * 3.6.15, 3.7.16, 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1, with which the test compares it. After its release a minor version keeps its layouts, but for
 * runtime_tstate_current (see there).
 * 3.13 and newer: _PyRuntime begins with _Py_DebugOffsets, the interpreter's own description
 * (Include/internal/pycore_runtime.h, since 3.14 pycore_debug_offsets.h), of free-threaded builds
 * too. Tried against Debian's builds of 3.13.18, 3.14.10 and 3.15.2, those with Py_DEBUG too, and
 * against 3.13.15 without the GIL.
 * An unknown version has no layout: nothing is guessed. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_LAYOUT_H
#define NODE_AGENT_RUNTIMES_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PYTHON_LAYOUT_NONE = 0xffff, /* this version has no such member */
	/* Of _PyRuntime, that python_layout_decode() wants to see. */
	PYTHON_DEBUG_OFFSETS_BYTES = 1024,
};

/* As PY_VERSION_HEX: from here on nothing is known. */
#define PYTHON_VERSIONS_END 0x03100000U

enum { PYTHON_VERSION_TEXT = 24 };
/* "3.14.2", "3.15.0b1" */
void python_version_text(uint32_t version, char text[PYTHON_VERSION_TEXT]);

enum python_layout_flags {
	/* 3.11: the instruction is an address in the code object; else an int, -1: none yet … */
	PYTHON_INSTR_IS_POINTER = 1 << 0,
	/* … 3.10: which counts units of two bytes. */
	PYTHON_INSTR_IS_UNITS = 1 << 1,
	/* 3.12: a frame with entry_value is no function's, but stands between the outermost one of
	 * a call of the loop and C. */
	PYTHON_ENTRY_IS_SHIM = 1 << 2,
	/* 3.14, free-threaded: threads may run copies of the bytecode, where positions by
	 * code_bytes mean nothing. */
	PYTHON_CODE_IS_COPIED = 1 << 3,
};

enum python_line_format {
	PYTHON_LINES_LNOTAB,    /* ≤ 3.9: co_lnotab */
	PYTHON_LINES_RANGES,    /* 3.10: co_linetable, PEP 626 */
	PYTHON_LINES_LOCATIONS, /* 3.11: co_linetable, Objects/locations.md */
};

struct python_layout {
	uint32_t version; /* as PY_VERSION_HEX */
	uint16_t flags;   /* enum python_layout_flags */
	uint16_t lines;   /* enum python_line_format */

	/* _PyRuntimeState, at the symbol _PyRuntime. 3.6 has none: its _PyThreadState_Current is a
	 * symbol, and the current state leads to its interpreter by tstate_interp. */
	uint32_t runtime_interpreters_head; /* PyInterpreterState *, a list by interp_next */
	/* PyThreadState * of the thread that has the GIL, 3.7 to 3.11; 0: none. Releases before the
	 * table's may have it elsewhere (3.7.0 to 3.7.3 do): what stands there has to be one of the
	 * interpreters' states, or 0, whenever it is looked at. */
	uint32_t runtime_tstate_current;
	uint32_t interp_next, interp_threads_head; /* PyThreadState *, a list by tstate_next */

	/* PyThreadState */
	uint16_t tstate_next, tstate_interp;
	uint16_t tstate_thread_id;        /* unsigned long: pthread_self() */
	uint16_t tstate_native_thread_id; /* 3.11, unsigned long: the kernel's tid */
	/* ≤ 3.10 PyFrameObject *; 3.11 and 3.12 _PyCFrame *; 3.13 _PyInterpreterFrame * */
	uint16_t tstate_frame;
	uint16_t cframe_frame; /* of a _PyCFrame: _PyInterpreterFrame * */

	/* PyFrameObject (≤ 3.10), _PyInterpreterFrame */
	uint16_t frame_code; /* 3.14: with tags in the lowest bits */
	uint16_t frame_previous;
	uint16_t frame_instr;  /* as flags say */
	uint16_t frame_entry;  /* one byte; none: each frame is an entry */
	uint16_t entry_value;  /* that byte, of an entry */
	uint16_t frame_locals; /* the fast locals, PyObject *[] */

	/* PyCodeObject */
	uint16_t code_argcount, code_kwonly, code_flags, code_firstline; /* int */
	uint16_t code_filename, code_name, code_qualname; /* str *; 3.11 has the last */
	uint16_t code_lines;                              /* bytes *, by format `lines` */
	uint16_t code_varnames;                           /* tuple * of names of the locals */
	/* Where the bytecode begins: in the object (3.11, size: code_size units at 16), or where
	 * code_code leads, a bytes * (≤ 3.10); the other one is none. */
	uint16_t code_bytes, code_code;

	/* str, bytes, tuple */
	uint16_t unicode_length, unicode_state; /* ssize_t in characters; u32 */
	uint16_t unicode_kind_bit; /* of the state: kind (1, 2, 4) in 3 bits, then compact, ascii */
	uint16_t unicode_ascii_data, unicode_compact_data; /* characters of ASCII, of others */
	uint16_t bytes_size, bytes_data;
	uint16_t tuple_size, tuple_items;
};

/* Where a code object has its name, qualified where it has such a one. */
static inline uint16_t python_layout_name(const struct python_layout *layout)
{
	return layout->code_qualname != PYTHON_LAYOUT_NONE ? layout->code_qualname
							   : layout->code_name;
}

/* version: as PY_VERSION_HEX has it, 0x030b07f0 for 3.11.7 (the exported Py_Version of 3.11 and
 * newer), or made of a file's name. False: not 3.6 to 3.12. */
bool python_layout_find(uint32_t version, struct python_layout *out);

/* The same of a build with Py_TRACE_REFS, before 3.13: all objects begin with two more words. Tried
 * against 3.9.2. */
void python_layout_trace(struct python_layout *layout);

/* bytes: what is at _PyRuntime. False: no _Py_DebugOffsets, or of a version that is not known, or
 * in contradiction with itself. A stranger's: each member of out lies in the first page of its
 * structure, but those of _PyRuntimeState and PyInterpreterState. */
bool python_layout_decode(const void *bytes, size_t size, struct python_layout *out);

#endif
