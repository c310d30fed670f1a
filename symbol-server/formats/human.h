/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, times and names as people read them, for the formats made for people. */
#ifndef SYMBOL_SERVER_FORMATS_HUMAN_H
#define SYMBOL_SERVER_FORMATS_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/flamegraph/flame_tree.h"

enum { HUMAN_TEXT = 64 };

/* unit: "nanoseconds", "bytes"; any other is a count. */
void human_value(uint64_t value, const char *unit, char text[HUMAN_TEXT]);
/* "3.64 %": three digits, never 0 % of something nor 100 % of less than all. */
void human_share(uint64_t part, uint64_t whole, char text[HUMAN_TEXT]);
/* What shares are of, and its ± (sampling_error.h). */
struct human_whole {
	uint64_t value, error;
	bool is_sampled; /* false: no figure has one */
};
/* "1.20 s ± 110 ms", "12.3 % ± 2.1": the share's own digits, rounded up, as web/text/format.ts
 * has it. */
void human_sampled_value(uint64_t value, uint64_t error, const char *unit, bool is_sampled,
			 char text[HUMAN_TEXT]);
void human_sampled_share(uint64_t part, double squares, const struct human_whole *whole,
			 char text[HUMAN_TEXT]);
/* RFC 3339 in UTC, to the second. */
void human_time(int64_t unix_ms, char text[HUMAN_TEXT]);

/* What stands before and after a frame's name, so that colour is never the only sign of its kind:
 * as the web page has it (web/palette.ts). */
struct human_marks {
	const char *before, *after;
};
struct human_marks human_marks(const struct flame_frame *frame);

#endif
