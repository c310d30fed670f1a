/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "bpf/alloc.h"
#include "bpf/off_cpu.h"
#include "bpf/sample_alloc.skel.h"
#include "bpf/sample_cpu.skel.h"
#include "bpf/sample_off_cpu.skel.h"
#include "bpf/sample_page_fault.skel.h"
#include "common/self_path.h"
#include "node-agent/kernel/privileges.h"

#define LOADER_NAME "farflame-loader" /* argv[0] of the child; also what ps shows */

enum {
	LOADER_SOCKET = 3,
	LOADER_NUMBERS = 15,       /* the members of struct kernel_load_options */
	LOADER_TIMEOUT_MS = 60000, /* a verifier on a slow emulated machine takes seconds */
	PASSED_DESCRIPTORS = KERNEL_PROGRAM_COUNT + KERNEL_MAP_COUNT,
	VERIFIER_LOG_BYTES = 64 << 10,
	KERNEL_STACK_BYTES = 16384,
	VERIFIER_LOG_REASON = 4, /* BPF_LOG_STATS: without the programs themselves */
};

/* What the child says, with the descriptors attached when kind is ERROR_NONE: those of programs,
 * then of maps. Same program on both sides, so the memory layout is the format. */
struct loader_answer {
	uint32_t kind; /* enum error_kind */
	int32_t os_error;
	uint32_t is_switch_typed;
	uint64_t passed; /* bit n: descriptor n is there */
	char message[sizeof((struct error *)NULL)->message];
};

/* --- the child --- */

static char verifier_log[VERIFIER_LOG_BYTES];

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

/* The verifier's reason is the last line before its statistics ("processed 38215 insns …"). */
static void verifier_reason(char *reason, size_t room)
{
	char *end = strstr(verifier_log, "\nprocessed "), *line;

	*reason = '\0';
	if (end)
		*end = '\0';
	line = strrchr(verifier_log, '\n');
	line = line && line[1] ? line + 1 : verifier_log;
	snprintf(reason, room, "%.*s", (int)room - 1, line);
	reason[strcspn(reason, "\n")] = '\0';
}

static bool load_failed(struct error *err, int os_error)
{
	char reason[200];

	verifier_reason(reason, sizeof reason);
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "load BPF programs: this kernel has no type information at "
				 "/sys/kernel/btf/vmlinux (it needs CONFIG_DEBUG_INFO_BTF)");
	if ((os_error == EPERM || os_error == EACCES) && !*reason)
		return kernel_permission_error(err, os_error, "load BPF programs");
	error_set(err, ERROR_UNSUPPORTED, "load BPF programs: %s%s%s", strerror(os_error),
		  *reason ? "; the kernel's verifier says: " : "", reason);
	if (err)
		err->os_error = os_error;
	return false;
}

/* What the child has loaded. */
struct loaded {
	struct sample_cpu *cpu;
	struct sample_off_cpu *off_cpu;       /* NULL: not wanted */
	struct sample_page_fault *page_fault; /* the same */
	struct sample_alloc *alloc;           /* the same */
	bool is_switch_typed;
};

/* Of a thread in the kernel: THREAD_SIZE, which is not less than a page. Asked before 5.15 alone,
 * where the kernel does not say where registers are. */
static uint32_t stack_bytes(void)
{
	const long page = sysconf(_SC_PAGESIZE);

	return page > KERNEL_STACK_BYTES ? (uint32_t)page : KERNEL_STACK_BYTES;
}

static bool load_cpu(const struct kernel_load_options *options, struct sample_cpu *programs,
		     struct error *err)
{
	int failure;

	programs->rodata->period_ns = options->period_ns;
	programs->rodata->max_user_frames = options->max_frames;
	programs->rodata->wakeup_bytes = options->ring_bytes / 4;
	programs->rodata->only_filtered_pids = options->filter_pids > 0;
	programs->rodata->walk_by_rows = options->use_rows;
	programs->rodata->kernel_stack_bytes = stack_bytes();
	programs->rodata->take_ticks = options->take_ticks;
	programs->rodata->stop_after_sample = options->stop_after_sample && options->filter_pids;
	bpf_program__set_log_buf(programs->progs.sample_cpu, verifier_log, sizeof verifier_log);
	failure = bpf_map__set_max_entries(programs->maps.samples, options->ring_bytes);
	if (!failure)
		failure = bpf_map__set_max_entries(programs->maps.copies, options->copies_bytes);
	if (!failure && options->filter_pids)
		failure = bpf_map__set_max_entries(programs->maps.filter_pids,
						   options->filter_pids);
	if (failure)
		return error_set_system(err, -failure, "size BPF maps");
	failure = sample_cpu__load(programs);
	return failure ? load_failed(err, -failure) : true;
}

/* Arguments of the tracepoint sched_switch, the first of which is the BPF program's own; 0: the
 * kernel does not say. */
static unsigned switch_arguments(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type;
	unsigned count = 0;
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* a pointer */
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	if (type && btf_is_func_proto(type))
		count = btf_vlen(type);
	btf__free(btf);
	return count;
}

/* Whatever both have is one, but for what is a source's own. */
static int share_maps(const struct sample_cpu *from, struct bpf_object *programs)
{
	struct bpf_map *map, *shared;

	bpf_object__for_each_map(map, programs)
	{
		const char *name = bpf_map__name(map);

		if (strchr(name, '.') || !strcmp(name, "scratch") || !strcmp(name, "copy_rate"))
			continue;
		shared = bpf_object__find_map_by_name(from->obj, name);
		if (shared && bpf_map__reuse_fd(map, bpf_map__fd(shared)))
			return -errno;
	}
	return 0;
}

static void keep_log(struct bpf_object *programs)
{
	struct bpf_program *program;

	verifier_log[0] = '\0';
	bpf_object__for_each_program(program, programs)
	{
		bpf_program__set_log_buf(program, verifier_log, sizeof verifier_log);
		bpf_program__set_log_level(program, VERIFIER_LOG_REASON);
	}
}

static int load_switches(const struct kernel_load_options *options, const struct sample_cpu *cpu,
			 struct sample_off_cpu *programs, unsigned arguments, bool is_typed,
			 bool has_sweeps)
{
	struct bpf_program *unused = is_typed ? programs->progs.switch_raw
					      : programs->progs.switch_typed;
	bool takes_waking = options->off_cpu & (KERNEL_OFF_CPU_RUN_QUEUE | KERNEL_OFF_CPU_WAKERS);
	int failure;

	programs->rodata->max_user_frames = options->max_frames < SWITCH_FRAMES_MAX
						    ? options->max_frames
						    : (__u32)SWITCH_FRAMES_MAX;
	programs->rodata->wakeup_bytes = options->ring_bytes / 4;
	programs->rodata->only_filtered_pids = options->filter_pids > 0;
	programs->rodata->walk_by_rows = options->use_rows;
	programs->rodata->kernel_stack_bytes = stack_bytes();
	programs->rodata->has_prev_state = arguments >= 5;
	programs->rodata->take_run_queue = (options->off_cpu & KERNEL_OFF_CPU_RUN_QUEUE) != 0;
	programs->rodata->take_wakers = (options->off_cpu & KERNEL_OFF_CPU_WAKERS) != 0;
	programs->rodata->budget_ns = options->off_cpu_budget_ns;
	keep_log(programs->obj);
	bpf_program__set_autoload(unused, false);
	bpf_program__set_autoload(programs->progs.sweep, has_sweeps);
	bpf_program__set_autoload(programs->progs.thread_waking, takes_waking);
	failure = share_maps(cpu, programs->obj);
	if (!failure)
		failure = bpf_map__set_max_entries(programs->maps.threads, options->threads_max);
	if (!failure)
		failure = bpf_map__set_max_entries(programs->maps.unsampled, options->threads_max);
	return failure ? failure : sample_off_cpu__load(programs);
}

static bool load_off_cpu(const struct kernel_load_options *options, struct loaded *loaded,
			 struct error *err)
{
	const unsigned arguments = switch_arguments();
	int failure = -ENOTSUP;

	/* without a trampoline; then without an iterator */
	for (int attempt = arguments ? 0 : 1; failure && attempt < 3; attempt++) {
		sample_off_cpu__destroy(loaded->off_cpu);
		loaded->off_cpu = sample_off_cpu__open();
		if (!loaded->off_cpu)
			return error_set_system(err, errno, "open BPF programs");
		loaded->is_switch_typed = attempt == 0;
		failure = load_switches(options, loaded->cpu, loaded->off_cpu, arguments,
					loaded->is_switch_typed, attempt < 2);
	}
	return !failure ||
	       (load_failed(err, -failure), error_prefix(err, "profile threads off their CPU"));
}

static bool load_alloc(const struct kernel_load_options *options, struct loaded *loaded,
		       struct error *err)
{
	struct sample_alloc *programs = sample_alloc__open();
	int failure;

	loaded->alloc = programs;
	if (!programs)
		return error_set_system(err, errno, "open BPF programs");
	programs->rodata->max_user_frames = options->max_frames < ALLOC_FRAMES_MAX
						    ? options->max_frames
						    : (__u32)ALLOC_FRAMES_MAX;
	programs->rodata->wakeup_bytes = options->ring_bytes / 4;
	programs->rodata->only_filtered_pids = options->filter_pids > 0;
	programs->rodata->walk_by_rows = options->use_rows;
	programs->rodata->kernel_stack_bytes = stack_bytes();
	programs->rodata->alloc_budget_ns = options->alloc_budget_ns;
	keep_log(programs->obj);
	failure = share_maps(loaded->cpu, programs->obj);
	if (!failure)
		failure = sample_alloc__load(programs);
	return !failure ||
	       (load_failed(err, -failure), error_prefix(err, "profile what allocators do"));
}

static bool load_page_fault(const struct kernel_load_options *options, struct loaded *loaded,
			    struct error *err)
{
	struct sample_page_fault *programs = sample_page_fault__open();
	int failure;

	loaded->page_fault = programs;
	if (!programs)
		return error_set_system(err, errno, "open BPF programs");
	programs->rodata->max_user_frames = options->max_frames;
	programs->rodata->wakeup_bytes = options->ring_bytes / 4;
	programs->rodata->only_filtered_pids = options->filter_pids > 0;
	programs->rodata->walk_by_rows = options->use_rows;
	programs->rodata->kernel_stack_bytes = stack_bytes();
	programs->rodata->budget_ns = options->fault_budget_ns;
	programs->rodata->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	keep_log(programs->obj);
	failure = share_maps(loaded->cpu, programs->obj);
	if (!failure)
		failure = sample_page_fault__load(programs);
	return !failure || (load_failed(err, -failure), error_prefix(err, "profile page faults"));
}

static bool load(const struct kernel_load_options *options, struct loaded *loaded,
		 struct error *err)
{
	loaded->cpu = sample_cpu__open();
	if (!loaded->cpu)
		return error_set_system(err, errno, "open BPF programs");
	return load_cpu(options, loaded->cpu, err) &&
	       (!options->off_cpu || load_off_cpu(options, loaded, err)) &&
	       (!options->page_faults || load_page_fault(options, loaded, err)) &&
	       (!options->allocs || load_alloc(options, loaded, err));
}

static void unload(struct loaded *loaded)
{
	sample_alloc__destroy(loaded->alloc);
	sample_page_fault__destroy(loaded->page_fault);
	sample_off_cpu__destroy(loaded->off_cpu);
	sample_cpu__destroy(loaded->cpu);
}

static void list_cpu(const struct sample_cpu *cpu, int *programs, int *maps)
{
	programs[KERNEL_PROGRAM_SAMPLE_CPU] = bpf_program__fd(cpu->progs.sample_cpu);
	maps[KERNEL_MAP_SAMPLES] = bpf_map__fd(cpu->maps.samples);
	maps[KERNEL_MAP_COUNTERS] = bpf_map__fd(cpu->maps.counters);
	maps[KERNEL_MAP_FILTER_PIDS] = bpf_map__fd(cpu->maps.filter_pids);
	maps[KERNEL_MAP_SCRATCH] = bpf_map__fd(cpu->maps.scratch);
	maps[KERNEL_MAP_UNWIND_PAGES] = bpf_map__fd(cpu->maps.unwind_pages);
	maps[KERNEL_MAP_UNWIND_RULES] = bpf_map__fd(cpu->maps.unwind_rules);
	maps[KERNEL_MAP_UNWIND_POOLS] = bpf_map__fd(cpu->maps.unwind_pools);
	maps[KERNEL_MAP_PROCESSES] = bpf_map__fd(cpu->maps.processes);
	maps[KERNEL_MAP_PROCESS_HEADS] = bpf_map__fd(cpu->maps.process_heads);
	maps[KERNEL_MAP_PROCESS_BLOCKS] = bpf_map__fd(cpu->maps.process_blocks);
	maps[KERNEL_MAP_COPIES] = bpf_map__fd(cpu->maps.copies);
	maps[KERNEL_MAP_COPY_RATE] = bpf_map__fd(cpu->maps.copy_rate);
	maps[KERNEL_MAP_CONSTANTS] = bpf_map__fd(cpu->maps.rodata);
	maps[KERNEL_MAP_THREAD_CONTEXTS] = bpf_map__fd(cpu->maps.thread_contexts);
}

static void list_off_cpu(const struct sample_off_cpu *off_cpu, bool is_typed, int *programs,
			 int *maps)
{
	programs[KERNEL_PROGRAM_SWITCH] = bpf_program__fd(is_typed ? off_cpu->progs.switch_typed
								   : off_cpu->progs.switch_raw);
	programs[KERNEL_PROGRAM_WAKING] = bpf_program__fd(off_cpu->progs.thread_waking);
	programs[KERNEL_PROGRAM_SWEEP] = bpf_program__fd(off_cpu->progs.sweep);
	programs[KERNEL_PROGRAM_LOOK] = bpf_program__fd(off_cpu->progs.look);
	programs[KERNEL_PROGRAM_EXIT] = bpf_program__fd(off_cpu->progs.thread_exit);
	programs[KERNEL_PROGRAM_FREE] = bpf_program__fd(off_cpu->progs.thread_free);
	maps[KERNEL_MAP_THREADS] = bpf_map__fd(off_cpu->maps.threads);
	maps[KERNEL_MAP_SWITCH_RATES] = bpf_map__fd(off_cpu->maps.switch_rates);
	maps[KERNEL_MAP_UNSAMPLED] = bpf_map__fd(off_cpu->maps.unsampled);
	maps[KERNEL_MAP_LOOKS] = bpf_map__fd(off_cpu->maps.looks);
	maps[KERNEL_MAP_SWEEPS] = bpf_map__fd(off_cpu->maps.sweeps);
	maps[KERNEL_MAP_SWITCH_SCRATCH] = bpf_map__fd(off_cpu->maps.scratch);
	maps[KERNEL_MAP_SWITCH_CONSTANTS] = bpf_map__fd(off_cpu->maps.rodata);
}

static void list_alloc(const struct sample_alloc *alloc, int *programs, int *maps)
{
	programs[KERNEL_PROGRAM_GO_TAKEN] = bpf_program__fd(alloc->progs.go_taken);
	programs[KERNEL_PROGRAM_GO_GIVEN] = bpf_program__fd(alloc->progs.go_given);
	programs[KERNEL_PROGRAM_GO_TAKEN_BY_STACK] =
		bpf_program__fd(alloc->progs.go_taken_by_stack);
	programs[KERNEL_PROGRAM_GO_GIVEN_BY_STACK] =
		bpf_program__fd(alloc->progs.go_given_by_stack);
	programs[KERNEL_PROGRAM_LIBRARY_TAKEN] = bpf_program__fd(alloc->progs.library_taken);
	programs[KERNEL_PROGRAM_LIBRARY_GIVEN] = bpf_program__fd(alloc->progs.library_given);
	programs[KERNEL_PROGRAM_LIBRARY_BATCH] = bpf_program__fd(alloc->progs.library_batch);
	programs[KERNEL_PROGRAM_MALLOC] = bpf_program__fd(alloc->progs.malloc_called);
	programs[KERNEL_PROGRAM_CALLOC] = bpf_program__fd(alloc->progs.calloc_called);
	programs[KERNEL_PROGRAM_REALLOC] = bpf_program__fd(alloc->progs.realloc_called);
	programs[KERNEL_PROGRAM_POSIX_MEMALIGN] =
		bpf_program__fd(alloc->progs.posix_memalign_called);
	programs[KERNEL_PROGRAM_REALLOCARRAY] = bpf_program__fd(alloc->progs.reallocarray_called);
	maps[KERNEL_MAP_ALLOC_WINDOWS] = bpf_map__fd(alloc->maps.alloc_windows);
	maps[KERNEL_MAP_ALLOC_COUNTS] = bpf_map__fd(alloc->maps.alloc_counts);
	maps[KERNEL_MAP_ALLOC_CALLS] = bpf_map__fd(alloc->maps.alloc_calls);
	maps[KERNEL_MAP_ALLOC_COSTS] = bpf_map__fd(alloc->maps.alloc_costs);
	maps[KERNEL_MAP_ALLOC_SCRATCH] = bpf_map__fd(alloc->maps.scratch);
}

static void list_page_fault(const struct sample_page_fault *page_fault, int *programs, int *maps)
{
	programs[KERNEL_PROGRAM_FAULT_MINOR] = bpf_program__fd(page_fault->progs.minor_fault);
	programs[KERNEL_PROGRAM_FAULT_MAJOR] = bpf_program__fd(page_fault->progs.major_fault);
	maps[KERNEL_MAP_FAULT_RATES] = bpf_map__fd(page_fault->maps.stack_rates);
	maps[KERNEL_MAP_FAULT_SCRATCH] = bpf_map__fd(page_fault->maps.scratch);
	maps[KERNEL_MAP_FAULT_COPY_RATE] = bpf_map__fd(page_fault->maps.copy_rate);
	maps[KERNEL_MAP_FAULT_CONSTANTS] = bpf_map__fd(page_fault->maps.rodata);
}

static bool send_answer(const struct error *err, const struct loaded *loaded)
{
	struct loader_answer answer = {.kind = err->kind, .os_error = err->os_error};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(PASSED_DESCRIPTORS * sizeof(int))];
	} control = {0};
	struct iovec part = {&answer, sizeof answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	memcpy(answer.message, err->message, sizeof answer.message);
	if (err->kind == ERROR_NONE) {
		int all[PASSED_DESCRIPTORS], passed[PASSED_DESCRIPTORS];
		size_t count = 0;

		memset(all, -1, sizeof all);
		list_cpu(loaded->cpu, all, all + KERNEL_PROGRAM_COUNT);
		if (loaded->off_cpu)
			list_off_cpu(loaded->off_cpu, loaded->is_switch_typed, all,
				     all + KERNEL_PROGRAM_COUNT);
		if (loaded->alloc)
			list_alloc(loaded->alloc, all, all + KERNEL_PROGRAM_COUNT);
		if (loaded->page_fault)
			list_page_fault(loaded->page_fault, all, all + KERNEL_PROGRAM_COUNT);
		answer.is_switch_typed = loaded->is_switch_typed;
		for (int i = 0; i < PASSED_DESCRIPTORS; i++) {
			if (all[i] < 0)
				continue;
			answer.passed |= 1ULL << i;
			passed[count++] = all[i];
		}
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof *passed);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof *passed);
		memcpy(CMSG_DATA(&control.header), passed, count * sizeof *passed);
	}
	return sendmsg(LOADER_SOCKET, &message, MSG_NOSIGNAL) == sizeof answer;
}

_Static_assert(PASSED_DESCRIPTORS <= 64, "a bit for each in struct loader_answer");

int kernel_loader_main(int argc, char **argv)
{
	/* Before 5.11 maps count against this limit; where it may not be raised, loading says so.
	 */
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct kernel_load_options options;
	struct loaded loaded = {0};
	struct error err = {0};
	bool ok;

	if (argc != 1 + LOADER_NUMBERS || strcmp(argv[0], LOADER_NAME) != 0)
		return -1;
	options = (struct kernel_load_options){
		.ring_bytes = (uint32_t)strtoul(argv[1], NULL, 10),
		.copies_bytes = (uint32_t)strtoul(argv[2], NULL, 10),
		.max_frames = (uint32_t)strtoul(argv[3], NULL, 10),
		.period_ns = strtoull(argv[4], NULL, 10),
		.filter_pids = (uint32_t)strtoul(argv[5], NULL, 10),
		.use_rows = (uint32_t)strtoul(argv[6], NULL, 10),
		.stop_after_sample = (uint32_t)strtoul(argv[7], NULL, 10),
		.take_ticks = (uint32_t)strtoul(argv[8], NULL, 10),
		.off_cpu = (uint32_t)strtoul(argv[9], NULL, 10),
		.off_cpu_budget_ns = (uint32_t)strtoul(argv[10], NULL, 10),
		.threads_max = (uint32_t)strtoul(argv[11], NULL, 10),
		.page_faults = (uint32_t)strtoul(argv[12], NULL, 10),
		.fault_budget_ns = (uint32_t)strtoul(argv[13], NULL, 10),
		.allocs = (uint32_t)strtoul(argv[14], NULL, 10),
		.alloc_budget_ns = (uint32_t)strtoul(argv[15], NULL, 10),
	};
	libbpf_set_print(print_nothing);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	load(&options, &loaded, &err);
	ok = send_answer(&err, &loaded) && err.kind == ERROR_NONE;
	unload(&loaded);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- the parent --- */

void kernel_programs_init(struct kernel_programs *programs)
{
	memset(programs->programs, -1, sizeof programs->programs);
	memset(programs->maps, -1, sizeof programs->maps);
}

void kernel_programs_close(struct kernel_programs *programs)
{
	for (int i = 0; i < KERNEL_PROGRAM_COUNT; i++)
		if (programs->programs[i] >= 0)
			close(programs->programs[i]);
	for (int i = 0; i < KERNEL_MAP_COUNT; i++)
		if (programs->maps[i] >= 0)
			close(programs->maps[i]);
	kernel_programs_init(programs);
}

static bool start_child(const struct kernel_load_options *options, int socket, pid_t *child,
			struct error *err)
{
	const uint64_t values[LOADER_NUMBERS] = {
		options->ring_bytes,        options->copies_bytes, options->max_frames,
		options->period_ns,         options->filter_pids,  options->use_rows,
		options->stop_after_sample, options->take_ticks,   options->off_cpu,
		options->off_cpu_budget_ns, options->threads_max,  options->page_faults,
		options->fault_budget_ns,   options->allocs,       options->alloc_budget_ns,
	};
	char numbers[LOADER_NUMBERS][24];
	char name[] = LOADER_NAME;
	char *arguments[1 + LOADER_NUMBERS + 1] = {name};
	posix_spawn_file_actions_t actions;
	char path[PATH_MAX];
	int failure;

	for (int i = 0; i < LOADER_NUMBERS; i++) {
		snprintf(numbers[i], sizeof numbers[i], "%llu", (unsigned long long)values[i]);
		arguments[1 + i] = numbers[i];
	}
	failure = posix_spawn_file_actions_init(&actions);
	if (failure)
		return error_set_system(err, failure, "start BPF loader");
	failure = posix_spawn_file_actions_adddup2(&actions, socket, LOADER_SOCKET);
	if (!failure)
		failure = posix_spawn(child, self_path(path, sizeof path), &actions, NULL,
				      arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return failure ? error_set_system(err, failure, "start BPF loader") : true;
}

static void take_descriptors(struct msghdr *message, const struct loader_answer *answer,
			     struct kernel_programs *programs)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	const size_t count = (size_t)__builtin_popcountll(answer->passed);
	int passed[PASSED_DESCRIPTORS];

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    count > PASSED_DESCRIPTORS || header->cmsg_len != CMSG_LEN(count * sizeof *passed))
		return;
	memcpy(passed, CMSG_DATA(header), count * sizeof *passed);
	for (int i = 0, next = 0; i < PASSED_DESCRIPTORS; i++)
		if (answer->passed >> i & 1)
			*(i < KERNEL_PROGRAM_COUNT
				  ? &programs->programs[i]
				  : &programs->maps[i - KERNEL_PROGRAM_COUNT]) = passed[next++];
	programs->is_switch_typed = answer->is_switch_typed;
}

static bool receive_answer(int socket, struct kernel_programs *programs, struct error *err)
{
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	struct loader_answer answer;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(PASSED_DESCRIPTORS * sizeof(int))];
	} control;
	struct iovec part = {&answer, sizeof answer};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};
	ssize_t length;
	int ready;

	do
		ready = poll(&wait, 1, LOADER_TIMEOUT_MS);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "load BPF programs: the kernel has not answered for 60 s");
	do
		length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (length < 0 && errno == EINTR);
	if (length != sizeof answer)
		return error_set(err, ERROR_UNSUPPORTED,
				 "load BPF programs: the loading child ended without an answer");
	answer.message[sizeof answer.message - 1] = '\0';
	if (answer.kind != ERROR_NONE) {
		error_set(err, (enum error_kind)answer.kind, "%s", answer.message);
		if (err)
			err->os_error = answer.os_error;
		return false;
	}
	take_descriptors(&message, &answer, programs);
	if (programs->programs[KERNEL_PROGRAM_SAMPLE_CPU] < 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "load BPF programs: no descriptors came from the loading child "
				 "(the limit of open files may be too low)");
	return true;
}

int kernel_program_attach(const struct kernel_programs *programs, enum kernel_program program,
			  struct error *err)
{
	static const char *const names[KERNEL_PROGRAM_COUNT] = {
		[KERNEL_PROGRAM_SWITCH] = "sched_switch",
		[KERNEL_PROGRAM_WAKING] = "sched_waking",
		[KERNEL_PROGRAM_EXIT] = "sched_process_exit",
		[KERNEL_PROGRAM_FREE] = "sched_process_free",
	};
	bool is_typed = program == KERNEL_PROGRAM_SWITCH && programs->is_switch_typed;
	union bpf_attr attributes;
	long fd;

	memset(&attributes, 0, sizeof attributes);
	attributes.raw_tracepoint.name = is_typed ? 0 : (uintptr_t)names[program];
	attributes.raw_tracepoint.prog_fd = (uint32_t)programs->programs[program];
	fd = syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attributes, sizeof attributes);
	if (fd < 0)
		error_set_system(err, errno, "attach to the tracepoint %s", names[program]);
	return (int)fd;
}

int kernel_sweep_attach(const struct kernel_programs *programs, uint32_t tid, struct error *err)
{
	union bpf_iter_link_info one;
	union bpf_attr attributes;
	long fd;

	memset(&attributes, 0, sizeof attributes);
	attributes.link_create.prog_fd = (uint32_t)programs->programs[KERNEL_PROGRAM_SWEEP];
	attributes.link_create.attach_type = BPF_TRACE_ITER;
	if (tid) {
		memset(&one, 0, sizeof one);
		one.task.tid = tid;
		attributes.link_create.iter_info = (uintptr_t)&one;
		attributes.link_create.iter_info_len = sizeof one;
	}
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof attributes);
	if (fd < 0)
		error_set_system(err, errno, "iterate over threads");
	return (int)fd;
}

int kernel_sweep_open(int link, struct error *err)
{
	union bpf_attr attributes;
	long fd;

	memset(&attributes, 0, sizeof attributes);
	attributes.iter_create.link_fd = (uint32_t)link;
	fd = syscall(SYS_bpf, BPF_ITER_CREATE, &attributes, sizeof attributes);
	if (fd < 0)
		error_set_system(err, errno, "iterate over threads");
	return (int)fd;
}

bool kernel_program_run(const struct kernel_programs *programs, enum kernel_program program,
			uint32_t *returned, struct error *err)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof attributes);
	attributes.test.prog_fd = (uint32_t)programs->programs[program];
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attributes, sizeof attributes) < 0)
		return error_set_system(err, errno, "run a BPF program");
	*returned = attributes.test.retval;
	return true;
}

bool kernel_load(const struct kernel_load_options *options, void (*meanwhile)(void *context),
		 void *context, struct kernel_programs *programs, struct error *err)
{
	int sockets[2] = {-1, -1};
	pid_t child = -1;
	bool ok = false;

	kernel_programs_init(programs);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
		error_set_system(err, errno, "socket to the BPF loader");
		goto out;
	}
	if (!start_child(options, sockets[1], &child, err))
		goto out;
	close(sockets[1]); /* so that a child that dies ends the wait */
	sockets[1] = -1;
	if (meanwhile)
		meanwhile(context);
	if (!receive_answer(sockets[0], programs, err))
		goto out;
	ok = true;
out:
	for (int i = 0; i < 2; i++)
		if (sockets[i] >= 0)
			close(sockets[i]);
	if (child > 0) {
		if (!ok)
			kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return ok;
}
