/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/verdict.h"

#include <stdio.h>
#include <string.h>

enum { SENTENCE_MAX = 200 };

enum verdict verdict_of(const struct http_answer *answer)
{
	int status = answer->status;

	if (status >= 200 && status < 300)
		return VERDICT_ARRIVED;
	/* 421: the server has yet to be told that name of itself */
	if (status == 408 || status == 421 || status == 429 || status >= 500 || status < 400)
		return VERDICT_RETRY;
	return VERDICT_REFUSED;
}

/* google.rpc.Status: code = 1 (varint), message = 2 (bytes); details are not looked at. */
static struct bytes status_message(struct bytes body)
{
	const uint8_t *at = body.at, *end = at + body.length;
	uint64_t tag, value;

	while (at < end && varint_read(&at, end, &tag) && varint_read(&at, end, &value)) {
		if ((tag & 7) == 0)
			continue;
		if ((tag & 7) != 2 || value > (uint64_t)(end - at))
			break;
		if (tag >> 3 == 2)
			return (struct bytes){at, (size_t)value};
		at += value;
	}
	return (struct bytes){0};
}

/* The text after "message":" up to the next quote. A sentence for a log line, not a JSON reader. */
static struct bytes json_message(struct bytes body)
{
	static const char key[] = "\"message\":";
	const uint8_t *end = body.at + body.length, *at, *quote;

	at = memmem(body.at, body.length, key, sizeof key - 1);
	if (!at)
		return body;
	at += sizeof key - 1;
	while (at < end && *at == ' ')
		at++;
	if (at == end || *at != '"')
		return body;
	quote = memchr(at + 1, '"', (size_t)(end - at - 1));
	return quote ? (struct bytes){at + 1, (size_t)(quote - at - 1)} : body;
}

void verdict_sentence(const struct http_answer *answer, char *text, size_t room)
{
	struct bytes body = {answer->body.bytes, answer->body.length}, said = body;
	int length;

	if (answer->status >= 300 && answer->status < 400) {
		snprintf(text, room, "%d: it redirects to '%s'", answer->status, answer->location);
		return;
	}
	if (!body.length)
		said.length = 0;
	else if (strstr(answer->content_type, "protobuf"))
		said = status_message(body);
	else if (strstr(answer->content_type, "json"))
		said = json_message(body);
	else if (strstr(answer->content_type, "html"))
		said.length = 0;
	length = said.length < SENTENCE_MAX ? (int)said.length : SENTENCE_MAX;
	while (length && (said.at[length - 1] == '\n' || said.at[length - 1] == '\r'))
		length--;
	snprintf(text, room, "%d%s%.*s", answer->status, length ? ": " : "", length,
		 length ? (const char *)said.at : "");
}
