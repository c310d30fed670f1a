/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Labels that Go's runtime/pprof has given to the goroutine of the interrupted thread, also while
 * that is on its system stack or in C. Parts are verified once, on their own: see find_rule(). */
#ifndef BPF_GOROUTINE_LABELS_BPF_H
#define BPF_GOROUTINE_LABELS_BPF_H

#include "bpf/thread_context.bpf.h"

_Static_assert((int)CONTEXT_WORDS <= (int)STACK_WINDOW_WORDS, "the walk's window has the words");

static __always_inline struct thread_context *labels_room(struct sample_scratch *s)
{
	__u32 at = (__u32)s->event.kernel_count + s->event.user_count;

	return at > STACK_FRAMES_ROOM ? 0 : (struct thread_context *)&s->frames[at];
}

__attribute__((noinline)) int add_label(unsigned int key_at, unsigned int value_at)
{
	struct sample_scratch *s = scratch_find();
	struct thread_context *room = s ? labels_room(s) : 0;

	return room ? context_label_add(room, s->window.words, key_at, value_at) : 1;
}

__attribute__((noinline)) int add_bucket(void)
{
	struct sample_scratch *s = scratch_find();
	struct thread_context *room = s ? labels_room(s) : 0;

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

	room = s ? labels_room(s) : 0;
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

#endif
