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
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/sample_cpu.skel.h"
#include "common/self_path.h"
#include "node-agent/kernel/privileges.h"

#define LOADER_NAME "farflame-loader" /* argv[0] of the child; also what ps shows */

enum {
	LOADER_SOCKET = 3,
	LOADER_NUMBERS = 7,        /* the members of struct kernel_load_options */
	LOADER_TIMEOUT_MS = 60000, /* a verifier on a slow emulated machine takes seconds */
	PASSED_DESCRIPTORS = 1 + KERNEL_MAP_COUNT,
	VERIFIER_LOG_BYTES = 64 << 10,
};

/* What the child says, with the descriptors attached when kind is ERROR_NONE. Same program on both
 * sides, so the memory layout is the format. */
struct loader_answer {
	uint32_t kind; /* enum error_kind */
	int32_t os_error;
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

static bool load(const struct kernel_load_options *options, struct sample_cpu *programs,
		 struct error *err)
{
	int failure;

	programs->rodata->period_ns = options->period_ns;
	programs->rodata->max_user_frames = options->max_frames;
	programs->rodata->wakeup_bytes = options->ring_bytes / 4;
	programs->rodata->only_filtered_pids = options->filter_pids > 0;
	programs->rodata->walk_by_rows = options->use_rows;
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

static bool send_answer(const struct error *err, const struct sample_cpu *programs)
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
		int passed[PASSED_DESCRIPTORS] = {
			bpf_program__fd(programs->progs.sample_cpu),
			[1 + KERNEL_MAP_SAMPLES] = bpf_map__fd(programs->maps.samples),
			[1 + KERNEL_MAP_COUNTERS] = bpf_map__fd(programs->maps.counters),
			[1 + KERNEL_MAP_FILTER_PIDS] = bpf_map__fd(programs->maps.filter_pids),
			[1 + KERNEL_MAP_SCRATCH] = bpf_map__fd(programs->maps.scratch),
			[1 + KERNEL_MAP_UNWIND_PAGES] = bpf_map__fd(programs->maps.unwind_pages),
			[1 + KERNEL_MAP_UNWIND_RULES] = bpf_map__fd(programs->maps.unwind_rules),
			[1 + KERNEL_MAP_UNWIND_POOLS] = bpf_map__fd(programs->maps.unwind_pools),
			[1 + KERNEL_MAP_PROCESSES] = bpf_map__fd(programs->maps.processes),
			[1 + KERNEL_MAP_PROCESS_HEADS] = bpf_map__fd(programs->maps.process_heads),
			[1 + KERNEL_MAP_PROCESS_BLOCKS] =
				bpf_map__fd(programs->maps.process_blocks),
			[1 + KERNEL_MAP_COPIES] = bpf_map__fd(programs->maps.copies),
			[1 + KERNEL_MAP_COPY_RATE] = bpf_map__fd(programs->maps.copy_rate),
			[1 + KERNEL_MAP_CONSTANTS] = bpf_map__fd(programs->maps.rodata),
		};

		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof passed);
		memcpy(CMSG_DATA(&control.header), passed, sizeof passed);
	}
	return sendmsg(LOADER_SOCKET, &message, MSG_NOSIGNAL) == sizeof answer;
}

int kernel_loader_main(int argc, char **argv)
{
	/* Before 5.11 maps count against this limit; where it may not be raised, loading says so.
	 */
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct kernel_load_options options;
	struct sample_cpu *programs;
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
	};
	libbpf_set_print(print_nothing);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	programs = sample_cpu__open();
	if (!programs)
		error_set_system(&err, errno, "open BPF programs");
	else
		load(&options, programs, &err);
	ok = send_answer(&err, programs) && err.kind == ERROR_NONE;
	sample_cpu__destroy(programs);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- the parent --- */

void kernel_programs_init(struct kernel_programs *programs)
{
	programs->sample_cpu = -1;
	for (int i = 0; i < KERNEL_MAP_COUNT; i++)
		programs->maps[i] = -1;
}

void kernel_programs_close(struct kernel_programs *programs)
{
	if (programs->sample_cpu >= 0)
		close(programs->sample_cpu);
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
		options->stop_after_sample,
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

static void take_descriptors(struct msghdr *message, struct kernel_programs *programs)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int passed[PASSED_DESCRIPTORS];

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof passed))
		return;
	memcpy(passed, CMSG_DATA(header), sizeof passed);
	programs->sample_cpu = passed[0];
	memcpy(programs->maps, passed + 1, sizeof programs->maps);
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
	take_descriptors(&message, programs);
	if (programs->sample_cpu < 0)
		return error_set(err, ERROR_UNSUPPORTED,
				 "load BPF programs: no descriptors came from the loading child "
				 "(the limit of open files may be too low)");
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
