/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of --token-file, read again when the file changes, so that it can be rotated. */
#ifndef NODE_AGENT_NETWORK_TOKEN_H
#define NODE_AGENT_NETWORK_TOKEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "common/error.h"

enum { TOKEN_MAX = 4096 };

struct token {
	const char *path; /* NULL: there is none; borrowed */
	struct stat seen;
	char text[TOKEN_MAX + 1]; /* first line without blanks around it */
};

/* False: the file cannot be read, is empty, too long or holds what a header cannot carry; the text
 * that was known before stays. */
bool token_refresh(struct token *token, struct error *err);

/* NULL: none. */
const char *token_text(const struct token *token);

#endif
