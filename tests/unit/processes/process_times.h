/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up processes' times are small steps after now, so that the check of start times, which are in
 * boot time, sees plausible ones. */
#ifndef TESTS_UNIT_PROCESSES_PROCESS_TIMES_H
#define TESTS_UNIT_PROCESSES_PROCESS_TIMES_H

#include "common/clock.h"
#include "node-agent/processes/process_key.h"

static uint64_t t0, boot_offset_ns;

static inline void times_begin(void)
{
	t0 = monotonic_ns();
	boot_offset_ns = boot_time_ns() - monotonic_ns();
}

static inline uint64_t at(unsigned ms)
{
	return t0 + ms * 1000000ull;
}

static inline struct process_key key_of(uint32_t tgid, unsigned started_ms, uint32_t exec_id)
{
	return (struct process_key){tgid, exec_id, at(started_ms) + boot_offset_ns};
}

#endif
