/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/network_messages.h"

#include <string.h>

static bool is_text(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

bool network_reply_is_sound(const struct network_reply *reply, size_t length, uint64_t body_length)
{
	if (length != sizeof *reply)
		return false;
	switch (reply->kind) {
	case NETWORK_WANT:
		return reply->length && reply->length <= HTTP_SOURCE_STEP &&
		       reply->offset < body_length && reply->length <= body_length - reply->offset;
	case NETWORK_ANSWER:
		return reply->status >= 100 && reply->status <= 599 && reply->is_truncated <= 1 &&
		       reply->retry_after_s >= -1 && reply->length <= HTTP_BODY_MAX &&
		       is_text(reply->content_type, sizeof reply->content_type) &&
		       is_text(reply->location, sizeof reply->location);
	case NETWORK_FAILED: /* BUSY is ours to say */
		return reply->error.kind > ERROR_NONE && reply->error.kind < ERROR_BUSY &&
		       is_text(reply->error.message, sizeof reply->error.message);
	}
	return false;
}
