/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of time that people would choose. Pure. */
#ifndef SYMBOL_SERVER_API_STEP_H
#define SYMBOL_SERVER_API_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* The shortest of 1, 2, 5, 10, 20, 30 minutes, 1, 2, 3, 6, 12 hours and whole days with at most so
 * many of them in the range; milliseconds. Each divides the resolutions of roll-ups, or they it. */
int64_t step_choose(int64_t range_ms, int64_t most);

/* A step as it is asked for: a multiple of 1 m, or unless only minutes may be, of 1 s and a part of
 * 1 m, so that sums of either are the same. At most so many in the range. ERROR_OPTION. */
bool step_parse(const char *text, int64_t range_ms, int64_t most, bool only_minutes,
		int64_t *step_ms, struct error *err);

/* The step of what is known only so finely: nothing lies between, nor is it said of minutes in what
 * second of them something was. */
int64_t step_known(int64_t step_ms, bool is_asked, int64_t resolution_ms);

#endif
