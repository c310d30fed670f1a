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
#include "node-agent/kernel/own_child.h"
#include "node-agent/kernel/privileges.h"

#define LOADER_NAME "farflame-loader" /* argv[0] of the child; also what ps shows */

enum {
	LOADER_SOCKET = 3,
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
	uint64_t passed; /* bit n: descriptor n is there */
	char message[sizeof((struct error *)NULL)->message];
};

#define OPTION_NAME(name_) #name_,
#define BUDGET_NAME(name_) "budget_ns." #name_,
static const char *const option_names[] = {KERNEL_LOAD_OPTIONS(OPTION_NAME)
						   KERNEL_SOURCES(BUDGET_NAME)};

enum { OPTION_COUNT = sizeof option_names / sizeof *option_names };

_Static_assert(sizeof(struct kernel_load_options) == OPTION_COUNT * sizeof(uint64_t),
	       "read and written as an array");

/* --- the child --- */

static char verifier_log[VERIFIER_LOG_BYTES];

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

/* The verifier's reason is the last line before its statistics ("verification time 1250 usec",
 * "stack depth 0+8", "processed 38215 insns …"). */
static void verifier_reason(char *reason, size_t room)
{
	static const char *const statistics[] = {"verification time ", "processed "};
	char *end = NULL, *line;

	for (size_t i = 0; i < 2 && !end; i++)
		end = strstr(verifier_log, statistics[i]);
	if (end && end > verifier_log)
		end--;
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

/* Of a thread in the kernel: THREAD_SIZE, which is not less than a page. Asked before 5.15 alone,
 * where the kernel does not say where registers are. */
static uint32_t stack_bytes(void)
{
	const long page = sysconf(_SC_PAGESIZE);

	return page > KERNEL_STACK_BYTES ? (uint32_t)page : KERNEL_STACK_BYTES;
}

/* What every source's programs are told. */
#define SET_COMMON(constants_, options_, frames_most_)                                             \
	do {                                                                                       \
		(constants_)->max_user_frames = (options_)->max_frames < (frames_most_)            \
							? (__u32)(options_)->max_frames            \
							: (__u32)(frames_most_);                   \
		(constants_)->wakeup_bytes = (__u32)(options_)->ring_bytes / 4;                    \
		(constants_)->only_filtered_pids = (options_)->filter_pids > 0;                    \
		(constants_)->walk_by_rows = (options_)->use_rows != 0;                            \
		(constants_)->kernel_stack_bytes = stack_bytes();                                  \
	} while (0)

/* Each: before its programs are loaded, once more with every attempt. */

static int prepare_cpu(const struct kernel_load_options *options, void *skeleton, int attempt)
{
	const struct sample_cpu *programs = skeleton;
	int failure;

	(void)attempt;
	SET_COMMON(programs->rodata, options, USER_FRAMES_MAX);
	programs->rodata->period_ns = options->period_ns;
	programs->rodata->take_ticks = (options->wants & KERNEL_WANTS_TICKS) != 0;
	programs->rodata->stop_after_sample = options->stop_after_sample && options->filter_pids;
	failure = bpf_map__set_max_entries(programs->maps.samples, (__u32)options->ring_bytes);
	if (!failure)
		failure = bpf_map__set_max_entries(programs->maps.copies,
						   (__u32)options->copies_bytes);
	if (!failure && options->filter_pids)
		failure = bpf_map__set_max_entries(programs->maps.filter_pids,
						   (__u32)options->filter_pids);
	return failure;
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

/* First without a trampoline for want of types, then also without an iterator. */
static int prepare_off_cpu(const struct kernel_load_options *options, void *skeleton, int attempt)
{
	const struct sample_off_cpu *programs = skeleton;
	const unsigned arguments = switch_arguments();
	int failure;

	if (attempt == 0 && !arguments)
		return -ENOTSUP;
	SET_COMMON(programs->rodata, options, SWITCH_FRAMES_MAX);
	programs->rodata->has_prev_state = arguments >= 5;
	programs->rodata->take_run_queue = (options->wants & KERNEL_WANTS_RUN_QUEUE) != 0;
	programs->rodata->take_wakers = (options->wants & KERNEL_WANTS_WAKERS) != 0;
	programs->rodata->budget_ns =
		options->budgets_ns[KERNEL_SOURCE_off_cpu] / 2; /* the other half is for sweeps */
	bpf_program__set_autoload(programs->progs.switch_typed, attempt == 0);
	bpf_program__set_autoload(programs->progs.switch_raw, attempt > 0);
	bpf_program__set_autoload(programs->progs.sweep, attempt < 2);
	bpf_program__set_autoload(
		programs->progs.thread_waking,
		(options->wants & (KERNEL_WANTS_RUN_QUEUE | KERNEL_WANTS_WAKERS)) != 0);
	failure = bpf_map__set_max_entries(programs->maps.threads, (__u32)options->threads_max);
	return failure ? failure
		       : bpf_map__set_max_entries(programs->maps.unsampled,
						  (__u32)options->threads_max);
}

static int prepare_page_fault(const struct kernel_load_options *options, void *skeleton,
			      int attempt)
{
	const struct sample_page_fault *programs = skeleton;

	(void)attempt;
	SET_COMMON(programs->rodata, options, USER_FRAMES_MAX);
	programs->rodata->budget_ns = options->budgets_ns[KERNEL_SOURCE_page_fault];
	programs->rodata->page_bytes = (__u32)sysconf(_SC_PAGESIZE);
	return 0;
}

static int prepare_alloc(const struct kernel_load_options *options, void *skeleton, int attempt)
{
	const struct sample_alloc *programs = skeleton;

	(void)attempt;
	SET_COMMON(programs->rodata, options, ALLOC_FRAMES_MAX);
	programs->rodata->alloc_budget_ns = (__u32)options->budgets_ns[KERNEL_SOURCE_alloc];
	return 0;
}

/* --- any source --- */

struct skeleton { /* how each begins, bpftool-gen(8) */
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *programs;
};

#define SOURCE_OPEN(name_)                  \
	static void *open_##name_(void)     \
	{                                   \
		return sample_##name_##__open(); \
	}
KERNEL_SOURCES(SOURCE_OPEN)

static const struct source_loading {
	void *(*open)(void);
	int (*prepare)(const struct kernel_load_options *options, void *skeleton, int attempt);
	int attempts;
	const char *what_for; /* said when it cannot be */
	uint32_t wanted_by;   /* enum kernel_wants; 0: always */
} sources[KERNEL_SOURCE_COUNT] = {
	[KERNEL_SOURCE_cpu] = {open_cpu, prepare_cpu, 1, NULL, 0},
	[KERNEL_SOURCE_off_cpu] = {open_off_cpu, prepare_off_cpu, 3, "profile threads off their CPU",
			    KERNEL_WANTS_OFF_CPU},
	[KERNEL_SOURCE_page_fault] = {open_page_fault, prepare_page_fault, 1, "profile page faults",
			       KERNEL_WANTS_FAULTS},
	[KERNEL_SOURCE_alloc] = {open_alloc, prepare_alloc, 1, "profile what allocators do",
			  KERNEL_WANTS_ALLOCS},
};

#define OWN_MAP_NAME(source_, map_) #map_,

/* Whatever both have is one, but for what is a source's own. */
static int share_maps(const struct skeleton *from, const struct skeleton *to)
{
	static const char *const own[] = {KERNEL_OWN_MAPS(OWN_MAP_NAME, )};
	struct bpf_map *map, *shared;

	bpf_object__for_each_map(map, to->programs)
	{
		const char *name = bpf_map__name(map);
		bool is_own = strchr(name, '.'); /* rodata */

		for (size_t i = 0; i < sizeof own / sizeof *own; i++)
			is_own |= !strcmp(name, own[i]);
		if (is_own)
			continue;
		shared = bpf_object__find_map_by_name(from->programs, name);
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

static void close_source(struct skeleton *skeleton)
{
	if (skeleton)
		bpf_object__destroy_skeleton(skeleton->skeleton);
	free(skeleton);
}

static bool load_source(const struct kernel_load_options *options, enum kernel_source number,
			struct skeleton **loaded, struct error *err)
{
	const struct source_loading *source = &sources[number];
	int failure = -ENOTSUP;

	for (int attempt = 0; failure && attempt < source->attempts; attempt++) {
		close_source(loaded[number]);
		loaded[number] = source->open();
		if (!loaded[number])
			return error_set_system(err, errno, "open BPF programs");
		keep_log(loaded[number]->programs);
		failure = source->prepare(options, loaded[number], attempt);
		if (!failure && number != KERNEL_SOURCE_cpu)
			failure = share_maps(loaded[KERNEL_SOURCE_cpu], loaded[number]);
		if (!failure)
			failure = bpf_object__load_skeleton(loaded[number]->skeleton);
	}
	if (!failure)
		return true;
	load_failed(err, -failure);
	return source->what_for ? error_prefix(err, "%s", source->what_for) : false;
}

static bool load(const struct kernel_load_options *options, struct skeleton **loaded,
		 struct error *err)
{
	for (int source = 0; source < KERNEL_SOURCE_COUNT; source++)
		if ((!sources[source].wanted_by || options->wants & sources[source].wanted_by) &&
		    !load_source(options, (enum kernel_source)source, loaded, err))
			return false;
	return true;
}

/* Where a skeleton has it. */
struct descriptor_place {
	enum kernel_source source;
	size_t offset;
};

#define PROGRAM_PLACE(name_, source_, program_) \
	{KERNEL_SOURCE_##source_, offsetof(struct sample_##source_, progs.program_)},
#define MAP_PLACE(name_, source_, map_) \
	{KERNEL_SOURCE_##source_, offsetof(struct sample_##source_, maps.map_)},
#define OWN_MAP_PLACE(source_, map_) MAP_PLACE(, source_, map_)
#define OWN_MAP_PLACES(source_)      KERNEL_OWN_MAPS(OWN_MAP_PLACE, source_)

static void list_descriptors(struct skeleton *const *loaded, int *all)
{
	static const struct descriptor_place places[] = {KERNEL_PROGRAMS(PROGRAM_PLACE)
								 KERNEL_MAPS(MAP_PLACE)
								 KERNEL_SOURCES(OWN_MAP_PLACES)};

	for (int i = 0; i < PASSED_DESCRIPTORS; i++) {
		const struct skeleton *skeleton = loaded[places[i].source];
		void *const *at = (void *const *)((const char *)skeleton + places[i].offset);

		all[i] = !skeleton                  ? -1
			 : i < KERNEL_PROGRAM_COUNT ? bpf_program__fd(*at)
						    : bpf_map__fd(*at);
	}
}

static bool send_answer(const struct error *err, struct skeleton *const *loaded)
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

		list_descriptors(loaded, all);
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

static bool read_options(char **arguments, uint64_t *values)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		const size_t length = strlen(option_names[i]);

		if (strncmp(arguments[i], option_names[i], length) || arguments[i][length] != '=')
			return false;
		values[i] = strtoull(arguments[i] + length + 1, NULL, 10);
	}
	return true;
}

int kernel_loader_main(int argc, char **argv)
{
	/* Before 5.11 maps count against this limit; where it may not be raised, loading says so.
	 */
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct kernel_load_options options;
	struct skeleton *loaded[KERNEL_SOURCE_COUNT] = {NULL};
	struct error err = {0};
	bool ok;

	if (argc != 1 + OPTION_COUNT || strcmp(argv[0], LOADER_NAME) != 0)
		return -1;
	if (!read_options(argv + 1, (uint64_t *)&options))
		return EXIT_FAILURE;
	libbpf_set_print(print_nothing);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	load(&options, loaded, &err);
	ok = send_answer(&err, loaded) && err.kind == ERROR_NONE;
	for (int source = KERNEL_SOURCE_COUNT - 1; source >= 0; source--)
		close_source(loaded[source]);
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
	const uint64_t *values = (const uint64_t *)options;
	char texts[OPTION_COUNT][48];
	char name[] = LOADER_NAME;
	char *arguments[1 + OPTION_COUNT + 1] = {name};
	posix_spawn_file_actions_t actions;
	char path[PATH_MAX];
	int failure;

	for (int i = 0; i < OPTION_COUNT; i++) {
		snprintf(texts[i], sizeof texts[i], "%s=%llu", option_names[i],
			 (unsigned long long)values[i]);
		arguments[1 + i] = texts[i];
	}
	failure = posix_spawn_file_actions_init(&actions);
	if (failure)
		return error_set_system(err, failure, "start BPF loader");
	failure = posix_spawn_file_actions_adddup2(&actions, socket, LOADER_SOCKET);
	if (!failure)
		failure = posix_spawn(child, self_path(path, sizeof path), &actions, NULL,
				      arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failure)
		return error_set_system(err, failure, "start BPF loader");
	own_child_goes_first(*child);
	return true;
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
		[KERNEL_PROGRAM_SWITCH_TYPED] = "sched_switch",
		[KERNEL_PROGRAM_SWITCH_RAW] = "sched_switch",
		[KERNEL_PROGRAM_WAKING] = "sched_waking",
		[KERNEL_PROGRAM_EXIT] = "sched_process_exit",
		[KERNEL_PROGRAM_FREE] = "sched_process_free",
	};
	bool is_typed = program == KERNEL_PROGRAM_SWITCH_TYPED; /* it knows its tracepoint */
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
