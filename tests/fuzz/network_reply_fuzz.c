/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the network that a server has taken over may reply: what passes the check can
 * be used. The first two bytes are the length of the request's body. */
#include "node-agent/network/network_messages.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct network_reply reply = {0};
	uint64_t body_length;

	if (length < 2 || length - 2 > sizeof reply)
		return;
	body_length = (uint64_t)bytes[0] << 8 | bytes[1];
	memcpy(&reply, bytes + 2, length - 2);
	if (!network_reply_is_sound(&reply, length - 2, body_length))
		return;
	if (length - 2 != sizeof reply)
		abort();
	if (reply.kind == NETWORK_WANT && reply.offset + reply.length > body_length)
		abort();
	if (reply.kind == NETWORK_ANSWER &&
	    (reply.length > HTTP_BODY_MAX ||
	     strlen(reply.content_type) >= sizeof reply.content_type ||
	     strlen(reply.location) >= sizeof reply.location))
		abort();
	if (reply.kind == NETWORK_FAILED &&
	    strlen(reply.error.message) >= sizeof reply.error.message)
		abort();
}
