/* SPDX-License-Identifier: Apache-2.0 */
/* From capture to the other stages: who hears of which event. */
#include "node-agent/agent.h"

#include "common/log.h"
#include "node-agent/processes/process_table.h"

/* The kernel's symbols are read with the first address: a tenth of a second in which stacks would
 * wait. */
static void on_loading(void *context)
{
	struct located_frame nowhere;

	struct agent *agent = context;

	process_table_locate_kernel(agent->table, &(uint64_t){0}, 1, true, &nowhere);
	if (!(agent_wants(agent->options) & KERNEL_WANTS_OFF_CPU))
		return;
	kernel_scheduler_find("/proc", &agent->scheduler);
	kernel_waits_find("/proc", &agent->kernel_waits);
	if (agent->kernel_waits.dropped)
		log_warn("some waits have no class", "functions=%u not_taken=%u",
			 agent->kernel_waits.count, agent->kernel_waits.dropped);
}

static void on_exec(void *context, uint32_t tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_exec(agent->table, tgid, time_ns);
}

static void on_fork(void *context, uint32_t tgid, uint32_t parent_tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_fork(agent->table, tgid, parent_tgid, time_ns);
}

static void on_exit_event(void *context, uint32_t tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_exit(agent->table, tgid, time_ns);
}

static void on_mapping(void *context, const struct mapping_event *mapping)
{
	struct agent *agent = context;

	process_table_mapping(agent->table, mapping);
	if (agent->runtimes)
		runtimes_mapping(agent->runtimes, mapping);
	if (agent->probes && !mapping->is_anonymous)
		memory_probes_mapping(agent->probes, mapping->tgid, mapping->path);
}

static void on_sample(void *context, const struct sample_event *sample,
		      const struct stack_copy_event *copy)
{
	struct agent *agent = context;

	if (sample->type == EVENT_SAMPLE_ALLOC) {
		if (!agent->probes || (sample->alloc.source != ALLOC_WINDOW &&
				       !memory_probes_has(agent->probes, sample->tgid)))
			return;
		if (sample->alloc.source != ALLOC_WINDOW)
			allocations_expect(agent->allocations, sample);
	} else if (sample->type == EVENT_SAMPLE_SWITCH || sample->type == EVENT_SAMPLE_WAKER) {
		if (!agent->waits)
			return;
		waits_expect(agent->waits, sample);
	}
	stacks_add(agent->stacks, sample, copy);
	if (agent->runtimes)
		runtimes_sampled(agent->runtimes, &(struct process_key){sample->tgid, sample->exec_id,
									sample->start_time_ns});
}

static void on_free(void *context, const struct alloc_free_event *event)
{
	struct agent *agent = context;

	if (agent->allocations && memory_probes_has(agent->probes, event->tgid))
		allocations_give(agent->allocations, event);
}

static void on_code(void *context, const struct runtime_code_event *told)
{
	struct agent *agent = context;

	samples_add_code(agent->samples, told);
}

static void on_switch_in(void *context, const struct switch_in_event *event)
{
	struct agent *agent = context;

	if (agent->waits)
		waits_end(agent->waits, event);
}

static void on_sweep(void *context, uint64_t start_ns, uint64_t end_ns)
{
	struct agent *agent = context;

	if (agent->waits)
		waits_swept(agent->waits, start_ns, end_ns);
}

static bool find_context(void *context, const struct sample_event *sample,
			 struct thread_context_place *place)
{
	struct agent *agent = context;

	return agent->requests && requests_find(agent->requests, sample, place);
}

static bool find_runtime(void *context, const struct sample_event *sample,
			 struct runtime_place *place)
{
	struct agent *agent = context;
	const struct process_key key = process_key_of(sample);
	uint32_t version;

	return agent->runtimes && runtimes_place(agent->runtimes, &key, place, &version);
}

struct capture_callbacks agent_callbacks(struct agent *agent)
{
	return (struct capture_callbacks){
		.on_loading = on_loading,
		.on_exec = on_exec,
		.on_fork = on_fork,
		.on_exit = on_exit_event,
		.on_mapping = on_mapping,
		.on_sample = on_sample,
		.on_switch_in = on_switch_in,
		.on_sweep = on_sweep,
		.find_context = find_context,
		.find_runtime = find_runtime,
		.on_code = on_code,
		.on_free = on_free,
		.context = agent,
	};
}
