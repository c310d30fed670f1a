/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/requests.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/contexts/labels_record.h"
#include "node-agent/contexts/thread_places.h"
#include "node-agent/contexts/thread_record.h"
#include "node-agent/processes/process_files.h"

enum {
	ATTRIBUTES_MAX = PROCESS_CONTEXT_ATTRIBUTES_MAX > (int)THREAD_RECORD_ATTRIBUTES_MAX
				 ? (int)PROCESS_CONTEXT_ATTRIBUTES_MAX
				 : (int)THREAD_RECORD_ATTRIBUTES_MAX,
};

struct requests {
	struct requests_sources from;
	struct contexts *contexts;
	struct thread_places *places;
	uint64_t samples, cut, unknown_keys;
	struct thread_record record;
	struct labels_record labels;
	struct counted_attribute process[ATTRIBUTES_MAX], thread[ATTRIBUTES_MAX];
};

static int open_process(void *context, const struct process_key *process)
{
	(void)context;
	return process_directory_open("/proc", process->tgid, process->start_time_ns);
}

static enum context_located locate(void *context, const struct process_key *process, int directory,
				   struct thread_context_place *place)
{
	return thread_places_find(((struct requests *)context)->places, process, directory, place);
}

static enum context_located locate_labels(void *context, const struct process_key *process,
					  struct thread_context_place *place)
{
	return thread_places_find_labels(((struct requests *)context)->places, process, place);
}

struct requests *requests_new(const struct requests_sources *from, struct error *err)
{
	struct requests *requests = calloc(1, sizeof *requests);
	const struct contexts_sources sources = {.processes = process_table_processes(from->table),
						 .open_process = open_process,
						 .locate = locate,
						 .locate_labels = locate_labels,
						 .context = requests,
						 .places_map = from->places_map};

	if (!requests) {
		error_set(err, ERROR_MEMORY, "no memory for requests");
		return NULL;
	}
	requests->from = *from;
	requests->places = thread_places_new(from->table, from->pages, err);
	requests->contexts = requests->places ? contexts_new(&sources, err) : NULL;
	if (requests->contexts)
		return requests;
	requests_free(requests);
	return NULL;
}

void requests_free(struct requests *requests)
{
	if (!requests)
		return;
	contexts_free(requests->contexts);
	thread_places_free(requests->places);
	free(requests);
}

static size_t convert(const struct context_attribute *from, size_t count,
		      struct counted_attribute *to)
{
	for (size_t i = 0; i < count; i++)
		to[i] = (struct counted_attribute){from[i].key, from[i].value};
	return count;
}

static void describe_labels(struct requests *requests, const struct thread_context *published,
			    uint32_t bytes, struct counted_thread *thread)
{
	struct labels_record *labels = &requests->labels;

	labels_record_decode(labels, published, bytes);
	memcpy(thread->link.trace_id, labels->trace_id, sizeof thread->link.trace_id);
	memcpy(thread->link.span_id, labels->span_id, sizeof thread->link.span_id);
	thread->attributes = requests->thread;
	thread->attribute_count = convert(labels->attributes, labels->attribute_count,
					  requests->thread);
	requests->cut += labels->is_cut;
}

static void describe_thread(struct requests *requests, const struct process_key *key,
			    const struct process_context *context,
			    const struct sample_event *sample, struct counted_thread *thread)
{
	struct thread_record *record = &requests->record;
	const struct thread_context *published;
	uint32_t bytes;

	published = sample_event_context(sample, &bytes);
	if (!published)
		return;
	requests->samples++;
	if (published->valid == THREAD_CONTEXT_LABELS) {
		describe_labels(requests, published, bytes, thread);
		return;
	}
	memcpy(thread->link.trace_id, published->trace_id, sizeof thread->link.trace_id);
	memcpy(thread->link.span_id, published->span_id, sizeof thread->link.span_id);
	thread_record_decode(record, published, bytes, context ? context->keys : NULL,
			     context ? context->key_count : 0);
	thread->attributes = requests->thread;
	thread->attribute_count = convert(record->attributes, record->attribute_count,
					  requests->thread);
	requests->cut += record->is_cut;
	if (!record->has_unknown)
		return;
	requests->unknown_keys++;
	contexts_want_keys(requests->contexts, key);
}

bool requests_find(struct requests *requests, const struct sample_event *sample,
		   struct thread_context_place *place)
{
	const struct process_key key = process_key_of(sample);

	return contexts_place(requests->contexts, &key, place);
}

void requests_describe(struct requests *requests, const struct sample_event *sample,
		       struct counted_process *process, struct counted_thread *thread)
{
	const struct process_key key = process_key_of(sample);
	const struct process_context *context;

	if (sample->flags & SAMPLE_KERNEL_THREAD)
		return;
	context = contexts_sampled(requests->contexts, &key);
	if (context && context->attribute_count) {
		process->attributes = requests->process;
		process->attribute_count = convert(context->attributes, context->attribute_count,
						   requests->process);
	}
	describe_thread(requests, &key, context, sample, thread);
}

void requests_run(struct requests *requests, int64_t now_ms)
{
	contexts_run(requests->contexts, now_ms);
}

void requests_counters(const struct requests *requests, struct requests_counters *out)
{
	contexts_counters(requests->contexts, &out->contexts);
	out->samples = requests->samples;
	out->cut = requests->cut;
	out->unknown_keys = requests->unknown_keys;
}
