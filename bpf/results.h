/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One row per way a stack walk ends: RESULT(name, "sentence"). What the user reads is
 * "[incomplete: sentence]"; the counter is farflame_server_agent_stacks_total{result="name"}. Rows
 * are only ever added. */
#ifndef BPF_RESULTS_H
#define BPF_RESULTS_H

#define WALK_RESULTS(RESULT)                                                                       \
	RESULT(complete, "")                                                                       \
	RESULT(no_frame_pointer, "code without frame pointers")                                    \
	RESULT(read_fault, "stack memory could not be read")                                       \
	RESULT(too_deep, "deeper than the frame limit, cut at the root end")                       \
	RESULT(compat_32bit, "32-bit process")                                                     \
	RESULT(no_registers, "the thread's user registers could not be read")                      \
	RESULT(bad_address, "the instruction pointer is not a user address")                       \
	RESULT(no_table, "no unwind table for this code")                                          \
	RESULT(not_code, "a return address does not lie in an executable mapping")                 \
	RESULT(no_mapping, "the process' mappings could not be read")                              \
	RESULT(not_loaded, "first sight of this code, and the stack could not be copied")          \
	RESULT(copy_short, "deeper than the part of the stack that was copied")                    \
	RESULT(register_unknown, "the caller's frame hangs on a register that is not known there") \
	RESULT(table_failed, "the code's unwind table is damaged or could not be read")            \
	RESULT(mappings_changed, "the process' mappings changed before its stack was finished")    \
	RESULT(uprobe, "a return probe's trampoline hides the caller")                             \
	RESULT(bad_frame, "the unwind table does not fit the stack")                               \
	RESULT(no_start, "a return address of 0 where no stack is known to begin")                 \
	RESULT(leaf_not_code, "the instruction pointer does not lie in an executable mapping")     \
	RESULT(java_state, "code of HotSpot in a state that is not known")                         \
	RESULT(frozen, "the virtual thread's other frames are in the Java heap")

#define WALK_RESULT_ENUM(name_, sentence_) WALK_##name_,
enum walk_result { WALK_RESULTS(WALK_RESULT_ENUM) WALK_RESULT_COUNT };

#endif
