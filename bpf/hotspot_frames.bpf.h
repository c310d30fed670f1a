/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Java frames of the current thread, as the walk comes by them. Nothing is looked up before the
 * first process has a JVM: then user space makes the table. */
#ifndef BPF_HOTSPOT_FRAMES_BPF_H
#define BPF_HOTSPOT_FRAMES_BPF_H

#include "bpf/hotspot_walk.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/sample_scratch.bpf.h"

struct hotspot_places {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOTSPOT_PROCESSES);
	__uint(key_size, sizeof(__u32)); /* tgid */
	__uint(value_size, sizeof(struct hotspot_place));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__array(values, struct hotspot_places);
} hotspots SEC(".maps");

static __always_inline const struct hotspot_place *
hotspot_place_of(const struct sample_event *event)
{
	const struct hotspot_place *place;
	__u32 key = 0, tgid = event->tgid;
	void *places = bpf_map_lookup_elem(&hotspots, &key);

	if (!places)
		return 0;
	place = bpf_map_lookup_elem(places, &tgid);
	if (!place || (place->start_time_ns && (place->exec_id != event->exec_id ||
						place->start_time_ns != event->start_time_ns)))
		return 0;
	return place;
}

/* Which addresses are of its code cache, if the process has one, and what tells its methods from
 * later ones. */
static __always_inline void hotspot_begin(struct sample_scratch *s)
{
	const struct hotspot_place *place = STACK_WALK_X86 ? hotspot_place_of(&s->event) : 0;
	__u64 unloads;

	s->java.low = place ? place->low : 0;
	s->java.bytes = place ? place->high - place->low : 0;
	if (place && place->unloads_at &&
	    !STACK_WALK_READ(&unloads, sizeof(unloads), place->unloads_at))
		s->event.java_unloads = unloads + 1;
}

/* As hotspot_step(). */
int walk_java_frame(void);
__attribute__((noinline)) int walk_java_frame(void)
{
	struct sample_scratch *s = scratch_find();
	const struct hotspot_place *place = s ? hotspot_place_of(&s->event) : 0;

	return place ? hotspot_step(&s->walk, &s->java, place, s->frames) : HOTSPOT_UNTOLD;
}

#endif
