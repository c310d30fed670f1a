/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The frames that an interpreter has of the current thread, behind the native ones of its sample. A
 * process without one is told by one cache line; tables of places are made by user space for
 * processes that have one. Arrays alone: looking into them calls nothing. */
#ifndef BPF_RUNTIME_FRAMES_BPF_H
#define BPF_RUNTIME_FRAMES_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/sample_scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_PIDS_GROUPS);
	__type(key, __u32);
	__type(value, struct runtime_pids);
} runtime_pids SEC(".maps");

struct runtime_places {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_TABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct runtime_place));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RUNTIME_TABLES);
	__type(key, __u32);
	__type(value, __u32);
	__array(values, struct runtime_places);
} runtimes SEC(".maps");

enum { RUNTIME_STEPS_A_CALL = 4 };

/* RUNTIME_PROCESSES: none. */
static __always_inline __u32 runtime_place_number(__u32 tgid)
{
	__u32 key = runtime_pids_of(tgid);
	const struct runtime_pids *pids = bpf_map_lookup_elem(&runtime_pids, &key);

	for (int i = 0; pids && i < RUNTIME_PIDS_GROUP; i++)
		if (pids->tgids[i] == tgid)
			return pids->places[i];
	return RUNTIME_PROCESSES;
}

static __always_inline const struct runtime_place *
runtime_place_of(const struct sample_event *event)
{
	const __u32 number = runtime_place_number(event->tgid);
	__u32 table = number / RUNTIME_TABLE, key = number % RUNTIME_TABLE;
	const struct runtime_place *place;
	void *places;

	if (number >= RUNTIME_PROCESSES)
		return 0;
	places = bpf_map_lookup_elem(&runtimes, &table);
	if (!places)
		return 0;
	place = bpf_map_lookup_elem(places, &key);
	if (!place || (place->start_time_ns && (place->exec_id != event->exec_id ||
						place->start_time_ns != event->start_time_ns)))
		return 0;
	return place;
}

/* Behind so many words; the last word says that it is cut. */
static __always_inline __u32 runtime_frames_room(__u32 words)
{
	const __u32 room = words < SCRATCH_WORDS ? (SCRATCH_WORDS - 1 - words) / 2 : 0;

	return runtime_least(room, SAMPLE_RUNTIME_FRAMES_MAX);
}

/* 1: there is no list. */
int begin_runtime(void);
__attribute__((noinline)) int begin_runtime(void)
{
	struct sample_scratch *s = scratch_find();
	const struct runtime_place *place = s ? runtime_place_of(&s->event) : 0;
	__u64 pointer;

	if (!place)
		return 1;
	pointer = context_thread_pointer();
	s->event.runtime_thread = pointer ? pointer + place->thread_id_minus_tp : 0;
	s->runtime.first = (__u32)s->event.kernel_count + s->event.user_count;
	s->runtime.limit = runtime_frames_room(s->runtime.first);
	return python_walk_begin(&s->runtime, s->frames, place, pointer);
}

/* Some steps, as walk_frames() does. 1: the walk has ended. */
int walk_runtime(void);
__attribute__((noinline)) int walk_runtime(void)
{
	struct sample_scratch *s = scratch_find();

	if (!s)
		return 1;
	for (int i = 0; i < RUNTIME_STEPS_A_CALL; i++)
		if (python_walk_step(&s->runtime, s->frames))
			return 1;
	return 0;
}

static __always_inline void runtime_count_end(const struct sample_scratch *s)
{
	__u64 last = (__u64)s->runtime.first + s->runtime.count - 1;

	if (last >= SCRATCH_WORDS || stack_frame_kind(s->frames[last]) != STACK_FRAME_RUNTIME_END ||
	    stack_frame_address(s->frames[last]) == RUNTIME_END_OTHER)
		return;
	count(stack_frame_address(s->frames[last]) == RUNTIME_END_CUT ? COUNT_runtimes_cut
								      : COUNT_runtimes_unread);
}

/* event has the counts of the native frames. 0: there are none of an interpreter. */
static __always_inline __u32 sample_runtime(struct sample_scratch *s)
{
	enum { CALLS = SAMPLE_RUNTIME_FRAMES_MAX * RUNTIME_STEPS_A_FRAME / RUNTIME_STEPS_A_CALL };

	s->runtime.count = 0;
	if (!begin_runtime())
		for (__u32 i = 0; i <= CALLS; i++)
			if (walk_runtime())
				break;
	if (!s->runtime.count || s->runtime.count > RUNTIME_WORDS_MAX)
		return 0;
	count(COUNT_runtimes);
	runtime_count_end(s);
	return s->event.runtime_count = s->runtime.count;
}

#endif
