/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent and its parser of strangers' files say to each other, over a socket of whole
 * messages (SOCK_SEQPACKET). Same program on both sides, so the memory layout is the format; the
 * agent trusts none of it. Questions are answered in their order. */
#ifndef NODE_AGENT_UNWIND_ROW_MESSAGES_H
#define NODE_AGENT_UNWIND_ROW_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/unwind/row_builder.h"

#define ROW_WORKER_NAME "farflame-unwinder" /* argv[0] of the child; also what ps shows */

enum {
	ROW_WORKER_SOCKET = 3, /* the child's descriptor */
	ROW_FAREWELL_MAX = 200,
};

/* The file's descriptor comes with it, each time. */
struct row_question {
	uint32_t executable, page;
};

/* Followed by the rows and the rules; or, executable 0, by count bytes of text: the child ends, and
 * this is why (none: it has worked enough). */
struct row_answer {
	uint32_t executable, page;
	uint8_t state, failure;
	uint16_t cpu_ms; /* the child's, since it started */
	uint32_t count, rule_count;
};

enum row_sent {
	ROW_SENT,
	ROW_SENT_LATER, /* there is no room now */
	ROW_SENT_NEVER, /* the other side is gone */
};

/* --- the agent's side: never waits --- */

enum row_sent row_question_send(int socket, const struct row_question *question, int fd);

enum row_received {
	ROW_RECEIVED_NOTHING,
	ROW_RECEIVED_ANSWER,   /* checked: it can be put into maps and searched */
	ROW_RECEIVED_FAREWELL, /* with text in farewell */
	ROW_RECEIVED_WRONG,    /* not what a sound child sends */
	ROW_RECEIVED_END,
};

enum row_received row_answer_receive(int socket, struct page_rows *rows, uint16_t *cpu_ms,
				     char farewell[ROW_FAREWELL_MAX]);

/* --- the child's side: waits --- */

/* False: the end, or nothing came for as long as the socket's time limit says. *fd is −1 when none
 * came. */
bool row_question_receive(int socket, struct row_question *question, int *fd);
bool row_answer_send(int socket, const struct page_rows *rows, uint16_t cpu_ms);
void row_farewell_send(int socket, const char *text);

#endif
