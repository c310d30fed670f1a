/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of time that people would choose. Pure. */
#ifndef SYMBOL_SERVER_API_STEP_H
#define SYMBOL_SERVER_API_STEP_H

#include <stdint.h>

/* The shortest of 1, 2, 5, 10, 20, 30 minutes, 1, 2, 3, 6, 12 hours and whole days with at most so
 * many of them in the range; milliseconds. Each divides the resolutions of roll-ups, or they it. */
int64_t step_choose(int64_t range_ms, int64_t most);

#endif
