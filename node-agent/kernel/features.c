/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/features.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/error.h"
#include "node-agent/kernel/cpu_list.h"
#include "node-agent/kernel/perf_event.h"
#include "node-agent/kernel/uprobe.h"

#define FEATURE_ROW(name_, use_, text_) \
	{.name = #name_, .text = text_, .use = KERNEL_FEATURE_##use_},
static const struct kernel_feature rows[] = {KERNEL_FEATURES(FEATURE_ROW)};

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

static void is_there(struct kernel_features *features, enum kernel_feature_id id)
{
	features->features[id].is_there = true;
}

static void lacks(struct kernel_features *features, enum kernel_feature_id id, const char *format,
		  ...) __attribute__((format(printf, 3, 4)));

static void lacks(struct kernel_features *features, enum kernel_feature_id id, const char *format,
		  ...)
{
	struct kernel_feature *feature = &features->features[id];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(feature->sentence, sizeof feature->sentence, format, arguments);
	va_end(arguments);
}

/* --- facts --- */

static unsigned count_cpus(const char *path)
{
	static bool is_listed[CPU_LIMIT];

	return cpu_list_read(path, is_listed, CPU_LIMIT, NULL)
		       ? cpu_list_count(is_listed, CPU_LIMIT)
		       : 0;
}

static void read_facts(struct kernel_features *features)
{
	struct utsname system = {0};
	struct rlimit memlock = {0};

	uname(&system);
	snprintf(features->release, sizeof features->release, "%s", system.release);
	sscanf(system.release, "%u.%u", &features->version_major, &features->version_minor);
	features->online_cpus = count_cpus("/sys/devices/system/cpu/online");
	features->possible_cpus = count_cpus("/sys/devices/system/cpu/possible");
	features->lockdown = kernel_lockdown();
	features->perf_event_paranoid = kernel_sysctl("kernel/perf_event_paranoid");
	features->kptr_restrict = kernel_sysctl("kernel/kptr_restrict");
	features->unprivileged_bpf_disabled = kernel_sysctl("kernel/unprivileged_bpf_disabled");
	features->perf_event_max_sample_rate = kernel_sysctl("kernel/perf_event_max_sample_rate");
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	features->memlock_bytes = memlock.rlim_cur == RLIM_INFINITY ? UINT64_MAX
								    : (uint64_t)memlock.rlim_cur;
	features->capabilities = kernel_capabilities();
	features->is_root = geteuid() == 0;
}

/* --- probes; each tries what it tells about --- */

static void probe_version(struct kernel_features *features)
{
	if (features->version_major > 5 ||
	    (features->version_major == 5 && features->version_minor >= 10))
		is_there(features, KERNEL_FEATURE_kernel_version);
	else
		lacks(features, KERNEL_FEATURE_kernel_version,
		      "This is Linux %s; farflame is made for 5.10 and newer.", features->release);
}

static void probe_btf(struct kernel_features *features)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		is_there(features, KERNEL_FEATURE_btf);
	else
		lacks(features, KERNEL_FEATURE_btf,
		      "/sys/kernel/btf/vmlinux cannot be read (%s); the kernel has to be built "
		      "with "
		      "CONFIG_DEBUG_INFO_BTF, as the kernels of all large distributions are.",
		      strerror(errno));
}

/* r0 = 0; exit. */
static const struct bpf_insn return_zero[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

static int load_nothing(enum bpf_prog_type type, const struct bpf_prog_load_opts *options)
{
	return bpf_prog_load(type, "farflame_probe", "GPL", return_zero, 2, options);
}

static bool probe_bpf(struct kernel_features *features)
{
	int fd = load_nothing(BPF_PROG_TYPE_PERF_EVENT, NULL);
	struct error err = {0};

	if (fd >= 0) {
		close(fd);
		is_there(features, KERNEL_FEATURE_bpf);
		return true;
	}
	if (fd == -EPERM || fd == -EACCES)
		kernel_permission_error(&err, -fd, "BPF");
	else
		error_set_system(&err, -fd, "BPF");
	lacks(features, KERNEL_FEATURE_bpf, "%s.", err.message);
	return false;
}

static void probe_helper(struct kernel_features *features, enum kernel_feature_id id,
			 enum bpf_func_id helper, const char *sentence)
{
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, NULL) == 1)
		is_there(features, id);
	else
		lacks(features, id, "%s", sentence);
}

static void probe_ring_buffer(struct kernel_features *features)
{
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1)
		is_there(features, KERNEL_FEATURE_ring_buffer);
	else
		lacks(features, KERNEL_FEATURE_ring_buffer,
		      "The kernel refuses a BPF ring buffer: it is older than 5.8, or the limit of "
		      "locked memory (%llu bytes) is too low for it.",
		      (unsigned long long)features->memlock_bytes);
}

static void probe_raw_tracepoint(struct kernel_features *features)
{
	int program = load_nothing(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL);
	int fd = program < 0 ? program : bpf_raw_tracepoint_open("sched_process_exec", program);

	if (fd >= 0) {
		close(fd);
		is_there(features, KERNEL_FEATURE_raw_tracepoint);
	} else {
		lacks(features, KERNEL_FEATURE_raw_tracepoint,
		      "sched_process_exec cannot be attached to: %s.", strerror(-fd));
	}
	if (program >= 0)
		close(program);
}

static void probe_tp_btf(struct kernel_features *features)
{
	int type = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP), fd = type;
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);

	if (type > 0) {
		options.attach_btf_id = (uint32_t)type;
		fd = load_nothing(BPF_PROG_TYPE_TRACING, &options);
	}
	if (fd >= 0) {
		close(fd);
		is_there(features, KERNEL_FEATURE_tp_btf);
	} else {
		lacks(features, KERNEL_FEATURE_tp_btf, "sched_switch cannot be attached to: %s.",
		      strerror(-fd));
	}
}

static void probe_perf(struct kernel_features *features)
{
	bool has_build_ids = true;
	struct error err = {0};
	struct perf_ring ring;
	int program = load_nothing(BPF_PROG_TYPE_PERF_EVENT, NULL);
	int timer = perf_timer_open(0, 1000000000, program, &err);

	/* Without BPF the attaching fails, not the opening. */
	if (timer >= 0)
		is_there(features, KERNEL_FEATURE_perf_event);
	else
		lacks(features, KERNEL_FEATURE_perf_event, "%s.", err.message);
	err = (struct error){0};
	if (perf_ring_open(&ring, 0, 1, &has_build_ids, &err)) {
		is_there(features, KERNEL_FEATURE_mapping_events);
		features->features[KERNEL_FEATURE_mapping_build_ids].is_there = has_build_ids;
	} else {
		lacks(features, KERNEL_FEATURE_mapping_events, "%s.", err.message);
	}
	if (!features->features[KERNEL_FEATURE_mapping_build_ids].is_there)
		lacks(features, KERNEL_FEATURE_mapping_build_ids,
		      "The files of programs that are gone before they are looked at stay "
		      "unknown.");
	perf_ring_close(&ring);
	if (timer >= 0)
		close(timer);
	if (program >= 0)
		close(program);
}

static bool can_sample_by_perf(int thread, bool is_user_only, struct error *err)
{
	const struct perf_sampler sampler = {
		.thread = thread,
		.period_ns = 1000000000,
		.stack_bytes = 4096,
		.is_user_only = is_user_only,
	};
	int fd = perf_sampler_open(&sampler, err);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void probe_perf_samples(struct kernel_features *features)
{
	struct error err = {0};
	int self = (int)getpid();

	if (can_sample_by_perf(PERF_EVERY_THREAD, false, &err))
		is_there(features, KERNEL_FEATURE_perf_samples);
	else
		lacks(features, KERNEL_FEATURE_perf_samples, "%s.", err.message);
	if (can_sample_by_perf(self, true, &err))
		is_there(features, KERNEL_FEATURE_perf_own_samples);
	else
		lacks(features, KERNEL_FEATURE_perf_own_samples, "%s.", err.message);
	if (can_sample_by_perf(self, false, &err))
		is_there(features, KERNEL_FEATURE_perf_own_kernel);
	else
		lacks(features, KERNEL_FEATURE_perf_own_kernel,
		      "It asks for kernel.perf_event_paranoid of at most 1.");
}

/* Opens one of our own mapped files that way; the links of all processes ask for the same. */
static void probe_map_files(struct kernel_features *features)
{
	DIR *directory = opendir("/proc/self/map_files");
	struct dirent *entry;
	int fd = -1;

	while (directory && fd < 0 && (entry = readdir(directory)) != NULL)
		if (entry->d_name[0] != '.') {
			fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				break;
		}
	if (fd >= 0)
		is_there(features, KERNEL_FEATURE_map_files);
	else
		lacks(features, KERNEL_FEATURE_map_files,
		      "Not readable (%s): files are opened through /proc/PID/root instead, deleted "
		      "ones cannot be. It wants CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and "
		      "CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN).",
		      strerror(errno));
	if (fd >= 0)
		close(fd);
	if (directory)
		closedir(directory);
}

static void probe_kallsyms(struct kernel_features *features)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0;
	char line[512];

	for (int i = 0; file && i < 100 && !address && fgets(line, sizeof line, file); i++)
		address = strtoull(line, NULL, 16);
	if (file)
		fclose(file);
	if (address)
		is_there(features, KERNEL_FEATURE_kallsyms);
	else
		lacks(features, KERNEL_FEATURE_kallsyms,
		      "All addresses read as 0 (kernel.kptr_restrict, or CAP_SYSLOG is missing): "
		      "kernel frames cannot be told from where the kernel was loaded.");
}

/* Where in our own file its entry lies, which nobody comes by again. */
static bool find_entry(int file, uint64_t *offset)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(file, &header, sizeof header, 0) != sizeof header)
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const off_t at = (off_t)(header.e_phoff + i * sizeof segment);

		if (pread(file, &segment, sizeof segment, at) != sizeof segment)
			return false;
		if (segment.p_type != PT_LOAD || header.e_entry < segment.p_vaddr ||
		    header.e_entry - segment.p_vaddr >= segment.p_filesz)
			continue;
		*offset = segment.p_offset + header.e_entry - segment.p_vaddr;
		return true;
	}
	return false;
}

static void probe_uprobe(struct kernel_features *features)
{
	int program = load_nothing(BPF_PROG_TYPE_KPROBE, NULL), probe = -1;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct error err = {0};
	uint64_t offset;

	if (program < 0)
		error_set_system(&err, -program, "load a program for probes");
	else if (file < 0 || !find_entry(file, &offset))
		error_set(&err, ERROR_NOT_FOUND, "the agent's own file cannot be read");
	else
		probe = uprobe_open_process(file, offset, (uint32_t)getpid(), program, &err);
	if (probe >= 0)
		is_there(features, KERNEL_FEATURE_uprobe);
	else
		lacks(features, KERNEL_FEATURE_uprobe, "%s.", err.message);
	if (probe >= 0)
		close(probe);
	if (program >= 0)
		close(program);
	if (file >= 0)
		close(file);
}

static void probe_with_bpf(struct kernel_features *features)
{
	probe_helper(features, KERNEL_FEATURE_read_kernel, BPF_FUNC_probe_read_kernel,
		     "The kernel does not let BPF programs read its memory: it is locked down for "
		     "confidentiality (/sys/kernel/security/lockdown).");
	probe_helper(features, KERNEL_FEATURE_task_pt_regs, BPF_FUNC_task_pt_regs,
		     "They are taken from where the kernel's stacks have them.");
	probe_helper(features, KERNEL_FEATURE_bpf_loop, BPF_FUNC_loop,
		     "Loops are unrolled by the verifier instead, which takes longer to load.");
	probe_ring_buffer(features);
	probe_raw_tracepoint(features);
	probe_tp_btf(features);
	probe_uprobe(features);
}

void kernel_features_read(struct kernel_features *features)
{
	libbpf_print_fn_t previous = libbpf_set_print(print_nothing);

	memset(features, 0, sizeof *features);
	memcpy(features->features, rows, sizeof rows);
	read_facts(features);
	probe_version(features);
	probe_btf(features);
	if (probe_bpf(features)) {
		probe_with_bpf(features);
	} else {
		static const enum kernel_feature_id with_bpf[] = {
			KERNEL_FEATURE_read_kernel,    KERNEL_FEATURE_ring_buffer,
			KERNEL_FEATURE_task_pt_regs,   KERNEL_FEATURE_bpf_loop,
			KERNEL_FEATURE_raw_tracepoint, KERNEL_FEATURE_tp_btf,
			KERNEL_FEATURE_uprobe,
		};

		for (size_t i = 0; i < sizeof with_bpf / sizeof *with_bpf; i++)
			lacks(features, with_bpf[i],
			      "Could not be tried, because no BPF program can be loaded.");
	}
	probe_perf(features);
	probe_perf_samples(features);
	probe_map_files(features);
	probe_kallsyms(features);
	libbpf_set_print(previous);
	features->can_sample = true;
	for (int i = 0; i < KERNEL_FEATURE_COUNT; i++)
		if (features->features[i].use == KERNEL_FEATURE_NEEDED &&
		    !features->features[i].is_there)
			features->can_sample = false;
}
