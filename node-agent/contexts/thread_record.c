/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/thread_record.h"

#include <string.h>

bool thread_record_is_ours(const char *key)
{
	return !strncmp(key, "farflame.", 9) || !strncmp(key, "thread.", 7);
}

/* The last value of a key is the one that counts. */
static struct context_attribute *place_of(struct thread_record *record, const char *key)
{
	for (size_t i = 0; i < record->attribute_count; i++)
		if (record->attributes[i].key == key)
			return &record->attributes[i];
	if (record->attribute_count == THREAD_RECORD_ATTRIBUTES_MAX)
		return NULL;
	return &record->attributes[record->attribute_count++];
}

void thread_record_decode(struct thread_record *record, const struct thread_context *context,
			  size_t bytes, const char *const *keys, size_t key_count)
{
	size_t length = context->attributes_bytes, most = bytes - THREAD_CONTEXT_HEADER, used = 0;

	if (most > THREAD_RECORD_ATTRIBUTES_BYTES)
		most = THREAD_RECORD_ATTRIBUTES_BYTES;
	record->attribute_count = 0;
	record->has_unknown = false;
	record->is_cut = length > most;
	if (record->is_cut)
		length = most;
	for (size_t at = 0; at + 2 <= length;) {
		const uint8_t index = context->attributes[at], size = context->attributes[at + 1];
		struct context_attribute *to;

		if (size > length - at - 2)
			break;
		if (index >= key_count) {
			record->has_unknown = true;
		} else if (keys[index] && !thread_record_is_ours(keys[index])) {
			to = place_of(record, keys[index]);
			record->is_cut |= !to;
			if (to) {
				*to = (struct context_attribute){keys[index], record->texts + used};
				memcpy(record->texts + used, context->attributes + at + 2, size);
				record->texts[used + size] = '\0';
				used += size + 1u; /* less than what it takes in the record */
			}
		}
		at += 2u + size;
	}
}
