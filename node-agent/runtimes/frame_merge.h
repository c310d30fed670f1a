/* SPDX-License-Identifier: Apache-2.0 */
/* One stack out of two: the native frames, and the interpreter's own list, both leaf first. Whoever
 * calls a function of the language that is not run in the same loop enters the interpreter's loop
 * from C: there is one native frame of the loop for each run of frames up to one with
 * RUNTIME_FRAME_ENTRY, in the same order. A run goes in front of its loop's frame:
 *
 *	native                          list            merged
 *	list_sort          (libpython)                  list_sort
 *	loop               (libpython)  key    entry    key
 *	PyObject_Call      (libpython)                  loop             runtime
 *	callback           (extension)                  PyObject_Call    runtime
 *	loop               (libpython)  inner           callback
 *	Py_RunMain         (libpython)  main   entry    inner
 *	main               (python3)                    main
 *	_start             (python3)                    loop             runtime
 *	                                                Py_RunMain       runtime …
 *
 * `runtime`: of the interpreter's own files, with a frame of the language on its leaf side. A frame
 * of Python's whose code object is at 0 with RUNTIME_FRAME_ENTRY is a run without frames: its loop
 * has none left, or none yet.
 *
 * Where there are fewer loops, generators that an exception has passed may have none: then all of
 * them have.
 *
 * Of a thread that waits for the interpreter's lock the innermost frame is that: `runtime` is all
 * of its own from the leaf on.
 *
 * What does not fit is declared and not joined, but where the native part goes through code that
 * was made at run time: who called that is guessed, and frames of the loop may be passed over.
 *There the list is joined with what is before that, and the native frames behind it are left out
 *and declared. Pure. */
#ifndef NODE_AGENT_RUNTIMES_FRAME_MERGE_H
#define NODE_AGENT_RUNTIMES_FRAME_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum native_role {
	NATIVE_OTHER,   /* of any other file */
	NATIVE_MADE,    /* in no file: made at run time, by CPython's own JIT or another one */
	NATIVE_RUNTIME, /* of a file that is the interpreter's */
	NATIVE_LOOP,    /* in its loop */
	NATIVE_SWITCH,  /* of any other file, which runs functions on stacks of their own */
};

/* X(name, sentence): the sentences go to users; "" is no loss. */
#define FRAME_MERGES(X)                                                                      \
	X(none, "") /* there is no list, and no loop that would need one */                  \
	X(joined, "")                                                                        \
	X(no_list, "the interpreter's frames were not read")                                 \
	/* no_list, once it is known why: runtimes.h */                                      \
	X(not_by_perf, "the interpreter's frames are read by BPF alone, not by perf events") \
	X(early, "the interpreter was found only after this sample")                         \
	X(too_new,                                                                           \
	  "the interpreter is newer than the agent knows: a newer agent reads its frames")   \
	X(unknown, "the interpreter's version or build is not known")                        \
	X(no_place, "where the interpreter has its frames was not found")                    \
	X(unsure, "it was not known yet whether its program is interpreted")                 \
	X(list_cut, "the interpreter has more frames than are read")                         \
	X(list_unread, "not all of the interpreter's frames were in memory")                 \
	X(list_other, "another interpreter's frames in the same thread were not read")       \
	X(list_wrong, "the interpreter's list of frames makes no sense")                     \
	X(guessed, "native frames behind code that was made at run time are not known")      \
	X(differ, "the interpreter's frames and the native ones do not belong together")

enum frame_merge_result {
#define FRAME_MERGE(name_, sentence_) MERGE_##name_,
	FRAME_MERGES(FRAME_MERGE)
#undef FRAME_MERGE
		MERGE_COUNT
};

struct merged_frame {
	uint32_t at; /* of a native frame: its number; of the language's: of its first word */
	bool is_language, is_runtime;
};

struct frame_merge {
	const uint8_t *roles; /* enum native_role of each native frame */
	size_t native_count;
	bool is_native_whole; /* up to the thread's start */
	bool is_for_lock;     /* a frame of the language is on the leaf side of all */
	const uint64_t *list; /* words, bpf/runtime_frames.h */
	size_t list_words;
};

/* How many of the native frames are those of the stack that runs. What begins on a stack of its own
 * (a greenlet) has for its outermost frame one of NATIVE_SWITCH; behind it there is what others
 * have left, which switched to it or were switched away from. native_count: none is found to begin
 * where the list ends. */
size_t frame_merge_running(const struct frame_merge *stack);

/* out: room for native_count + list_words / 2. Where the result is `differ`, `list_wrong` (without
 * a beginning that makes sense) or `no_list`, the native frames alone are in it. */
enum frame_merge_result frame_merge(const struct frame_merge *stack, struct merged_frame *out,
				    size_t *count);

const char *frame_merge_sentence(enum frame_merge_result result);
const char *frame_merge_name(enum frame_merge_result result);

#endif
