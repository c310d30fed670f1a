/* SPDX-License-Identifier: Apache-2.0 */
/* Files as answers: whole, a range of them (RFC 9110, 14), or "you have it already". */
#include "symbol-server/http/http_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void http_file_close(struct http_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	file->length = 0;
}

/* Digits only, no sign and no blanks; *at moves behind them. */
static bool read_position(const char **at, uint64_t *value)
{
	size_t digits = strspn(*at, "0123456789");

	if (!digits || digits > 18)
		return false;
	*value = strtoull(*at, NULL, 10);
	*at += digits;
	return true;
}

int http_range_read(const char *text, uint64_t length, uint64_t *offset, uint64_t *count)
{
	uint64_t first = 0, last = UINT64_MAX;
	bool has_first;

	/* What cannot be read, and several ranges, may be answered with the whole. */
	if (!text || strncasecmp(text, "bytes=", 6))
		return 0;
	text += 6;
	has_first = read_position(&text, &first);
	if (*text++ != '-' || (!read_position(&text, &last) && !has_first) || *text)
		return 0;
	if (!has_first) { /* the last so many bytes */
		if (!last || !length)
			return 416;
		first = last < length ? length - last : 0;
		last = length - 1;
	}
	if (last < first)
		return 0;
	if (first >= length)
		return 416;
	*offset = first;
	*count = (last < length ? last + 1 : length) - first;
	return 206;
}

static bool is_known_to_client(struct http_request *request, const char *etag)
{
	const char *known = http_request_header(request, "If-None-Match");

	return known && etag && (!strcmp(known, "*") || strstr(known, etag));
}

static int wanted_range(struct http_request *request, const char *etag, uint64_t *offset,
			uint64_t *count)
{
	const char *only_if = http_request_header(request, "If-Range");

	if (request->is_head || (only_if && (!etag || strcmp(only_if, etag) != 0)))
		return 0;
	return http_range_read(http_request_header(request, "Range"), request->response.file.length,
			       offset, count);
}

void http_file_prepare(struct http_request *request)
{
	struct http_response *response = &request->response;
	const char *etag = http_response_header(response, "ETag");
	uint64_t length = response->file.length, offset = 0, count = length;
	char text[80];

	http_response_add_header(response, "Accept-Ranges", "bytes");
	if (is_known_to_client(request, etag)) {
		http_file_close(&response->file);
		response->status = 304;
		return;
	}
	switch (wanted_range(request, etag, &offset, &count)) {
	case 206:
		response->status = 206;
		snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset,
			 offset + count - 1, length);
		break;
	case 416:
		snprintf(text, sizeof(text), "bytes */%" PRIu64, length);
		http_request_refuse(request, 416, "the range lies outside of the file");
		break;
	default:
		return;
	}
	http_response_add_header(response, "Content-Range",
				 arena_text(&request->arena, text, strlen(text)));
	response->file.offset += offset;
	response->file.length = count;
}

struct MHD_Response *http_file_reply(struct http_request *request)
{
	struct http_file *file = &request->response.file;
	struct MHD_Response *reply;

	reply = MHD_create_response_from_fd_at_offset64(file->length, file->fd, file->offset);
	if (reply)
		file->fd = -1;
	return reply;
}
