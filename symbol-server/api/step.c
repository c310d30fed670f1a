/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/step.h"

#include <stddef.h>

int64_t step_choose(int64_t range_ms, int64_t most)
{
	static const int64_t minutes[] = {1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720};
	const int64_t minute = 60000, day = 86400000;

	for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++)
		if (range_ms <= minutes[i] * minute * most)
			return minutes[i] * minute;
	return (range_ms + day * most - 1) / (day * most) * day;
}
