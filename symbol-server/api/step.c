/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/step.h"

#include <stddef.h>

#include "common/options.h"
#include "symbol-server/store/samples.h"

int64_t step_choose(int64_t range_ms, int64_t most)
{
	static const int64_t minutes[] = {1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720};
	const int64_t minute = 60000, day = 86400000;

	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++)
		if (range_ms <= minutes[i] * minute * most)
			return minutes[i] * minute;
	return (range_ms + day * most - 1) / (day * most) * day;
}

static bool is_step(int64_t step_ms, bool only_minutes)
{
	return step_ms > 0 &&
	       (step_ms % SAMPLES_BUCKET_MS == 0 ||
		(!only_minutes && SAMPLES_BUCKET_MS % step_ms == 0 && step_ms % 1000 == 0));
}

bool step_parse(const char *text, int64_t range_ms, int64_t most, bool only_minutes,
		int64_t *step_ms, struct error *err)
{
	if (!duration_parse(text, step_ms, err))
		return false;
	if (!is_step(*step_ms, only_minutes))
		return error_set(err, ERROR_OPTION, "'%.60s' is %s", text,
				 only_minutes ? "not a multiple of 1m"
					      : "neither a multiple of 1m nor of 1s and a part of "
						"1m");
	if (range_ms / *step_ms > most)
		return error_set(err, ERROR_OPTION, "more than %lld steps are in that range",
				 (long long)most);
	return true;
}

int64_t step_known(int64_t step_ms, bool is_asked, int64_t resolution_ms)
{
	return step_ms < resolution_ms && (!is_asked || step_ms < SAMPLES_BUCKET_MS) ? resolution_ms
										     : step_ms;
}
