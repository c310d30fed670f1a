/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/labels_record.h"

#include <string.h>

#include "common/hex.h"
#include "node-agent/contexts/thread_record.h"

struct label {
	const uint8_t *key, *value;
	size_t key_bytes, value_bytes;
};

/* What libraries call the ids that they write in hexadecimal digits. */
static const char *const trace_names[] = {"trace_id", "traceid", "trace.id", "traceID", "TraceID"};
static const char *const span_names[] = {"span_id", "spanid", "span.id",
					 "spanID",  "SpanID", "profile_id"};

static bool is_one_of(const struct label *label, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == label->key_bytes &&
		    !memcmp(names[i], label->key, label->key_bytes))
			return true;
	return false;
}

/* False: it is another text, which says nothing of the id. */
static bool read_id(const struct label *label, uint8_t *id, size_t bytes)
{
	uint8_t read[16];

	if (label->value_bytes != 2 * bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		int high = hex_digit(label->value[2 * i]), low = hex_digit(label->value[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		read[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(id, read, bytes);
	return true;
}

static bool take_id(struct labels_record *record, const struct label *label)
{
	enum {
		TRACES = sizeof trace_names / sizeof *trace_names,
		SPANS = sizeof span_names / sizeof *span_names
	};

	return (is_one_of(label, trace_names, TRACES) &&
		read_id(label, record->trace_id, sizeof record->trace_id)) ||
	       (is_one_of(label, span_names, SPANS) &&
		read_id(label, record->span_id, sizeof record->span_id));
}

/* It ends where the first byte of 0 is, too. */
static const char *copy(struct labels_record *record, size_t *used, const uint8_t *from,
			size_t bytes)
{
	char *to = record->texts + *used;

	memcpy(to, from, bytes);
	to[bytes] = '\0';
	*used += bytes + 1;
	return to;
}

/* In the order of their keys: maps have none, and equal labels shall be the same. */
static void insert(struct labels_record *record, struct context_attribute added)
{
	size_t at = record->attribute_count++;

	for (; at && strcmp(record->attributes[at - 1].key, added.key) > 0; at--)
		record->attributes[at] = record->attributes[at - 1];
	record->attributes[at] = added;
}

static void add(struct labels_record *record, size_t *used, const struct label *label)
{
	const size_t before = *used;
	struct context_attribute to;

	if (record->attribute_count == LABELS_RECORD_ATTRIBUTES_MAX) {
		record->is_cut = true;
		return;
	}
	to.key = copy(record, used, label->key, label->key_bytes);
	to.value = copy(record, used, label->value, label->value_bytes);
	if (*to.key && *to.value && !thread_record_is_ours(to.key))
		insert(record, to);
	else
		*used = before;
}

void labels_record_decode(struct labels_record *record, const struct thread_context *context,
			  size_t bytes)
{
	size_t length = bytes - THREAD_CONTEXT_HEADER, used = 0;

	record->attribute_count = 0;
	memset(record->trace_id, 0, sizeof record->trace_id);
	memset(record->span_id, 0, sizeof record->span_id);
	record->is_cut = context->cut || context->attributes_bytes > length;
	if (context->attributes_bytes < length)
		length = context->attributes_bytes;
	for (size_t at = 0; at + 2 <= length;) {
		const uint8_t *from = context->attributes + at;
		const struct label label = {from + 2, from + 2 + from[0], from[0], from[1]};

		if (label.key_bytes + label.value_bytes > length - at - 2)
			break;
		if (!take_id(record, &label))
			add(record, &used, &label);
		at += 2 + label.key_bytes + label.value_bytes;
	}
}
