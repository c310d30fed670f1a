/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means for what was sent: it has arrived, it may arrive later, or never.
 * OTLP/HTTP's rules (opentelemetry-specification, protocol/otlp.md, "Failures"), with every other
 * 5xx retried too. */
#ifndef NODE_AGENT_SHIP_VERDICT_H
#define NODE_AGENT_SHIP_VERDICT_H

#include <stddef.h>

#include "node-agent/network/http_answer.h"

enum verdict {
	VERDICT_ARRIVED, /* 2xx */
	VERDICT_RETRY,   /* 408, 421, 429, 5xx, redirects (nobody's fault on the wire: say it, keep the
			    data) */
	VERDICT_REFUSED, /* every other 4xx */
};

enum verdict verdict_of(const struct http_answer *answer);

/* "503: its sentence", from a google.rpc.Status, our JSON errors or plain text. */
void verdict_sentence(const struct http_answer *answer, char *text, size_t room);

#endif
