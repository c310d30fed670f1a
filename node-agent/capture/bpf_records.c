/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/bpf_state.h"

#include "bpf/alloc.h"
#include "bpf/runtime_frames.h"
#include "bpf/thread_context.h"
#include "node-agent/capture/alloc_batch.h"
#include "node-agent/capture/process_events.h"

_Static_assert(SOURCE_ALLOCS + ALLOC_SLOTS == SOURCE_ALLOCS_NESTED + 1, "a source for each slot");

#define EVENT_SOURCE(name_, number_, source_) [number_] = (source_),

/* SOURCE_COUNT: it is no sample. */
static enum sample_source source_of(const struct sample_event *sample)
{
	static const enum sample_source sources[] = {[0] = SOURCE_COUNT, EVENTS(EVENT_SOURCE)};
	const enum sample_source source = sample->type < sizeof sources / sizeof *sources
						  ? sources[sample->type]
						  : SOURCE_COUNT;

	return source == SOURCE_ALLOCS
		       ? (enum sample_source)(source + sample->cpu_taken % ALLOC_SLOTS)
		       : source;
}

/* With its frames, or the context behind them. */
static bool sample_ends_well(const struct sample_event *sample)
{
	const uint32_t end = sample_event_frames_end(sample);

	return sample->flags & SAMPLE_HAS_CONTEXT ? sample->size >= end + THREAD_CONTEXT_HEADER &&
							    sample->size <= end + THREAD_CONTEXT_MAX
						  : sample->size == end;
}

static bool sample_is_whole(const struct bpf_capture *capture, const struct sample_event *sample,
			    size_t length)
{
	return length >= sizeof *sample && source_of(sample) < SOURCE_COUNT &&
	       sample->cpu < capture->cpu_count && sample->kernel_count <= KERNEL_FRAMES_MAX &&
	       sample->user_count <= USER_FRAMES_MAX &&
	       sample->runtime_count <= RUNTIME_WORDS_MAX && sample->size == length &&
	       sample_ends_well(sample);
}

/* What is left out is counted where every sample is accounted for. */
static bool sample_is_ours(struct bpf_capture *capture, const struct sample_event *sample,
			   size_t length)
{
	if (sample_is_whole(capture, sample, length))
		return true;
	capture->malformed += length < sizeof *sample || sample->type == EVENT_SAMPLE_CPU;
	return false;
}

static void sample_deliver(struct bpf_capture *capture, const struct sample_event *sample,
			   const struct stack_copy_event *copy)
{
	struct captured_cpu *cpu = &capture->cpus[sample->cpu];

	process_events_deliver(capture->events, sample->time_ns);
	if (sample->type == EVENT_SAMPLE_CPU) {
		cpu->taken = sample->cpu_taken;
		cpu->ring_full = sample->tick.cpu_ring_full;
		cpu->delivered++;
		capture->stacks_by_result[sample->result % 32]++;
	} else {
		cpu->others[source_of(sample)] = sample->cpu_taken;
	}
	if (capture->callbacks.on_sample)
		capture->callbacks.on_sample(capture->callbacks.context, sample, copy);
}

/* The sample's copy, if it has one. False: it is still being written; the sample has to wait. */
static bool sample_copy(struct bpf_capture *capture, const struct sample_event *sample,
			uint64_t now, const struct stack_copy_event **copy)
{
	bool is_coming = false;

	*copy = NULL;
	if (sample->flags & SAMPLE_HAS_COPY)
		*copy = stack_copies_take(&capture->copies,
					  sample->cpu +
						  ((uint32_t)source_of(sample) << SOURCE_SHIFT),
					  sample->cpu_taken, now, &is_coming);
	if (!is_coming) {
		capture->waits_since_ns = 0;
		return true;
	}
	if (!capture->waits_since_ns)
		capture->waits_since_ns = now;
	return now - capture->waits_since_ns > STACK_COPIES_WAIT_MS * UINT64_C(1000000);
}

static uint64_t delivered_of(const void *context, uint32_t cpu)
{
	const struct bpf_capture *capture = context;
	const uint32_t source = cpu >> SOURCE_SHIFT;

	cpu &= (1U << SOURCE_SHIFT) - 1;
	if (cpu >= capture->cpu_count || source >= SOURCE_COUNT)
		return UINT64_MAX;
	return source == SOURCE_TICKS ? capture->cpus[cpu].taken
				      : capture->cpus[cpu].others[source];
}

static bool switch_in_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	const struct switch_in_event *event = record;

	if (length != sizeof *event || event->type != EVENT_SWITCH_IN)
		return false;
	process_events_deliver(capture->events, event->time_ns);
	if (capture->callbacks.on_switch_in)
		capture->callbacks.on_switch_in(capture->callbacks.context, event);
	return true;
}

static bool code_is_whole(const struct runtime_code_event *told, size_t length)
{
	return length == sizeof *told && told->type == EVENT_RUNTIME_CODE && told->size == length &&
	       told->head_bytes <= sizeof told->head && told->name_bytes <= sizeof told->name &&
	       told->file_bytes <= sizeof told->file && told->lines_bytes <= sizeof told->lines;
}

static bool code_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	const struct runtime_code_event *told = record;

	if (!code_is_whole(told, length))
		return false;
	process_events_deliver(capture->events, told->time_ns);
	if (capture->callbacks.on_code)
		capture->callbacks.on_code(capture->callbacks.context, told);
	return true;
}

static bool free_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	const struct alloc_free_event *event = record;

	if (length != sizeof *event || event->type != EVENT_ALLOC_FREE)
		return false;
	process_events_deliver(capture->events, event->time_ns);
	if (capture->callbacks.on_free)
		capture->callbacks.on_free(capture->callbacks.context, event);
	return true;
}

static bool batch_deliver(struct bpf_capture *capture, const void *record, size_t length)
{
	static struct alloc_batch_sample one;
	const struct sample_event *batch = record;
	uint32_t at = 0;

	if (!alloc_batch_is_whole(record, length))
		return false;
	process_events_deliver(capture->events, batch->time_ns);
	while (capture->callbacks.on_sample && alloc_batch_next(batch, &at, &one))
		capture->callbacks.on_sample(capture->callbacks.context, &one.sample.event,
					     &one.copy.event);
	return true;
}

/* Everything there is now, in time order. Where the sample ring ends is noted before the process
 * events are looked at, so that whatever happened before one of these samples is known with it.
 * Events later than the samples wait for the next round, for samples that are on their way. Returns
 * whether any do. */
bool bpf_records_drain(struct bpf_capture *capture, uint64_t in_flight_ns)
{
	uint64_t end = sample_ring_end(&capture->ring), now = monotonic_ns();
	const struct stack_copy_event *copy;
	const struct sample_event *sample;
	size_t length;

	process_events_look(capture->events);
	while ((sample = sample_ring_next(&capture->ring, end, &length)) != NULL) {
		if (!switch_in_deliver(capture, sample, length) &&
		    !free_deliver(capture, sample, length) &&
		    !code_deliver(capture, sample, length) &&
		    !batch_deliver(capture, sample, length) &&
		    sample_is_ours(capture, sample, length)) {
			if (!sample_copy(capture, sample, now, &copy))
				break;
			sample_deliver(capture, sample, copy);
			if (copy) /* at once: what is full loses stacks meanwhile */
				stack_copies_release(&capture->copies, delivered_of, capture);
		}
		sample_ring_release(&capture->ring);
	}
	capture->delivered_until_ns = sample && sample->time_ns < now ? sample->time_ns : now;
	if (sample) /* it waits, and those behind it were not looked at */
		stack_copies_release(&capture->copies, delivered_of, capture);
	else
		stack_copies_settle(&capture->copies, delivered_of, capture, now);
	return process_events_deliver(capture->events, now - in_flight_ns);
}
