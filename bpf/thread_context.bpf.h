/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Trace and span of the interrupted thread, from its own memory: OTEP 4947, or a goroutine's
 * labels, bpf/goroutine_labels.bpf.h. Nothing is looked up before the first process has such: then
 * user space makes the table. */
#ifndef BPF_THREAD_CONTEXT_BPF_H
#define BPF_THREAD_CONTEXT_BPF_H

#include "bpf/kernel_types.h"
#define CONTEXT_READ(to, bytes, from)        bpf_probe_read_user(to, bytes, (const void *)(from))
#define CONTEXT_ADD_LABEL(room, words, k, v) add_label(k, v)
#define CONTEXT_ADD_BUCKET(room, words)      (__u32) add_bucket()
int add_label(unsigned int key_at, unsigned int value_at);
int add_bucket(void);
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

#endif
