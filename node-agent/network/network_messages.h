/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent and its process of the network say to each other, over sockets of whole messages
 * (SOCK_SEQPACKET). Same program on both sides, so the memory layout is the format; the agent
 * trusts none of it.
 *
 * The first socket: settings go to the child, a struct error comes back (no kind: it is ready; its
 * message: but keeps its rights), then a descriptor for each client, the end of a socket of its
 * own. There: a request, then replies: WANT, answered by bytes of the body, as often as it likes,
 * and one FAILED or ANSWER, the latter followed by its body in pieces. What the agent says unasked,
 * or that it hangs up, ends what the child does. */
#ifndef NODE_AGENT_NETWORK_NETWORK_MESSAGES_H
#define NODE_AGENT_NETWORK_NETWORK_MESSAGES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/network/http_answer.h"
#include "node-agent/network/http_client.h"
#include "node-agent/network/token.h"
#include "node-agent/network/url.h"

#define NETWORK_NAME "farflame-network" /* argv[0] of the child; also what ps shows */

enum { NETWORK_PATH_MAX = 8 << 10, NETWORK_PIECE_MAX = 16 << 10 };

struct network_settings {
	struct url url;
	int timeout_ms;
	char ca_file[PATH_MAX]; /* "": the system's */
};

struct network_request { /* as http_request; "": none */
	char method[8], path[NETWORK_PATH_MAX], content_type[64], content_encoding[16];
	char bearer[TOKEN_MAX + 1];
	uint64_t body_length;
	int64_t deadline_ms;
};

enum network_reply_kind { NETWORK_WANT, NETWORK_ANSWER, NETWORK_FAILED };

struct network_reply {
	uint32_t kind;
	uint32_t length; /* WANT: at most so many bytes from offset on; ANSWER: of the body */
	uint64_t offset;
	int32_t status; /* ANSWER: as http_answer, to is_truncated */
	uint32_t is_truncated;
	int64_t retry_after_s;
	char content_type[sizeof((struct http_answer *)0)->content_type];
	char location[sizeof((struct http_answer *)0)->location];
	struct error error; /* FAILED */
};

/* What a sound child says of a request with such a body; else nothing of it is used. */
bool network_reply_is_sound(const struct network_reply *reply, size_t length, uint64_t body_length);

#endif
