/* SPDX-License-Identifier: Apache-2.0 */
/* Time lines → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_TIMELINE_FORMATS_H
#define SYMBOL_SERVER_FORMATS_TIMELINE_FORMATS_H

#include "symbol-server/formats/flame_formats.h"

struct timeline_sum {
	uint64_t value, samples;
	double squares; /* sampling_error.h */
};

struct timeline_time { /* of one step; not known: 0 */
	uint64_t reported_ms, lost;
};

struct timeline_line {
	const char *const *values; /* of the labels; "": has none */
	struct timeline_sum sum;
	const struct timeline_sum *steps; /* step_count of them; zero where nothing was */
	const uint64_t *reported_ms;      /* likewise; NULL: as the answer's */
};

struct timeline_answer {
	struct flame_answer flame; /* type, unit, times, accounting */
	const char *const *labels;
	unsigned label_count;
	int64_t step_ms, first_ms, resolution_ms;
	uint32_t step_count;
	const struct timeline_line *lines; /* the largest first */
	size_t line_count;
	struct timeline_line other; /* the sum of those left out; values is not looked at */
	size_t other_count;
	bool with_errors;                  /* JSON: of each step, where anything is sampled */
	const struct timeline_time *times; /* step_count of them; NULL: not known */
};

/* The key "reported": of each step its start, the time that was reported and what was lost. */
void timeline_reported_json(struct json *json, const struct timeline_time *times, int64_t first_ms,
			    int64_t step_ms, uint32_t step_count);

/* {"step_ms",…,"reported":[[ms,reported ms,lost]…],"series":[{"labels":{…},
 * "value",…,"error","points":[[ms,value,samples]…]}],"other":{…},"accounting"} */
bool timeline_json(const struct timeline_answer *answer, struct buffer *out);
/* A row per step and series; "other" is the series "[other]" in its first label. */
bool timeline_csv(const struct timeline_answer *answer, struct buffer *out);

#endif
