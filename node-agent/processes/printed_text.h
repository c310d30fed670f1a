/* SPDX-License-Identifier: Apache-2.0 */
/* Text of strangers' as it is shown, in a room of its own: what cannot be printed is '?', and what
 * is longer than its room is cut. Pure. */
#ifndef NODE_AGENT_PROCESSES_PRINTED_TEXT_H
#define NODE_AGENT_PROCESSES_PRINTED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct printed_text {
	char *to;
	size_t length, room; /* with its NUL */
	bool is_cut;
};

void printed_text_put(struct printed_text *text, const char *at, size_t length);

/* Writes the NUL, and "…" at the end of one that was cut; that is UTF-8 if the text was. */
void printed_text_end(struct printed_text *text);

#endif
