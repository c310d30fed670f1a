/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/source_request.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "symbol-server/net/http_client.h"
#include "symbol-server/symbolize/sources/disk_room.h"
#include "symbol-server/symbolize/worker.h"

enum {
	CONNECT_SECONDS = 10,
	STALL_SECONDS = 30, /* a server may unpack a large package before its first byte */
	TOTAL_SECONDS = 600,
	PROBE_SECONDS = 10,
	MARGIN_SECONDS = 10,
	SECONDS_MAX = 3600,
	MEMORY_BYTES = 1 << 30,
	CPU_SECONDS = 300, /* TLS and decompression of the largest file */
	OPEN_FILES = 64,
	URL_MAX = 2048,
	RETRY_AFTER_MAX_S = 3600,
	OUTPUT_FD = WORKER_FIRST_FD + 1,
};
#define SIZE_MAX_DEFAULT ((uint64_t)2 << 30)

static const char *const kind_names[] = {"debuginfo", "executable"};

/* ---- the server's side ---- */

static uint64_t number_of(const char *name, uint64_t otherwise, uint64_t most)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long number;

	if (!text || *text < '0' || *text > '9')
		return otherwise;
	number = strtoull(text, &end, 10);
	return *end || !number ? otherwise : number < most ? number : most;
}

void source_limits_read(struct source_limits *limits)
{
	limits->stall_s = (uint32_t)number_of("DEBUGINFOD_TIMEOUT", STALL_SECONDS, SECONDS_MAX);
	limits->total_s = (uint32_t)number_of("DEBUGINFOD_MAXTIME", TOTAL_SECONDS, SECONDS_MAX);
	limits->bytes = number_of("DEBUGINFOD_MAXSIZE", SIZE_MAX_DEFAULT, INT64_MAX / 2);
}

/* The child's whole environment. The URL is in it because it may hold a password, and arguments
 * are everybody's to read. */
struct environment {
	char texts[12][URL_MAX + 64];
	const char *list[13];
	size_t count;
};

static void environment_add(struct environment *environment, const char *name, const char *value)
{
	char *text = environment->texts[environment->count];

	if (!value || (size_t)snprintf(text, sizeof(environment->texts[0]), "%s=%s", name, value) >=
			      sizeof(environment->texts[0]))
		return;
	environment->list[environment->count++] = text;
}

static void environment_fill(struct environment *environment, const char *url)
{
	static const char *const kept[] = {"http_proxy", "https_proxy",  "HTTPS_PROXY",
					   "all_proxy",  "ALL_PROXY",    "no_proxy",
					   "NO_PROXY",   "SSL_CERT_FILE"};

	environment->count = 0;
	environment_add(environment, "SOURCE_URL", url);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		environment_add(environment, kept[i], getenv(kept[i]));
	if (getenv("ASAN_OPTIONS"))
		environment_add(environment, "ASAN_OPTIONS", "detect_leaks=0");
	environment->list[environment->count] = NULL;
}

static void __attribute__((format(printf, 3, 4)))
reply_set(struct source_reply *reply, enum source_answer answer, const char *format, ...)
{
	va_list arguments;

	reply->answer = answer;
	va_start(arguments, format);
	vsnprintf(reply->sentence, sizeof(reply->sentence), format, arguments);
	va_end(arguments);
}

/* What the child left is checked like anything that comes from strangers. */
static void reply_read(int answer_fd, int status, struct source_reply *reply)
{
	struct source_reply read = {0};

	if (!WIFEXITED(status) || WEXITSTATUS(status) ||
	    pread(answer_fd, &read, sizeof(read), 0) != (ssize_t)sizeof(read) ||
	    read.answer > SOURCE_STOPPED) {
		reply_set(reply, SOURCE_DOWN, "the download crashed: %s",
			  WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no answer is left");
		return;
	}
	*reply = read;
	reply->sentence[sizeof(reply->sentence) - 1] = '\0';
	for (char *at = reply->sentence; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
}

static void run_child(const char *const *arguments, const struct environment *environment,
		      const int *fds, int64_t limit_ms, int stop_fd, struct source_reply *reply)
{
	struct worker_child child = {
		.arguments = arguments,
		.environment = environment->list,
		.fds = fds,
		.fd_count = 2,
		.stop_fd = stop_fd,
		.limit_ms = limit_ms,
	};
	struct error err = {0};
	int status;

	if (worker_run(&child, &status, &err))
		reply_read(fds[0], status, reply);
	else if (err.kind == ERROR_BUSY)
		reply_set(reply, SOURCE_STOPPED, "%s", err.message);
	else
		reply_set(reply, err.kind == ERROR_LIMIT ? SOURCE_DOWN : SOURCE_NO_ROOM, "%s",
			  err.message);
}

void source_request_run(const char *url, const struct build_id *id, enum source_kind kind,
			const struct source_limits *limits, int output, int stop_fd,
			struct source_reply *reply)
{
	struct environment *environment = calloc(1, sizeof(*environment));
	int fds[] = {memfd_create("source-reply", MFD_CLOEXEC), output};
	uint32_t total_s = id ? limits->total_s : PROBE_SECONDS;
	uint32_t stall_s = limits->stall_s < total_s ? limits->stall_s : total_s;
	char hex[BUILD_ID_HEX] = "-", numbers[3][24];
	const char *arguments[] = {
		SYMBOL_WORKER_FETCH, hex, kind_names[kind], numbers[0], numbers[1],
		numbers[2],          NULL};

	*reply = (struct source_reply){0};
	if (id)
		build_id_format(id, hex);
	snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, limits->bytes);
	snprintf(numbers[1], sizeof(numbers[1]), "%u", stall_s);
	snprintf(numbers[2], sizeof(numbers[2]), "%u", total_s);
	if (!environment || fds[0] < 0) {
		reply_set(reply, SOURCE_NO_ROOM, "no memory to ask a server");
	} else {
		environment_fill(environment, url);
		run_child(arguments, environment, fds,
			  (total_s + CONNECT_SECONDS + MARGIN_SECONDS) * INT64_C(1000), stop_fd,
			  reply);
	}
	if (fds[0] >= 0)
		close(fds[0]);
	free(environment);
}

/* ---- the child's side ---- */

struct download {
	struct source_reply *reply;
	uint64_t limit;
	uint64_t expected; /* what the server says its file has; 0: nothing said */
	bool is_over;      /* the reply says why no more is wanted */
	bool is_probe;     /* the answer matters, not the file */
};

static bool end_early(struct download *download)
{
	download->is_over = true;
	return false;
}

static uint64_t header_number(struct http_client *client, const char *name)
{
	const char *text = http_client_header(client, name);

	return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

/* Of a foreign text only what can stand in a sentence. */
static void plain_text(const char *text, char *plain, size_t room)
{
	size_t length = 0;

	for (; text && *text && *text != ';' && length + 1 < room; text++)
		if (*text > ' ' && *text < 0x7f)
			plain[length++] = *text;
	plain[length] = '\0';
}

/* Before a byte is written: is it what was asked for, not too large, and is there room for it? */
static bool accept_start(struct download *download, struct http_client *client, const char *bytes,
			 size_t length)
{
	bool is_packed = http_client_header(client, "Content-Encoding") != NULL;
	struct source_reply *reply = download->reply;
	uint64_t free_bytes;
	char type[64];

	if (memcmp(bytes, "\177ELF", length < 4 ? length : 4) != 0) {
		plain_text(http_client_header(client, "Content-Type"), type, sizeof(type));
		reply->is_no_elf = true;
		reply_set(reply, SOURCE_WRONG_FILE, "it sent something that is no ELF file (%s)",
			  *type ? type : "of no type");
		return end_early(download);
	}
	if (download->is_probe) {
		reply_set(reply, SOURCE_FOUND, "it answers");
		return end_early(download);
	}
	download->expected = header_number(client, "X-DEBUGINFOD-SIZE");
	if (!download->expected && !is_packed)
		download->expected = header_number(client, "Content-Length");
	if (download->expected > download->limit) {
		reply_set(reply, SOURCE_TOO_LARGE,
			  "its file has %" PRIu64 " MB; no more than %" PRIu64 " MB are downloaded",
			  MB(download->expected), MB(download->limit));
		return end_early(download);
	}
	if (disk_room_lacks(OUTPUT_FD, download->expected, &free_bytes)) {
		reply_set(reply, SOURCE_NO_ROOM,
			  "the disk of --data has %" PRIu64 " MB left; the file has %" PRIu64
			  " MB, and %" PRIu64 " are kept free",
			  MB(free_bytes), MB(download->expected), MB(DISK_ROOM_LEFT));
		return end_early(download);
	}
	return true;
}

static bool write_all(struct download *download, const char *bytes, size_t length)
{
	struct source_reply *reply = download->reply;

	while (length) {
		ssize_t done = write(OUTPUT_FD, bytes, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			reply_set(reply, errno == EFBIG ? SOURCE_TOO_LARGE : SOURCE_NO_ROOM,
				  "the file could not be written: %s", strerror(errno));
			return end_early(download);
		}
		bytes += done;
		length -= (size_t)done;
	}
	return true;
}

static bool receive(void *context, struct http_client *client, const void *bytes, size_t length)
{
	struct download *download = context;
	struct source_reply *reply = download->reply;

	if (!reply->bytes && !accept_start(download, client, bytes, length))
		return false;
	if (length > download->limit - reply->bytes) {
		reply_set(reply, SOURCE_TOO_LARGE,
			  "it sent more than the %" PRIu64 " MB that are downloaded",
			  MB(download->limit));
		return end_early(download);
	}
	reply->bytes += length;
	return write_all(download, bytes, length);
}

static void reply_to_status(struct source_reply *reply, struct http_client *client, int status,
			    uint64_t limit)
{
	uint64_t retry_after = header_number(client, "Retry-After");

	switch (status) {
	case 404:
	case 410:
		reply_set(reply, SOURCE_NOT_FOUND, "it does not have it");
		return;
	case 406: /* debuginfod's answer to X-DEBUGINFOD-MAXSIZE */
	case 413:
		reply_set(reply, SOURCE_TOO_LARGE,
			  "its file is larger than the %" PRIu64 " MB that are downloaded",
			  MB(limit));
		return;
	default:
		reply->retry_after_s = retry_after < RETRY_AFTER_MAX_S ? (uint32_t)retry_after
								       : RETRY_AFTER_MAX_S;
		if (retry_after)
			reply_set(reply, SOURCE_DOWN,
				  "it answered with status %d, and to come back in %" PRIu64 " s",
				  status, retry_after);
		else
			reply_set(reply, SOURCE_DOWN, "it answered with status %d", status);
	}
}

static void check_end(struct download *download)
{
	struct source_reply *reply = download->reply;

	if (!reply->bytes)
		reply_set(reply, SOURCE_DOWN, "its answer was empty");
	else if (download->expected && reply->bytes != download->expected)
		reply_set(reply, SOURCE_DOWN, "it sent %" PRIu64 " of %" PRIu64 " bytes",
			  reply->bytes, download->expected);
	else
		reply_set(reply, SOURCE_FOUND, "its debug file");
}

/* An id that nobody has. */
#define PROBE_HEX "6661726c616d653a206172652075206865726521"

static void ask(struct http_client *client, struct http_get *get, const char *hex, const char *kind,
		uint64_t limit, struct source_reply *reply)
{
	const char *base = getenv("SOURCE_URL");
	struct download download = {.reply = reply, .limit = limit, .is_probe = !strcmp(hex, "-")};
	char url[URL_MAX + 256];
	struct error err = {0};
	int status;
	bool is_answered;

	if (!base)
		_exit(EXIT_FAILURE);
	snprintf(url, sizeof(url), "%s%sbuildid/%s/%s", base,
		 *base && base[strlen(base) - 1] == '/' ? "" : "/",
		 download.is_probe ? PROBE_HEX : hex, kind);
	get->url = url;
	get->body = receive;
	get->context = &download;
	is_answered = http_client_get(client, get, &status, &reply->is_reached, &err);
	reply->status = (uint32_t)status;
	if (download.is_over)
		return; /* said already */
	if (!is_answered)
		reply_set(reply, SOURCE_DOWN, "%s", err.message);
	else if (status == 200)
		check_end(&download);
	else
		reply_to_status(reply, client, status, limit);
}

void symbol_source_fetch_main(int argc, char **argv)
{
	struct http_client *client;
	struct http_get get = {.connect_s = CONNECT_SECONDS, .stall_bytes = SOURCE_STALL_BYTES};
	struct sandbox_limits limits = {.memory_bytes = MEMORY_BYTES,
					.cpu_seconds = CPU_SECONDS,
					.open_files = OPEN_FILES,
					.has_network = true};
	struct source_reply reply = {0};
	struct error err = {0};
	char header[64];
	uint64_t limit;

	close_range(OUTPUT_FD + 1, ~0U, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* write() says EFBIG */
	if (argc != 7)
		_exit(EXIT_FAILURE);
	limit = strtoull(argv[4], NULL, 10);
	get.stall_s = (uint32_t)strtoul(argv[5], NULL, 10);
	get.total_s = (uint32_t)strtoul(argv[6], NULL, 10);
	snprintf(header, sizeof(header), "X-DEBUGINFOD-MAXSIZE: %" PRIu64, limit);
	get.header = header;
	limits.output_bytes = limit > sizeof(reply) ? limit : sizeof(reply);
	client = http_client_new(&err);
	if (!client || !sandbox_enter(&limits, &err))
		reply_set(&reply, SOURCE_NO_ROOM, "%s", err.message);
	else
		ask(client, &get, argv[2], argv[3], limit, &reply);
	_exit(pwrite(WORKER_FIRST_FD, &reply, sizeof(reply), 0) == (ssize_t)sizeof(reply)
		      ? EXIT_SUCCESS
		      : EXIT_FAILURE);
}
