/* SPDX-License-Identifier: Apache-2.0 */
/* A body that is sent while its handler writes it. The handler's buffer drains into here, through
 * gzip where the client likes it; the connection reads a window in memory, then a file without a
 * name that takes what a slow client has not read, so that the handler gets done and gives back its
 * place and its memory. */
#include "symbol-server/http/http_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/gzip.h"
#include "common/log.h"

enum {
	BLOCK = 32 << 10,      /* libmicrohttpd's own buffer, for clients without chunks */
	PACKED = 64 << 10,     /* bytes compressed at a time */
	WAIT_MS = 20,          /* between two looks whether waiting for the client is worth it */
	ROOM_EVERY = 16 << 20, /* the file's length, between two looks at the disk */
	MODE = 0600,
};
#define SPILL_MAX  ((uint64_t)4 << 30) /* of all streams */
#define SPILL_ROOM ((uint64_t)1 << 30) /* the disk keeps at least this */

struct http_stream {
	pthread_mutex_t lock;
	pthread_cond_t room;
	uint8_t *window; /* a ring */
	size_t from, held;
	int file; /* −1: none yet */
	uint64_t file_from, file_to;
	uint64_t sent; /* since the connection's time was set */
	bool has_ended, is_broken, is_gone;
	bool is_suspended; /* the connection has nothing to send */
	bool is_file_bad;
	struct gzip_stream *gzip; /* the handler's alone, as is packed */
	struct buffer packed;
};

/* --- the connection's side: libmicrohttpd's thread --- */

static size_t read_window(struct http_stream *stream, char *out, size_t most)
{
	size_t length = HTTP_WINDOW - stream->from;

	if (length > stream->held)
		length = stream->held;
	if (length > most)
		length = most;
	memcpy(out, stream->window + stream->from, length);
	stream->from = (stream->from + length) % HTTP_WINDOW;
	stream->held -= length;
	if (!stream->held && stream->has_ended) {
		free(stream->window);
		stream->window = NULL;
	}
	return length;
}

/* Only this side moves file_from, the other one adds beyond file_to: the lock is not needed. −1:
 * the file cannot be read. */
static ssize_t read_file(const struct http_stream *stream, uint64_t to, char *out, size_t most)
{
	uint64_t left = to - stream->file_from;
	ssize_t got;

	do
		got = pread(stream->file, out, left < most ? left : most, (off_t)stream->file_from);
	while (got < 0 && errno == EINTR);
	return got > 0 ? got : -1;
}

static void count_sent(struct http_request *request, size_t length)
{
	struct http_stream *stream = request->stream;

	request->server->bytes_out += length;
	stream->sent += length;
	if (stream->sent < HTTP_SENDING_BYTES)
		return;
	stream->sent = 0;
	http_connection_allow(request->server, request->record, HTTP_SENDING_S,
			      HTTP_CLOSED_slow_reader);
}

static ssize_t read_stream(void *context, uint64_t position, char *out, size_t most)
{
	struct http_request *request = context;
	struct http_stream *stream = request->stream;
	ssize_t length = 0;
	uint64_t file_to;

	(void)position;
	pthread_mutex_lock(&stream->lock);
	file_to = stream->file_to;
	if (stream->is_broken) {
		length = MHD_CONTENT_READER_END_WITH_ERROR;
	} else if (stream->held) {
		length = (ssize_t)read_window(stream, out, most);
	} else if (stream->file_from == file_to && stream->has_ended) {
		length = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (stream->file_from == file_to) {
		atomic_fetch_add(&request->server->suspended, 1);
		stream->is_suspended = true;
		MHD_suspend_connection(request->connection);
	}
	pthread_cond_signal(&stream->room);
	pthread_mutex_unlock(&stream->lock);
	if (!length && stream->file_from < file_to) {
		length = read_file(stream, file_to, out, most);
		if (length < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		pthread_mutex_lock(&stream->lock);
		stream->file_from += (uint64_t)length;
		pthread_mutex_unlock(&stream->lock);
	}
	if (length > 0)
		count_sent(request, (size_t)length);
	return length;
}

void http_stream_leave(struct http_request *request)
{
	struct http_stream *stream = request->stream;

	pthread_mutex_lock(&stream->lock);
	stream->is_gone = true;
	pthread_cond_signal(&stream->room);
	pthread_mutex_unlock(&stream->lock);
}

/* --- the handler's side --- */

/* With the lock. Between suspending and resuming the connection is nobody else's. */
static void wake(struct http_request *request)
{
	struct http_stream *stream = request->stream;

	if (!stream->is_suspended)
		return;
	stream->is_suspended = false;
	MHD_resume_connection(request->connection);
	atomic_fetch_sub(&request->server->suspended, 1);
}

static size_t write_window(struct http_stream *stream, const uint8_t *bytes, size_t length)
{
	size_t at = (stream->from + stream->held) % HTTP_WINDOW;
	size_t room = HTTP_WINDOW - stream->held;

	if (room > HTTP_WINDOW - at)
		room = HTTP_WINDOW - at;
	if (length > room)
		length = room;
	memcpy(stream->window + at, bytes, length);
	stream->held += length;
	return length;
}

static bool disk_has_room(int file)
{
	struct statvfs disk;

	return !fstatvfs(file, &disk) && (uint64_t)disk.f_bavail * disk.f_frsize > SPILL_ROOM;
}

static bool open_file(struct http_request *request)
{
	struct http_stream *stream = request->stream;
	const char *directory = request->server->options.spill_directory;

	if (stream->file >= 0)
		return true;
	if (!directory)
		return false;
	stream->file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, MODE);
	if (stream->file < 0)
		log_warn("a slow client's answer has no file to wait in",
			 "directory=\"%s\" errno=%d", directory, errno);
	return stream->file >= 0;
}

/* What was taken; 0: there is no room. Without the lock: only this side adds to the file. */
static size_t write_file(struct http_request *request, const uint8_t *bytes, size_t length)
{
	struct http_stream *stream = request->stream;
	struct http_server *server = request->server;
	ssize_t put;

	if (stream->is_file_bad)
		return 0;
	if (!open_file(request) ||
	    (stream->file_to % ROOM_EVERY < length && !disk_has_room(stream->file))) {
		stream->is_file_bad = stream->file < 0;
		return 0;
	}
	if (atomic_fetch_add(&server->spilled, length) + length > SPILL_MAX) {
		atomic_fetch_sub(&server->spilled, length);
		return 0;
	}
	put = pwrite(stream->file, bytes, length, (off_t)stream->file_to);
	if (put < 0)
		put = 0; /* a full disk; it may have room later */
	atomic_fetch_sub(&server->spilled, length - (size_t)put);
	return (size_t)put;
}

/* With the lock, which waiting gives away. */
static bool wait_for_room(struct http_request *request)
{
	struct http_stream *stream = request->stream;
	struct timespec until;
	bool goes_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WAIT_MS * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_clockwait(&stream->room, &stream->lock, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&stream->lock);
	goes_on = !request->server->is_cancelling &&
		  (!request->goes_on || request->goes_on(request->goes_on_context));
	pthread_mutex_lock(&stream->lock);
	return goes_on;
}

static bool write_stream(struct http_request *request, const uint8_t *bytes, size_t length)
{
	struct http_stream *stream = request->stream;
	bool goes_on = true;

	pthread_mutex_lock(&stream->lock);
	while (length && goes_on && !stream->is_gone) {
		size_t taken = 0;

		if (stream->file_from == stream->file_to)
			taken = write_window(stream, bytes, length);
		if (!taken) {
			pthread_mutex_unlock(&stream->lock);
			taken = write_file(request, bytes, length);
			pthread_mutex_lock(&stream->lock);
			stream->file_to += taken;
		}
		bytes += taken;
		length -= taken;
		if (taken)
			wake(request);
		else
			goes_on = wait_for_room(request);
	}
	goes_on = goes_on && !stream->is_gone;
	pthread_mutex_unlock(&stream->lock);
	return goes_on;
}

static bool drain_packed(struct buffer *packed)
{
	return write_stream(packed->drain_context, packed->bytes, packed->length);
}

/* The first time: the answer's status and headers go out. */
static bool begin(struct http_request *request)
{
	struct http_response *response = &request->response;
	struct http_stream *stream = calloc(1, sizeof(*stream));
	bool is_packed = !response->is_packed && http_request_accepts_gzip(request);

	if (!stream)
		return false;
	stream->file = -1;
	stream->window = malloc(HTTP_WINDOW);
	stream->gzip = is_packed ? gzip_stream_new(HTTP_GZIP_LEVEL) : NULL;
	request->reply = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream,
							   request, NULL);
	if (!stream->window || (is_packed && !stream->gzip) || !request->reply) {
		free(stream->window);
		gzip_stream_free(stream->gzip);
		free(stream);
		if (request->reply)
			MHD_destroy_response(request->reply);
		request->reply = NULL;
		return false;
	}
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->room, NULL);
	buffer_init(&stream->packed, PACKED);
	stream->packed.drain = drain_packed;
	stream->packed.drain_context = request;
	http_response_add_headers(request, is_packed ? "gzip" : NULL);
	response->has_begun = true;
	request->stream = stream;
	request->server->streams++;
	/* HEAD: nobody will read it. */
	stream->is_gone = request->is_head;
	stream->is_suspended = true; /* since it waits for a worker */
	request->owners++;
	request->is_done = true;
	return true;
}

static bool drain_body(struct buffer *body)
{
	struct http_request *request = body->drain_context;
	struct http_stream *stream;
	bool is_new = !request->stream, ok;

	if ((request->goes_on && !request->goes_on(request->goes_on_context)) ||
	    (is_new && !begin(request)))
		return false;
	stream = request->stream;
	ok = stream->gzip ? gzip_stream_put(stream->gzip, body->bytes, body->length, false,
					    &stream->packed)
			  : write_stream(request, body->bytes, body->length);
	if (is_new) {
		pthread_mutex_lock(&stream->lock);
		wake(request);
		pthread_mutex_unlock(&stream->lock);
	}
	return ok;
}

void http_request_stream(struct http_request *request, bool (*goes_on)(void *context),
			 void *context)
{
	struct buffer *body = &request->response.body;

	request->goes_on = goes_on;
	request->goes_on_context = context;
	body->limit = HTTP_WINDOW;
	body->drain = drain_body;
	body->drain_context = request;
}

bool http_stream_is_gone(const struct http_request *request)
{
	struct http_stream *stream = request->stream;
	struct pollfd fd = {.events = POLLRDHUP};
	bool is_gone;

	pthread_mutex_lock(&stream->lock);
	is_gone = stream->is_gone;
	if (!is_gone && stream->is_suspended && request->record) {
		fd.fd = request->record->fd;
		is_gone = poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
	}
	pthread_mutex_unlock(&stream->lock);
	return is_gone;
}

void http_stream_end(struct http_request *request)
{
	struct http_stream *stream = request->stream;
	struct http_response *response = &request->response;
	bool ok = !response->is_broken && !response->body.failed && buffer_flush(&response->body);

	if (ok && stream->gzip)
		ok = gzip_stream_put(stream->gzip, "", 0, true, &stream->packed) &&
		     buffer_flush(&stream->packed);
	gzip_stream_free(stream->gzip);
	stream->gzip = NULL;
	buffer_release(&stream->packed);
	buffer_release(&response->body);
	pthread_mutex_lock(&stream->lock);
	stream->has_ended = true;
	stream->is_broken = !ok;
	if (!ok && !stream->is_gone)
		request->server->broken_streams++;
	wake(request);
	pthread_mutex_unlock(&stream->lock);
	http_request_drop(request);
}

void http_stream_free(struct http_request *request)
{
	struct http_stream *stream = request->stream;

	if (!stream)
		return;
	atomic_fetch_sub(&request->server->spilled, stream->file_to);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->room);
	gzip_stream_free(stream->gzip);
	buffer_release(&stream->packed);
	free(stream->window);
	if (stream->file >= 0)
		close(stream->file);
	free(stream);
}
