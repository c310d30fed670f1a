/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side: starts the child, checks what it says. */
#include "symbol-server/symbolize/sources/package_files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "symbol-server/symbolize/sources/file_index.h"
#include "symbol-server/symbolize/worker.h"

enum {
	LIST_BYTES_MAX = 64 << 20,
	MEMBERS_MAX = 400000,
	NICENESS = 10,
	CPU_BASE_SECONDS = 60, /* and a second for each MB of the package */
	MEMORY_BASE_MB = 512,  /* the program, its libraries, what unpacking needs */
	/* Debug information is packed to a fifth or tenth. What unpacks to more is not that. */
	UNPACKED_PER_BYTE = 64,
	UNPACKED_BASE_MB = 256,
	UNPACKED_MAX_MB = 64 << 10,
	MAPPED_MAX_MB = 8 << 10, /* address space for the member that is looked at */
};

#define READ_PACKAGE "--read-package"
#define LIST_END     "end"

bool package_files_is_one(const char *name)
{
	static const char *const endings[] = {".deb", ".ddeb", ".rpm"};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (length > strlen(endings[i]) &&
		    !strcmp(name + length - strlen(endings[i]), endings[i]))
			return true;
	return false;
}

/* ---- lines ---- */

static bool is_path(const char *path)
{
	size_t length = strlen(path);

	if (!length || length >= PATH_MAX || *path == '/')
		return false;
	for (const char *at = path; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			return false;
	return true;
}

bool package_member_parse(char *line, struct package_member *member)
{
	char *content = strchr(line, ' '), *path = content ? strchr(content + 1, ' ') : NULL;
	char *end;

	if (!path)
		return false;
	*content++ = '\0';
	*path++ = '\0';
	member->id.length = 0;
	if (strcmp(line, "-") != 0 && !build_id_parse(&member->id, line, strlen(line)))
		return false;
	if (*content < '0' || *content > '9')
		return false;
	member->content = (unsigned)strtoul(content, &end, 10);
	member->path = path;
	return !*end && member->content <= FILE_CONTENT_MASK && is_path(path) &&
	       (member->id.length || !(member->content & FILE_HAS_GNU_ID));
}

size_t package_member_format(const struct package_member *member, char *line, size_t room)
{
	char hex[BUILD_ID_HEX] = "-";
	int length;

	if (!is_path(member->path))
		return 0;
	if (member->id.length)
		build_id_format(&member->id, hex);
	length = snprintf(line, room, "%s %u %s\n", hex, member->content, member->path);
	return length > 0 && (size_t)length < room ? (size_t)length : 0;
}

static bool read_lines(char *text, bool (*each)(void *, const struct package_member *),
		       void *context, struct error *err)
{
	struct package_member member;
	size_t count = 0;

	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!strcmp(line, LIST_END))
			return true;
		if (!package_member_parse(line, &member))
			break;
		if (++count > MEMBERS_MAX)
			return error_set(err, ERROR_LIMIT, "more than %d ELF files", MEMBERS_MAX);
		if (!each(context, &member))
			return error_set(err, ERROR_LIMIT, "more files than are looked at");
	}
	return error_set(err, ERROR_FORMAT, "its reader's list is not one");
}

/* ---- the child's limits, told apart by what it is for ---- */

static uint64_t unpacked_limit(uint64_t size)
{
	uint64_t limit = (size + ((uint64_t)UNPACKED_BASE_MB << 20 >> 6)) * UNPACKED_PER_BYTE;

	return limit < (uint64_t)UNPACKED_MAX_MB << 20 ? limit : (uint64_t)UNPACKED_MAX_MB << 20;
}

static struct sandbox_limits limits_for(uint64_t size, uint64_t output_bytes)
{
	uint64_t mapped = unpacked_limit(size) >> 20;

	return (struct sandbox_limits){
		.memory_bytes = (MEMORY_BASE_MB + (mapped < MAPPED_MAX_MB ? mapped : MAPPED_MAX_MB))
				<< 20,
		.cpu_seconds = CPU_BASE_SECONDS + (uint32_t)(size >> 20),
		.output_bytes = output_bytes,
	};
}

static bool explain_end(int status, int output, const struct sandbox_limits *limits,
			struct error *err)
{
	char sentence[300];

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		return true;
	if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_EXIT_SENTENCE) {
		worker_sentence(output, sentence, sizeof(sentence));
		return error_set(err, ERROR_FORMAT, "%s", sentence);
	}
	if (WIFEXITED(status)) /* a library had no memory */
		return error_set(err, ERROR_LIMIT, "its reader ended with status %d",
				 WEXITSTATUS(status));
	switch (WTERMSIG(status)) {
	case SIGXCPU:
	case SIGKILL:
		return error_set(err, ERROR_LIMIT,
				 "reading it passed the limit of %u s of CPU time, or was killed",
				 limits->cpu_seconds);
	case SIGXFSZ:
		return error_set(err, ERROR_LIMIT, "what it holds passes %" PRIu64 " MB",
				 limits->output_bytes >> 20);
	default:
		return error_set(err, ERROR_FORMAT, "its reader crashed: signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
}

static bool run_child(int package, const char *member, int output, uint64_t output_bytes,
		      int stop_fd, struct error *err)
{
	const char *environment[] = {getenv("ASAN_OPTIONS") ? "ASAN_OPTIONS=detect_leaks=0" : NULL,
				     NULL};
	const char *arguments[] = {READ_PACKAGE, member ? member : "/", NULL, NULL};
	const int fds[] = {output, package};
	struct sandbox_limits limits;
	char number[24];
	struct stat stat;
	int status;

	if (fstat(package, &stat))
		return error_set_system(err, errno, "its size");
	snprintf(number, sizeof(number), "%" PRIu64, output_bytes);
	arguments[2] = number;
	limits = limits_for((uint64_t)stat.st_size, output_bytes);
	return worker_run(
		       &(struct worker_child){
			       .arguments = arguments,
			       .environment = environment,
			       .fds = fds,
			       .fd_count = 2,
			       .stop_fd = stop_fd,
			       .limit_ms = (limits.cpu_seconds * INT64_C(4) + 60) * 1000,
		       },
		       &status, err) &&
	       explain_end(status, output, &limits, err);
}

static char *read_text(int fd, struct error *err)
{
	struct stat stat;
	size_t length, got = 0;
	char *text;

	if (fstat(fd, &stat) || stat.st_size > LIST_BYTES_MAX) {
		error_set(err, ERROR_FORMAT, "its reader's list is too long");
		return NULL;
	}
	length = (size_t)stat.st_size;
	text = malloc(length + 1);
	while (text && got < length) {
		ssize_t more = pread(fd, text + got, length - got, (off_t)got);

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	if (!text)
		error_set(err, ERROR_MEMORY, "no memory for a package's list");
	else
		text[got] = '\0';
	return text;
}

bool package_files_list(int package, int stop_fd,
			bool (*each)(void *context, const struct package_member *member),
			void *context, struct error *err)
{
	int output = memfd_create("package-list", MFD_CLOEXEC);
	char *text = NULL;
	bool ok;

	if (output < 0)
		return error_set_system(err, errno, "memory for a package's list");
	ok = run_child(package, NULL, output, LIST_BYTES_MAX, stop_fd, err) &&
	     (text = read_text(output, err)) != NULL && read_lines(text, each, context, err);
	free(text);
	close(output);
	return ok;
}

bool package_files_unpack(int package, const char *member, int output, uint64_t limit_bytes,
			  int stop_fd, struct error *err)
{
	return run_child(package, member, output, limit_bytes, stop_fd, err);
}

/* ---- the child ---- */

void package_files_main(int argc, char **argv)
{
	struct package_reading reading = {.package = WORKER_FIRST_FD + 1,
					  .output = WORKER_FIRST_FD};
	struct sandbox_limits limits;
	struct error err = {0};
	struct stat stat;

	if (argc < 2 || strcmp(argv[1], READ_PACKAGE) != 0)
		return;
	if (argc != 4 || fstat(reading.package, &stat))
		_exit(EXIT_FAILURE);
	prctl(PR_SET_NAME, "farflame-unpack");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(WORKER_FIRST_FD + 2, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	limits = limits_for((uint64_t)stat.st_size, strtoull(argv[3], NULL, 10));
	reading.limit_bytes = unpacked_limit((uint64_t)stat.st_size);
	reading.wanted = strcmp(argv[2], "/") != 0 ? argv[2] : NULL;
	if (!sandbox_enter(&limits, &err) || !package_read(&reading, &err))
		worker_fail(&err);
	if (!reading.wanted && write(reading.output, LIST_END "\n", sizeof(LIST_END)) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}
