/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of strangers: RE2 syntax, linear time, bounded memory. Door to RE2. */
#ifndef SYMBOL_SERVER_QUERY_PATTERN_H
#define SYMBOL_SERVER_QUERY_PATTERN_H

#include <stdbool.h>

#include "common/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PATTERN_TEXT_MAX = 1024, PATTERN_MEMORY = 1 << 20 };

struct pattern;

/* UTF-8; '.' also matches a newline. ERROR_OPTION: RE2's own sentence, or longer than
 * PATTERN_TEXT_MAX. */
struct pattern *pattern_new(const char *expression, struct error *err);
/* The whole text, as Prometheus anchors. Thread-safe. */
bool pattern_matches_all(const struct pattern *pattern, const char *text);
/* Somewhere in the text. */
bool pattern_matches_part(const struct pattern *pattern, const char *text);
void pattern_free(struct pattern *pattern); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
