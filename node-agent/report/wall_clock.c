/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/report/wall_clock.h"

#include <time.h>

#include "common/clock.h"

static const int64_t second_ns = 1000000000;
static const int64_t day_ns = 86400 * second_ns;

enum { SLOWED = 8 };

void wall_clock_start_at(struct wall_clock *clock, int64_t boot_ns, int64_t host_ns)
{
	clock->begin_ns = boot_ns;
	clock->host_offset_ns = host_ns - boot_ns;
	clock->jumps = 0;
	atomic_store(&clock->offset_ns, clock->host_offset_ns);
}

int64_t wall_clock_close_at(struct wall_clock *clock, int64_t boot_ns, int64_t host_ns,
			    uint64_t *start_ns, uint64_t *duration_ns)
{
	int64_t offset_ns = atomic_load(&clock->offset_ns);
	int64_t start = clock->begin_ns + offset_ns, end = host_ns;
	int64_t elapsed = boot_ns - clock->begin_ns, least = start + elapsed / SLOWED;
	int64_t behind_ns = host_ns - (boot_ns + offset_ns); /* of the host's clock */
	int64_t set_ns = host_ns - boot_ns - clock->host_offset_ns;

	if (behind_ns > second_ns || behind_ns < -day_ns)
		start = end - elapsed;
	else if (end < least)
		end = least;
	*start_ns = start > 0 ? (uint64_t)start : 0;
	*duration_ns = (uint64_t)(end - start);
	clock->begin_ns = boot_ns;
	clock->host_offset_ns = host_ns - boot_ns;
	atomic_store(&clock->offset_ns, end - boot_ns);
	if (set_ns <= second_ns && set_ns >= -second_ns)
		return 0;
	clock->jumps++;
	return set_ns;
}

void wall_clock_start(struct wall_clock *clock)
{
	wall_clock_start_at(clock, (int64_t)boot_time_ns(), (int64_t)clock_ns(CLOCK_REALTIME));
}

int64_t wall_clock_close(struct wall_clock *clock, uint64_t ago_ns, uint64_t *start_ns,
			 uint64_t *duration_ns)
{
	int64_t boot_ns = (int64_t)boot_time_ns(), ago = (int64_t)ago_ns;

	return wall_clock_close_at(clock, boot_ns - ago, (int64_t)clock_ns(CLOCK_REALTIME) - ago, start_ns,
				   duration_ns);
}

uint64_t wall_clock_now_ns(struct wall_clock *clock)
{
	return (uint64_t)((int64_t)boot_time_ns() + atomic_load(&clock->offset_ns));
}
