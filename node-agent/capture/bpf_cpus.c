/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/bpf_state.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/capture/cpu_plug.h"
#include "node-agent/capture/fault_events.h"
#include "node-agent/capture/process_events.h"
#include "node-agent/capture/tick_account.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/cpu_list.h"
#include "node-agent/kernel/perf_event.h"

/* --- what became of the ticks --- */

bool bpf_counter_read(const struct bpf_capture *capture, enum kernel_counter counter,
		      uint64_t *values)
{
	uint32_t key = counter;

	return bpf_map_read(capture->programs.maps[KERNEL_MAP_COUNTERS], &key, values, NULL);
}

/* Both counters of every CPU that has a timer, now; what: tick_account_begin() or …_ticks(). */
static void ticks_read(struct bpf_capture *capture, bool are_new,
		       void (*what)(struct tick_account *account, unsigned cpu, uint64_t ticks,
				    uint64_t idle_ticks))
{
	uint64_t *ticks = capture->per_cpu_values, *idle = ticks + capture->cpu_count;

	if (!bpf_counter_read(capture, COUNT_ticks, ticks) ||
	    !bpf_counter_read(capture, COUNT_idle, idle))
		return;
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		const struct captured_cpu *cpu = &capture->cpus[number];

		if (cpu->timer >= 0 && cpu->is_new == are_new)
			what(capture->account, number, ticks[cpu->map_index], idle[cpu->map_index]);
	}
}

void bpf_ticks_look(struct bpf_capture *capture)
{
	tick_account_look(capture->account);
	ticks_read(capture, false, tick_account_ticks);
}

/* False: its timer stands still, the CPU was away. */
static bool timer_look(void *context, unsigned number)
{
	const struct bpf_capture *capture = context;

	return tick_account_count(capture->account, number,
				  perf_timer_count(capture->cpus[number].timer));
}

/* --- CPUs that come and go --- */

static void cpu_remove(void *context, unsigned number)
{
	struct bpf_capture *capture = context;
	struct captured_cpu *cpu = &capture->cpus[number];

	log_info("cpu gone", "cpu=%u", number);
	bpf_ticks_look(capture);
	tick_account_end(capture->account, number);
	close(cpu->timer);
	cpu->timer = -1;
	process_events_remove_cpu(capture->events, number);
	fault_events_remove_cpu(capture->faults, number);
}

static bool cpu_add(void *context, unsigned number, struct error *err)
{
	struct bpf_capture *capture = context;
	struct captured_cpu *cpu = &capture->cpus[number];

	if (process_events_add_cpu(capture->events, number, err) &&
	    fault_events_add_cpu(capture->faults, number, err))
		cpu->timer = perf_timer_open(number, capture->period_ns,
					     capture->programs.programs[KERNEL_PROGRAM_SAMPLE_CPU],
					     err);
	cpu->is_new = cpu->timer >= 0;
	if (cpu->is_new)
		return true;
	process_events_remove_cpu(capture->events, number);
	fault_events_remove_cpu(capture->faults, number);
	return error_prefix(err, "CPU %u", number);
}

/* One look for all that were added: what they had ticked and idled before does not count. Their
 * timers start only then, so that every tick since does. */
static bool cpus_begin(struct bpf_capture *capture, struct error *err)
{
	struct error failed = {0};

	tick_account_look(capture->account);
	ticks_read(capture, true, tick_account_begin);
	for (unsigned number = 0; number < capture->cpu_count; number++) {
		struct captured_cpu *cpu = &capture->cpus[number];

		if (!cpu->is_new)
			continue;
		cpu->is_new = false;
		if (perf_timer_enable(cpu->timer, true, &failed))
			continue;
		cpu_remove(capture, number);
		if (failed.kind != ERROR_NOT_FOUND) {
			if (err)
				*err = failed;
			return error_prefix(err, "CPU %u", number);
		}
	}
	return true;
}

static bool cpu_has(const void *context, unsigned number)
{
	return ((const struct bpf_capture *)context)->cpus[number].timer >= 0;
}

bool bpf_cpus_check(struct bpf_capture *capture, struct error *err)
{
	static const struct cpu_plug plug = {cpu_has, timer_look, cpu_add, cpu_remove};
	bool is_any_new = false;

	if (!cpu_list_read("/sys/devices/system/cpu/online", capture->is_online, capture->cpu_count,
			   err) ||
	    !cpu_plug_follow(&plug, capture, capture->is_online, capture->cpu_count, err))
		return false;
	for (unsigned number = 0; number < capture->cpu_count; number++)
		is_any_new |= capture->cpus[number].is_new;
	return !is_any_new || cpus_begin(capture, err);
}

bool bpf_cpus_allocate(struct bpf_capture *capture, struct error *err)
{
	bool *possible = calloc(CPU_LIMIT, sizeof *possible);
	unsigned limit;
	bool ok = false;

	if (!possible) {
		error_set(err, ERROR_MEMORY, "list of CPUs");
		goto out;
	}
	limit = cpu_list_read("/sys/devices/system/cpu/possible", possible, CPU_LIMIT, err);
	if (!limit)
		goto out;
	capture->cpu_count = limit;
	capture->possible_count = cpu_list_count(possible, limit);
	capture->is_online = calloc(limit, sizeof *capture->is_online);
	capture->cpus = calloc(limit, sizeof *capture->cpus);
	capture->per_cpu_values = calloc(2 * limit, sizeof *capture->per_cpu_values);
	if (!capture->is_online || !capture->cpus || !capture->per_cpu_values) {
		error_set(err, ERROR_MEMORY, "state of %u CPUs", limit);
		goto out;
	}
	for (unsigned number = 0, index = 0; number < limit; number++) {
		capture->cpus[number].timer = -1;
		capture->cpus[number].map_index = index;
		index += possible[number] && index + 1 < capture->possible_count;
	}
	capture->account = tick_account_new(limit, capture->period_ns, err);
	ok = capture->account;
out:
	free(possible);
	return ok;
}

void bpf_capture_count(struct bpf_capture *capture)
{
	for (unsigned number = 0; number < capture->cpu_count; number++)
		if (capture->cpus[number].timer >= 0)
			timer_look(capture, number);
	capture->counted_ms = monotonic_ms();
}
