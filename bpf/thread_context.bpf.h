/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Trace and span of the interrupted thread, from its own memory: OTEP 4947, or the labels that Go's
 * runtime/pprof has given to its goroutine, also while that is on its system stack or in C. Nothing
 * is looked up before the first process has such: then user space makes the table. Parts are
 * verified once, on their own: see find_rule(). */
#ifndef BPF_THREAD_CONTEXT_BPF_H
#define BPF_THREAD_CONTEXT_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/sample_scratch.bpf.h"

int add_label(unsigned int key_at, unsigned int value_at);
int add_bucket(void);
#define CONTEXT_ADD_LABEL(room, words, k, v) add_label(k, v)
#define CONTEXT_ADD_BUCKET(room, words)      (__u32) add_bucket()
#include "bpf/context_read.bpf.h"

struct thread_context_places {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREAD_CONTEXT_PROCESSES);
	__uint(key_size, sizeof(__u32)); /* tgid */
	__uint(value_size, sizeof(struct thread_context_place));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__array(values, struct thread_context_places);
} thread_contexts SEC(".maps");

static __always_inline struct thread_context_place *
thread_context_place_of(const struct sample_event *event)
{
	struct thread_context_place *place;
	__u32 key = 0, tgid = event->tgid;
	void *places = bpf_map_lookup_elem(&thread_contexts, &key);

	if (!places)
		return 0;
	place = bpf_map_lookup_elem(places, &tgid);
	return place && place->exec_id == event->exec_id &&
			       place->start_time_ns == event->start_time_ns
		       ? place
		       : 0;
}

/* Behind the frames. */
static __always_inline struct thread_context *context_room(struct sample_scratch *s)
{
	__u32 at = sample_event_words(&s->event);

	return at > SCRATCH_WORDS ? 0 : (struct thread_context *)&s->frames[at];
}

/* --- goroutines' labels --- */

_Static_assert((int)CONTEXT_WORDS <= (int)STACK_WINDOW_WORDS, "the walk's window has the words");

__attribute__((noinline)) int add_label(unsigned int key_at, unsigned int value_at)
{
	struct sample_scratch *s = scratch_find();
	struct thread_context *room = s ? context_room(s) : 0;

	return room ? context_label_add(room, s->window.words, key_at, value_at) : 1;
}

__attribute__((noinline)) int add_bucket(void)
{
	struct sample_scratch *s = scratch_find();
	struct thread_context *room = s ? context_room(s) : 0;

	return room ? context_add_bucket(room, s->window.words) : 0;
}

/* Fills what is behind the frames, in bytes. Below 0: some were not there. */
int read_goroutine_labels(void);
__attribute__((noinline)) int read_goroutine_labels(void)
{
	struct sample_scratch *s = scratch_find();
	const struct thread_context_place *place;
	struct thread_context *room;
	int is_missing;
	__u32 bytes;

	room = s ? context_room(s) : 0;
	place = s ? thread_context_place_of(&s->event) : 0;
	if (!room || !place)
		return 0;
	s->window.bytes = 0; /* the walk does not need it any more */
	bytes = context_read_labels(place, context_thread_pointer(), room, s->window.words,
				    &is_missing);
	return is_missing ? -1 : bytes;
}

static __always_inline __u32 goroutine_labels_read(int *is_missing)
{
	int bytes = read_goroutine_labels();

	*is_missing = bytes < 0;
	return bytes < 0 || bytes > THREAD_CONTEXT_MAX ? 0 : bytes;
}

/* What the thread publishes goes behind the frames: event has their counts. Returns its words. */
int read_thread_context(void);
__attribute__((noinline)) int read_thread_context(void)
{
	struct sample_scratch *s = scratch_find();
	struct thread_context *room = s ? context_room(s) : 0;
	struct thread_context_place *place;
	int is_missing;
	__u32 bytes;

	place = room ? thread_context_place_of(&s->event) : 0;
	if (!place)
		return 0;
	if (place->kind >= THREAD_CONTEXT_GO_LIST)
		bytes = goroutine_labels_read(&is_missing);
	else
		bytes = context_read_record(place, context_thread_pointer(), room, &is_missing);
	if (is_missing)
		count(COUNT_contexts_unread);
	if (!bytes)
		return 0;
	count(COUNT_contexts);
	s->event.flags |= SAMPLE_HAS_CONTEXT;
	return (bytes + sizeof(__u64) - 1) / sizeof(__u64);
}

#endif
