/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/sandbox.h"
#include "common/own_program.h"
#include "symbol-server/symbolize/convert/debug_needs.h"
#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

enum {
	LOWEST_MOVED_FD = 64,
	ARGUMENTS_MAX = 8,
	MEMORY_BASE_MB = 512,  /* the program with its libraries, and small files */
	MEMORY_PER_INPUT = 12, /* zlib and zstd pack DWARF to a third; names and the table take as
				  much again */
	MEMORY_MAX_MB = 16 << 10,
	CPU_BASE_SECONDS = 60,
	CPU_MB_PER_SECOND = 2,
	NICENESS = 10,
	POLL_MS = 20, /* where the kernel has no pidfd_open (before 5.3) */
};

/* ---- running a child ---- */

static int spawn_child(const struct worker_child *child, const int *fds, pid_t *pid)
{
	char *arguments[ARGUMENTS_MAX + 2] = {(char *)"farflame-server"};
	posix_spawn_file_actions_t actions;
	int rc;

	for (size_t i = 0; i < ARGUMENTS_MAX && child->arguments[i]; i++)
		arguments[i + 1] = (char *)child->arguments[i];
	posix_spawn_file_actions_init(&actions);
	for (size_t i = 0; i < child->fd_count; i++)
		posix_spawn_file_actions_adddup2(&actions, fds[i], WORKER_FIRST_FD + (int)i);
	rc = own_program_start(arguments, (char *const *)child->environment, &actions, pid);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* The descriptors are moved up first: 3, 4, 5 … may be among them. */
static bool start_child(const struct worker_child *child, pid_t *pid, struct error *err)
{
	int lowest = WORKER_FIRST_FD + (int)child->fd_count;
	int fds[WORKER_FDS_MAX] = {0};
	size_t moved = 0;
	int rc = 0;

	for (; moved < child->fd_count && !rc; moved++) {
		fds[moved] = fcntl(child->fds[moved], F_DUPFD_CLOEXEC,
				   lowest > LOWEST_MOVED_FD ? lowest : LOWEST_MOVED_FD);
		if (fds[moved] < 0) {
			rc = errno;
			break;
		}
	}
	if (!rc)
		rc = spawn_child(child, fds, pid);
	while (moved-- > 0)
		close(fds[moved]);
	return !rc || error_set_system(err, rc, "start a worker process");
}

/* Waits for the child's end, the stop or the time. True: it ended. */
static bool wait_child(const struct worker_child *child, pid_t pid, int *status, struct error *err)
{
	int64_t end = monotonic_ms() + child->limit_ms;
	struct pollfd wait[2] = {{.fd = child->stop_fd, .events = POLLIN},
				 {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN}};
	bool has_ended = false;

	while (!(has_ended = waitpid(pid, status, WNOHANG) == pid)) {
		int64_t left = end - monotonic_ms();

		if (left <= 0) {
			error_set(err, ERROR_LIMIT, "not done after %" PRId64 " s",
				  child->limit_ms / 1000);
			break;
		}
		if (wait[1].fd < 0 && left > POLL_MS)
			left = POLL_MS;
		if (poll(wait, wait[1].fd < 0 ? 1 : 2, left > 60000 ? 60000 : (int)left) > 0 &&
		    wait[0].revents) {
			error_set(err, ERROR_BUSY, "the server is stopping");
			break;
		}
	}
	if (wait[1].fd >= 0)
		close(wait[1].fd);
	return has_ended;
}

bool worker_run(const struct worker_child *child, int *status, struct error *err)
{
	pid_t pid;

	if (!start_child(child, &pid, err))
		return false;
	if (wait_child(child, pid, status, err))
		return true;
	kill(-pid, SIGKILL); /* a group of its own */
	kill(pid, SIGKILL);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return false;
}

/* In a child: replaces what is written on its descriptor by the sentence. */
static void __attribute__((noreturn)) fail(const struct error *err)
{
	ssize_t length = (ssize_t)strlen(err->message) + 1; /* the NUL ends it */

	_exit(pwrite(WORKER_FIRST_FD, err->message, (size_t)length, 0) == length
		      ? WORKER_EXIT_SENTENCE
		      : EXIT_FAILURE);
}

static void read_sentence(int output, char *text, size_t room)
{
	ssize_t length = pread(output, text, room - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
}

/* ---- converting: the server's side ---- */

static struct sandbox_limits limits_for(uint64_t input_bytes)
{
	uint64_t mb = MEMORY_BASE_MB + (input_bytes >> 20) * MEMORY_PER_INPUT;

	return (struct sandbox_limits){
		.memory_bytes = (mb < MEMORY_MAX_MB ? mb : MEMORY_MAX_MB) << 20,
		.cpu_seconds = CPU_BASE_SECONDS + (uint32_t)(input_bytes >> 20) / CPU_MB_PER_SECOND,
		.output_bytes = WORKER_TABLE_MAX,
	};
}

static bool explain_signal(int number, const struct sandbox_limits *limits, struct error *err)
{
	switch (number) {
	case SIGXCPU:
	case SIGKILL:
		return error_set(err, ERROR_LIMIT,
				 "conversion passed its limit of %u s of CPU time, or was killed",
				 limits->cpu_seconds);
	case SIGXFSZ:
		return error_set(err, ERROR_LIMIT, "its table passes %d MB",
				 WORKER_TABLE_MAX >> 20);
	case SIGSYS:
		return error_set(err, ERROR_FORMAT,
				 "conversion asked for a forbidden system call (SIGSYS)");
	case SIGBUS:
		return error_set(err, ERROR_FORMAT,
				 "the file changed while it was converted (SIGBUS)");
	default:
		return error_set(err, ERROR_FORMAT, "conversion crashed: signal %d (%s)", number,
				 strsignal(number));
	}
}

static bool explain_end(int status, int output, const struct sandbox_limits *limits,
			struct error *err)
{
	char sentence[300];

	if (WIFSIGNALED(status))
		return explain_signal(WTERMSIG(status), limits, err);
	if (WEXITSTATUS(status) == WORKER_EXIT_SENTENCE) {
		read_sentence(output, sentence, sizeof(sentence));
		return error_set(err, ERROR_FORMAT, "%s", sentence);
	}
	if (WEXITSTATUS(status)) /* a library had no memory */
		return error_set(err, ERROR_LIMIT,
				 "conversion passed its limit of %" PRIu64 " MB of memory",
				 limits->memory_bytes >> 20);
	return true;
}

static bool read_output(int output, struct buffer *out, struct error *err)
{
	struct stat stat;
	uint8_t *room;

	if (fstat(output, &stat))
		return error_set_system(err, errno, "worker's answer");
	if (stat.st_size < 0 || stat.st_size > WORKER_TABLE_MAX)
		return error_set(err, ERROR_FORMAT, "worker's answer is too large");
	room = buffer_reserve(out, (size_t)stat.st_size);
	if (!room)
		return error_set(err, ERROR_MEMORY, "no memory for an answer of %lld bytes",
				 (long long)stat.st_size);
	for (size_t got = 0; got < (size_t)stat.st_size;) {
		ssize_t more = pread(output, room + got, (size_t)stat.st_size - got, (off_t)got);

		if (more <= 0)
			return error_set_system(err, errno, "read the worker's answer");
		got += (size_t)more;
	}
	out->length += (size_t)stat.st_size;
	return true;
}

static uint64_t size_of(const int *fds, size_t count)
{
	struct stat stat;
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		if (!fstat(fds[i], &stat) && stat.st_size > 0)
			bytes += (uint64_t)stat.st_size;
	return bytes;
}

static bool run_conversion(const int *fds, size_t count, const char *mode, int stop_fd,
			   const struct sandbox_limits *limits, struct error *err)
{
	const char *environment[] = {getenv("ASAN_OPTIONS") ? "ASAN_OPTIONS=detect_leaks=0" : NULL,
				     NULL};
	char numbers[3][24];
	const char *arguments[] = {
		SYMBOL_WORKER_CONVERT, mode, numbers[0], numbers[1], numbers[2], NULL};
	struct worker_child child = {
		.arguments = arguments,
		.environment = environment,
		.fds = fds,
		.fd_count = count,
		.stop_fd = stop_fd,
		.limit_ms = (limits->cpu_seconds * INT64_C(4) + 60) * 1000,
	};
	int status;

	snprintf(numbers[0], sizeof(numbers[0]), "%zu", count - 1);
	snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, limits->memory_bytes);
	snprintf(numbers[2], sizeof(numbers[2]), "%u", limits->cpu_seconds);
	return worker_run(&child, &status, err) && explain_end(status, fds[0], limits, err);
}

/* One run over the files; what the worker wrote is appended to out. */
static bool run_worker(const int *fds, size_t count, const char *mode, int stop_fd,
		       struct buffer *out, struct error *err)
{
	struct sandbox_limits limits = limits_for(size_of(fds, count));
	int all[DEBUG_INPUTS_MAX + 1] = {memfd_create("symbol-table", MFD_CLOEXEC)};
	bool ok;

	if (all[0] < 0)
		return error_set_system(err, errno, "memory for the worker's answer");
	if (count > DEBUG_INPUTS_MAX)
		count = DEBUG_INPUTS_MAX;
	memcpy(all + 1, fds, count * sizeof(*fds));
	ok = run_conversion(all, count + 1, mode, stop_fd, &limits, err) &&
	     read_output(all[0], out, err);
	close(all[0]);
	return ok;
}

struct symbol_table *worker_convert(const int *fds, size_t count, bool names_only, int stop_fd,
				    size_t table_limit, struct buffer *packed, struct error *err)
{
	struct symbol_table *table;

	if (!run_worker(fds, count, names_only ? "names" : "all", stop_fd, packed, err))
		return NULL;
	if (!packed->length) {
		error_set(err, ERROR_FORMAT, "conversion left no table");
		return NULL;
	}
	table = symbol_table_unpack(packed->bytes, packed->length, table_limit, err);
	if (!table)
		error_prefix(err, "conversion's answer");
	return table;
}

bool worker_needs(int fd, int stop_fd, struct buffer *text, struct error *err)
{
	return run_worker(&fd, 1, "needs", stop_fd, text, err);
}

/* ---- converting: the worker's side ---- */

static bool map_inputs(struct debug_input *inputs, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		int fd = WORKER_FIRST_FD + 1 + (int)i;
		struct stat stat;

		if (fstat(fd, &stat))
			return error_set_system(err, errno, "its size");
		if (stat.st_size <= 0)
			return error_set(err, ERROR_FORMAT, "the file is empty");
		inputs[i].length = (size_t)stat.st_size;
		/* Writable and private: libelf may convert in place. */
		inputs[i].bytes = mmap(NULL, inputs[i].length, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_NORESERVE, fd, 0);
		if (inputs[i].bytes == MAP_FAILED)
			return error_set_system(err, errno, "map %zu MB", inputs[i].length >> 20);
		inputs[i].is_mapping = true;
	}
	return true;
}

static bool write_output(const struct buffer *packed, struct error *err)
{
	for (size_t done = 0; done < packed->length;) {
		ssize_t more = write(WORKER_FIRST_FD, packed->bytes + done, packed->length - done);

		if (more <= 0)
			return error_set_system(err, errno, "write the table");
		done += (size_t)more;
	}
	return true;
}

static bool work(const char *mode, const struct debug_input *inputs, size_t count,
		 struct buffer *out, struct error *err)
{
	if (!strcmp(mode, "needs"))
		return debug_needs_list(inputs, out, err);
	return debug_reader_convert(inputs, count, !strcmp(mode, "names"), out, err);
}

static void convert_main(int argc, char **argv)
{
	struct debug_input inputs[DEBUG_INPUTS_MAX];
	struct sandbox_limits limits = {.output_bytes = WORKER_TABLE_MAX};
	struct buffer packed;
	struct error err = {0};
	size_t count;

	if (argc != 6 || (count = strtoul(argv[3], NULL, 10)) - 1 >= DEBUG_INPUTS_MAX)
		_exit(EXIT_FAILURE);
	limits.memory_bytes = strtoull(argv[4], NULL, 10);
	limits.cpu_seconds = (uint32_t)strtoul(argv[5], NULL, 10);
	close_range(WORKER_FIRST_FD + 1 + (unsigned)count, ~0U, 0);
	if (!strcmp(argv[2], "all")) /* the others are done in milliseconds, and waited for */
		setpriority(PRIO_PROCESS, 0, NICENESS);
	buffer_init(&packed, WORKER_TABLE_MAX);
	if (!map_inputs(inputs, count, &err) || !sandbox_enter(&limits, &err) ||
	    !work(argv[2], inputs, count, &packed, &err) || !write_output(&packed, &err))
		fail(&err);
	_exit(EXIT_SUCCESS);
}

void symbol_worker_main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], SYMBOL_WORKER_CONVERT) != 0 &&
			 strcmp(argv[1], SYMBOL_WORKER_FETCH) != 0))
		return;
	prctl(PR_SET_NAME, "farflame-worker");
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind by a killed server */
	if (!strcmp(argv[1], SYMBOL_WORKER_CONVERT))
		convert_main(argc, argv);
	symbol_source_fetch_main(argc, argv);
}
