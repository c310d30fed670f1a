/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a goroutine's labels as the kernel side copies them. */
#include "node-agent/contexts/labels_record.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static size_t check_text(const struct labels_record *record, const char *text)
{
	if (text < record->texts || text >= record->texts + sizeof record->texts ||
	    !memchr(text, 0, (size_t)(record->texts + sizeof record->texts - text)) || !*text)
		abort();
	return strlen(text);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct labels_record record;
	size_t all = 0;

	if (length < THREAD_CONTEXT_HEADER || length > THREAD_CONTEXT_MAX)
		return;
	memset(&record, 0, sizeof record);
	labels_record_decode(&record, (const struct thread_context *)bytes, length);
	if (record.attribute_count > LABELS_RECORD_ATTRIBUTES_MAX)
		abort();
	for (size_t i = 0; i < record.attribute_count; i++) {
		all += check_text(&record, record.attributes[i].key) +
		       check_text(&record, record.attributes[i].value);
		if (i && strcmp(record.attributes[i - 1].key, record.attributes[i].key) > 0)
			abort();
	}
	if (all > length)
		abort();
}
