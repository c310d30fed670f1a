/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, by the name of which it is; clock_gettime(2). A clock that cannot be read says 0. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Since some start, without jumps and without time suspended: what samples and waits are in. */
static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t monotonic_ms(void)
{
	return (int64_t)(monotonic_ns() / 1000000);
}

/* With time suspended: what processes' start times are in. */
static inline uint64_t boot_time_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

/* Unix time, as the host believes it. */
static inline int64_t unix_time_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

/* CPU time that all threads of a process have used, also of those that ended. */
static inline uint64_t process_cpu_ns(uint32_t tgid)
{
	clockid_t clock;

	return clock_getcpuclockid((pid_t)tgid, &clock) ? 0 : clock_ns(clock);
}

#endif
