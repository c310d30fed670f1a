/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are where a process says that its threads' contexts are, then its memory: records,
 * lists and maps of labels. */
#include <string.h>

#include "tests/fuzz/read_memory.h"

#define CONTEXT_READ(to, bytes, from) read_memory(to, bytes, from)

#include "bpf/context_read.bpf.h"
#include "node-agent/contexts/labels_record.h"
#include "tests/fuzz/fuzz.h"

static void check_labels(const struct thread_context *room, uint32_t bytes)
{
	static struct labels_record record;

	labels_record_decode(&record, room, bytes);
	if (record.attribute_count > LABELS_RECORD_ATTRIBUTES_MAX)
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct thread_context *room = malloc(THREAD_CONTEXT_MAX);
	__u64 *words = malloc(CONTEXT_WORDS * sizeof *words);
	struct thread_context_place place;
	int is_missing = 0;
	uint32_t got = 0;

	if (length >= sizeof place && room && words) {
		memcpy(&place, bytes, sizeof place);
		memory = bytes + sizeof place;
		memory_bytes = length - sizeof place;
		if (place.kind == THREAD_CONTEXT_GO_LIST || place.kind == THREAD_CONTEXT_GO_MAP)
			got = context_read_labels(&place, MEMORY_AT, room, words, &is_missing);
		else
			got = context_read_record(&place, MEMORY_AT, room, &is_missing);
		if (got > THREAD_CONTEXT_MAX || (got && got < THREAD_CONTEXT_HEADER))
			abort();
		if (got && room->valid == THREAD_CONTEXT_LABELS)
			check_labels(room, got);
	}
	free(words);
	free(room);
}
