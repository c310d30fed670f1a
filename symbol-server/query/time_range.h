/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the API. Pure. */
#ifndef SYMBOL_SERVER_QUERY_TIME_RANGE_H
#define SYMBOL_SERVER_QUERY_TIME_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Unix seconds (1700000000, 1700000000.25), unix milliseconds (1e11 and more), RFC 3339
 * (2026-08-01T12:00:00Z, with fraction and +hh:mm), now, now-<int>(ms|s|m|h|d), now+….
 * Milliseconds. Years 1970 to 9999. ERROR_OPTION. */
bool time_parse(const char *text, int64_t now_ms, int64_t *ms, struct error *err);

#endif
