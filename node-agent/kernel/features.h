/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel and these privileges allow, found by trying. */
#ifndef NODE_AGENT_KERNEL_FEATURES_H
#define NODE_AGENT_KERNEL_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/kernel/privileges.h"

/* FEATURE(name, is needed for sampling, "what it is") */
#define KERNEL_FEATURES(FEATURE)                                                          \
	FEATURE(kernel_version, true, "Linux 5.10 or newer")                              \
	FEATURE(btf, true, "kernel type information (BTF)")                               \
	FEATURE(bpf, true, "loading BPF programs")                                        \
	FEATURE(read_kernel, true, "BPF programs reading kernel memory")                  \
	FEATURE(perf_event, true, "CPU timers of all processes (perf events)")            \
	FEATURE(ring_buffer, true, "BPF ring buffer (5.8)")                               \
	FEATURE(mapping_events, true, "records of new executable mappings")               \
	FEATURE(mapping_build_ids, false, "build-ids in those records (5.12)")            \
	FEATURE(task_pt_regs, false, "user registers by helper (5.15)")                   \
	FEATURE(bpf_loop, false, "loops by helper (5.17)")                                \
	FEATURE(raw_tracepoint, false, "raw tracepoints")                                 \
	FEATURE(tp_btf, false, "typed tracepoints (5.5)")                                 \
	FEATURE(map_files, false, "files of other processes through /proc/PID/map_files") \
	FEATURE(kallsyms, false, "addresses in /proc/kallsyms")

#define KERNEL_FEATURE_ENUM(name_, needed_, text_) KERNEL_FEATURE_##name_,
enum kernel_feature_id { KERNEL_FEATURES(KERNEL_FEATURE_ENUM) KERNEL_FEATURE_COUNT };

struct kernel_feature {
	const char *name; /* static */
	const char *text; /* static */
	bool is_needed;   /* without it there is no sampling */
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
	bool can_sample; /* every needed feature is there */
	struct kernel_feature features[KERNEL_FEATURE_COUNT];
};

/* Takes some tens of milliseconds and, for libbpf's parse of type information, up to 15 MB for as
 * long as the process lives: for `--check`, not for a running agent. */
void kernel_features_read(struct kernel_features *features);

#endif
