/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent is denied while it runs and goes on without: said as a fault that lasts, counted,
 * and part of what it reports. */
#ifndef NODE_AGENT_KERNEL_LACKS_H
#define NODE_AGENT_KERNEL_LACKS_H

#include <stdint.h>

/* Name, as counters have it after "lacks."; what that means. */
#define LACKS(LACK)                                                                               \
	LACK(descriptors, "stacks of files that cannot be opened stay incomplete: raise the "     \
			  "limit of open files (LimitNOFILE)")                                    \
	LACK(realtime, "edges of windows in allocators blur, such windows are thrown away: give " \
		       "CAP_SYS_NICE, and no RestrictRealtime")                                   \
	LACK(threads, "windows in allocators do not open, or end late: raise TasksMax")           \
	LACK(bpf, "on-cpu stacks alone are taken, by perf events, until BPF programs can be "     \
		  "loaded")

#define LACK_ENUM(name_, sentence_) LACK_##name_,
enum lack { LACKS(LACK_ENUM) LACK_COUNT };
#undef LACK_ENUM

extern const char *const lack_names[LACK_COUNT]; /* "lacks.descriptors" */

/* Once more, for that reason; NULL: it went well, the fault is over. Thread-safe. */
void lack_note(enum lack lack, const char *why);
/* How often since the start. */
uint64_t lack_times(enum lack lack);
/* Looks whether a descriptor can still be had. */
void lack_look_at_descriptors(void);

#endif
