/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel and these privileges allow, found by trying. */
#ifndef NODE_AGENT_KERNEL_FEATURES_H
#define NODE_AGENT_KERNEL_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/kernel/privileges.h"

/* FEATURE(name, what it is for, "what it is") */
#define KERNEL_FEATURES(FEATURE)                                                           \
	FEATURE(kernel_version, NEEDED, "Linux 5.10 or newer")                             \
	FEATURE(btf, NEEDED, "kernel type information (BTF)")                              \
	FEATURE(bpf, NEEDED, "loading BPF programs")                                       \
	FEATURE(read_kernel, NEEDED, "BPF programs reading kernel memory")                 \
	FEATURE(perf_event, NEEDED, "CPU timers of all processes (perf events)")           \
	FEATURE(ring_buffer, NEEDED, "BPF ring buffer (5.8)")                              \
	FEATURE(mapping_events, NEEDED, "records of new executable mappings")              \
	FEATURE(mapping_build_ids, BETTER, "build-ids in those records (5.12)")            \
	FEATURE(task_pt_regs, BETTER, "user registers by helper (5.15)")                   \
	FEATURE(bpf_loop, BETTER, "loops by helper (5.17)")                                \
	FEATURE(raw_tracepoint, BETTER, "raw tracepoints")                                 \
	FEATURE(tp_btf, BETTER, "typed tracepoints (5.5)")                                 \
	FEATURE(uprobe, BETTER, "probes in programs (uprobes)")                            \
	FEATURE(map_files, BETTER, "files of other processes through /proc/PID/map_files") \
	FEATURE(kallsyms, BETTER, "addresses in /proc/kallsyms")                           \
	FEATURE(perf_samples, INSTEAD, "stacks of all processes by perf events")           \
	FEATURE(perf_own_samples, INSTEAD, "the same of one's own processes, --pid")       \
	FEATURE(perf_own_kernel, INSTEAD, "and of kernel code that runs for them")

enum kernel_feature_use {
	KERNEL_FEATURE_NEEDED,  /* without it there is no sampling by BPF */
	KERNEL_FEATURE_BETTER,  /* with it */
	KERNEL_FEATURE_INSTEAD, /* of BPF */
};

#define KERNEL_FEATURE_ENUM(name_, use_, text_) KERNEL_FEATURE_##name_,
enum kernel_feature_id { KERNEL_FEATURES(KERNEL_FEATURE_ENUM) KERNEL_FEATURE_COUNT };

struct kernel_feature {
	const char *name; /* static */
	const char *text; /* static */
	enum kernel_feature_use use;
	bool is_there;
	char sentence[320]; /* where it is not: why, and what to do */
};

struct kernel_features {
	char release[65];
	unsigned version_major, version_minor;
	unsigned online_cpus, possible_cpus;
	enum kernel_lockdown lockdown;
	int64_t perf_event_paranoid, kptr_restrict; /* sysctls; KERNEL_SYSCTL_UNREADABLE */
	int64_t unprivileged_bpf_disabled, perf_event_max_sample_rate;
	uint64_t
		memlock_bytes; /* RLIMIT_MEMLOCK, soft; UINT64_MAX: none. Counts before 5.11 only */
	uint64_t capabilities; /* effective set, bits CAP_* of <linux/capability.h> */
	bool is_root;
	bool can_sample; /* by BPF: every needed feature is there */
	struct kernel_feature features[KERNEL_FEATURE_COUNT];
};

/* Takes some tens of milliseconds and, for libbpf's parse of type information, up to 15 MB for as
 * long as the process lives: for `--check`, not for a running agent. */
void kernel_features_read(struct kernel_features *features);

#endif
