/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/http_answer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
	INTERIMS_MAX = 8,         /* 1xx answers before the real one */
	TRAILERS_MAX = 64,        /* header fields behind a chunked body */
	LINE_MAX_BYTES = 1 << 10, /* a chunk's length with its extensions, a trailer field */
	BODY_READ_MAX = 64 << 20, /* beyond it the other side is not answering us */
};

void http_answer_init(struct http_answer *answer)
{
	*answer = (struct http_answer){.retry_after_s = -1};
	buffer_init(&answer->head, HTTP_HEAD_MAX);
	buffer_init(&answer->body, HTTP_BODY_MAX);
}

void http_answer_release(struct http_answer *answer)
{
	if (!answer)
		return;
	buffer_release(&answer->head);
	buffer_release(&answer->body);
}

/* --- the head --- */

struct head_fields {
	bool has_length, is_chunked, is_close, is_keep_alive;
	uint64_t length;
};

static bool parse_status(const char *line, struct http_answer *answer, bool *is_11,
			 struct error *err)
{
	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ' || line[9] < '1' || line[9] > '5' || !isdigit((unsigned char)line[10]) ||
	    !isdigit((unsigned char)line[11]) || (line[12] && line[12] != ' '))
		return error_set(err, ERROR_FORMAT, "the answer is not HTTP/1.1");
	answer->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + line[11] - '0';
	*is_11 = line[7] == '1';
	return true;
}

static int64_t parse_retry_after(const char *value)
{
	struct tm tm = {0};
	char *end;
	long long seconds = strtoll(value, &end, 10);

	if (end != value)
		return seconds < 0 ? -1 : seconds > 86400 ? 86400 : seconds;
	end = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	seconds = end ? (long long)(timegm(&tm) - time(NULL)) : -1;
	return !end ? -1 : seconds < 0 ? 0 : seconds > 86400 ? 86400 : seconds;
}

static bool has_token(const char *value, const char *token)
{
	size_t length = strlen(token);

	while (*value) {
		value += strspn(value, " \t,");
		if (!strncasecmp(value, token, length) && strchr(" \t,;", value[length]))
			return true;
		value += strcspn(value, ",");
	}
	return false;
}

static bool parse_length(const char *value, struct head_fields *fields, struct error *err)
{
	size_t digits = strspn(value, "0123456789");
	uint64_t length;

	if (!digits || digits > 18 || value[digits + strspn(value + digits, " \t")])
		return error_set(err, ERROR_FORMAT, "the answer has the Content-Length '%.40s'",
				 value);
	length = strtoull(value, NULL, 10);
	if (fields->has_length && length != fields->length)
		return error_set(err, ERROR_FORMAT, "the answer has two lengths");
	fields->has_length = true;
	fields->length = length;
	return true;
}

static void copy_word(char *out, size_t room, const char *value, const char *until)
{
	size_t length = strcspn(value, until);

	if (length >= room)
		length = room - 1;
	memcpy(out, value, length);
	out[length] = '\0';
}

static bool parse_field(char *line, struct http_answer *answer, struct head_fields *fields,
			struct error *err)
{
	char *colon = strchr(line, ':');
	const char *value;

	if (!colon || colon == line)
		return error_set(err, ERROR_FORMAT, "the answer has a header line without a name");
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	if (!strcasecmp(line, "Content-Length"))
		return parse_length(value, fields, err);
	if (!strcasecmp(line, "Transfer-Encoding")) {
		fields->is_chunked = has_token(value, "chunked");
		if (!fields->is_chunked)
			return error_set(err, ERROR_FORMAT,
					 "the answer's transfer encoding is '%.40s'", value);
	} else if (!strcasecmp(line, "Connection")) {
		fields->is_close |= has_token(value, "close");
		fields->is_keep_alive |= has_token(value, "keep-alive");
	} else if (!strcasecmp(line, "Retry-After")) {
		answer->retry_after_s = parse_retry_after(value);
	} else if (!strcasecmp(line, "Content-Type")) {
		copy_word(answer->content_type, sizeof answer->content_type, value, "; \t");
		for (char *c = answer->content_type; *c; c++)
			*c = (char)tolower((unsigned char)*c);
	} else if (!strcasecmp(line, "Location")) {
		copy_word(answer->location, sizeof answer->location, value, " \t");
	}
	return true;
}

/* How the body ends, RFC 9112 §6.3. */
static void start_body(struct http_answer *answer, const struct head_fields *fields, bool is_11)
{
	bool is_empty = answer->status == 204 || answer->status == 304;

	answer->keep_alive = (is_11 || fields->is_keep_alive) && !fields->is_close;
	if (is_empty) {
		answer->state = HTTP_ANSWER_DONE;
	} else if (fields->is_chunked) {
		/* Both given: somebody between us disagrees about the end; never reuse. */
		answer->keep_alive &= !fields->has_length;
		answer->state = HTTP_ANSWER_CHUNK_SIZE;
	} else if (fields->has_length) {
		answer->remaining = fields->length;
		answer->state = fields->length ? HTTP_ANSWER_LENGTH : HTTP_ANSWER_DONE;
	} else {
		answer->keep_alive = false;
		answer->state = HTTP_ANSWER_UNTIL_END;
	}
}

/* head: lines ended by \n, the last one empty; NUL-terminated by the caller. */
static bool parse_head(struct http_answer *answer, char *head, struct error *err)
{
	struct head_fields fields = {0};
	bool is_first = true, is_11 = false;

	answer->retry_after_s = -1;
	for (char *line = head, *newline; (newline = strchr(line, '\n')); line = newline + 1) {
		*newline = '\0';
		if (newline > line && newline[-1] == '\r')
			newline[-1] = '\0';
		if (!*line)
			break;
		if (is_first ? !parse_status(line, answer, &is_11, err)
			     : !parse_field(line, answer, &fields, err))
			return false;
		is_first = false;
	}
	if (answer->status >= 200) {
		start_body(answer, &fields, is_11);
		return true;
	}
	if (++answer->interims > INTERIMS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d interim answers", INTERIMS_MAX);
	return true;
}

/* --- piece by piece --- */

/* Collects up to and including the next line break. False: over the limit; *is_whole says whether
 * the break was there. */
static bool collect_line(struct http_answer *answer, const char **at, const char *end, size_t limit,
			 bool *is_whole, struct error *err)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	size_t length = newline ? (size_t)(newline + 1 - *at) : (size_t)(end - *at);

	if (answer->head.length + length >= limit)
		return error_set(err, ERROR_LIMIT, "the answer's header is too long");
	buffer_append(&answer->head, *at, length);
	if (answer->head.failed)
		return error_set(err, ERROR_MEMORY, "no memory for the answer's header");
	*at += length;
	*is_whole = newline;
	return true;
}

static bool head_is_garbage(const struct buffer *head)
{
	static const char start[] = "HTTP/1.";
	size_t length = head->length < sizeof start - 1 ? head->length : sizeof start - 1;

	return length && memcmp(head->bytes, start, length) != 0;
}

static bool take_head(struct http_answer *answer, const char **at, const char *end,
		      struct error *err)
{
	struct buffer *head = &answer->head;
	size_t before = head->length;
	bool is_whole, is_last, ok;

	if (!collect_line(answer, at, end, HTTP_HEAD_MAX, &is_whole, err))
		return false;
	if (head_is_garbage(head))
		return error_set(err, ERROR_FORMAT, "the answer is not HTTP/1.1");
	if (!is_whole)
		return true;
	/* the line may have come in pieces: look back for the break before it */
	while (before && head->bytes[before - 1] != '\n')
		before--;
	is_last = head->length - before <= 2 &&
		  (head->length - before == 1 || head->bytes[before] == '\r');
	if (!is_last)
		return true;
	buffer_append_char(head, '\0');
	ok = !memchr(head->bytes, '\0', head->length - 1);
	if (!ok)
		return error_set(err, ERROR_FORMAT, "the answer's header holds NUL bytes");
	ok = parse_head(answer, (char *)head->bytes, err);
	buffer_clear(head);
	return ok;
}

static void keep_body(struct http_answer *answer, const char *at, size_t length)
{
	size_t room = HTTP_BODY_MAX - answer->body.length;

	answer->body_read += length;
	if (length > room) {
		answer->is_truncated = true;
		length = room;
	}
	buffer_append(&answer->body, at, length);
	answer->is_truncated |= answer->body.failed;
}

static bool take_body(struct http_answer *answer, const char **at, const char *end,
		      enum http_answer_state then, struct error *err)
{
	size_t length = (size_t)(end - *at);

	if (answer->state != HTTP_ANSWER_UNTIL_END && length > answer->remaining)
		length = (size_t)answer->remaining;
	keep_body(answer, *at, length);
	*at += length;
	answer->remaining -= answer->state == HTTP_ANSWER_UNTIL_END ? 0 : length;
	if (answer->state != HTTP_ANSWER_UNTIL_END && !answer->remaining)
		answer->state = then;
	if (answer->body_read > BODY_READ_MAX)
		return error_set(err, ERROR_LIMIT, "the answer does not end");
	return true;
}

static bool parse_chunk_size(struct http_answer *answer, struct error *err)
{
	const char *text = (const char *)answer->head.bytes;
	size_t digits;
	uint64_t size = 0;

	buffer_append_char(&answer->head, '\0');
	text = (const char *)answer->head.bytes;
	digits = strspn(text, "0123456789abcdefABCDEF");
	if (!digits || digits > 15 || !strchr("\r\n; \t", text[digits]))
		return error_set(err, ERROR_FORMAT, "the answer has a chunk without a length");
	size = strtoull(text, NULL, 16);
	buffer_clear(&answer->head);
	answer->remaining = size;
	answer->state = size ? HTTP_ANSWER_CHUNK : HTTP_ANSWER_TRAILER;
	return true;
}

static bool take_line(struct http_answer *answer, const char **at, const char *end,
		      struct error *err)
{
	bool is_whole, is_empty;

	if (!collect_line(answer, at, end, LINE_MAX_BYTES, &is_whole, err))
		return false;
	if (!is_whole)
		return true;
	if (answer->state == HTTP_ANSWER_CHUNK_SIZE)
		return parse_chunk_size(answer, err);
	is_empty = answer->head.length == 1 ||
		   (answer->head.length == 2 && answer->head.bytes[0] == '\r');
	buffer_clear(&answer->head);
	if (answer->state == HTTP_ANSWER_CHUNK_END) {
		answer->state = HTTP_ANSWER_CHUNK_SIZE;
		return is_empty || error_set(err, ERROR_FORMAT, "a chunk is longer than it says");
	}
	if (is_empty)
		answer->state = HTTP_ANSWER_DONE;
	else if (++answer->trailers > TRAILERS_MAX)
		return error_set(err, ERROR_LIMIT, "the answer's trailer is too long");
	return true;
}

bool http_answer_take(struct http_answer *answer, const void *bytes, size_t length, size_t *used,
		      struct error *err)
{
	const char *at = bytes, *end = at + length;
	bool ok = true;

	while (ok && at < end && answer->state != HTTP_ANSWER_DONE) {
		switch (answer->state) {
		case HTTP_ANSWER_HEAD:
			ok = take_head(answer, &at, end, err);
			break;
		case HTTP_ANSWER_LENGTH:
			ok = take_body(answer, &at, end, HTTP_ANSWER_DONE, err);
			break;
		case HTTP_ANSWER_CHUNK:
			ok = take_body(answer, &at, end, HTTP_ANSWER_CHUNK_END, err);
			break;
		case HTTP_ANSWER_UNTIL_END:
			ok = take_body(answer, &at, end, HTTP_ANSWER_UNTIL_END, err);
			break;
		case HTTP_ANSWER_CHUNK_SIZE:
		case HTTP_ANSWER_CHUNK_END:
		case HTTP_ANSWER_TRAILER:
			ok = take_line(answer, &at, end, err);
			break;
		case HTTP_ANSWER_DONE:
			break;
		}
	}
	*used = (size_t)(at - (const char *)bytes);
	return ok;
}

bool http_answer_end(struct http_answer *answer, struct error *err)
{
	if (answer->state == HTTP_ANSWER_UNTIL_END)
		answer->state = HTTP_ANSWER_DONE;
	if (answer->state == HTTP_ANSWER_DONE)
		return true;
	return error_set(err, ERROR_REMOTE,
			 answer->state == HTTP_ANSWER_HEAD && !answer->head.length
				 ? "the server closed the connection without an answer"
				 : "the connection ended in the middle of the answer");
}
