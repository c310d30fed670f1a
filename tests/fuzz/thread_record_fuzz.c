/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a thread's context as the kernel side copies it, with a process' list of keys. */
#include "node-agent/contexts/thread_record.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check_text(const struct thread_record *record, const char *value)
{
	if (value < record->texts || value >= record->texts + sizeof record->texts ||
	    !memchr(value, 0, (size_t)(record->texts + sizeof record->texts - value)))
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const char *const keys[] = {"http.route", "http.method", "", "k"};
	struct thread_record record;

	if (length < THREAD_CONTEXT_HEADER || length > THREAD_CONTEXT_MAX)
		return;
	memset(&record, 0, sizeof record);
	thread_record_decode(&record, (const struct thread_context *)bytes, length, keys,
			     sizeof keys / sizeof *keys);
	if (record.attribute_count > THREAD_RECORD_ATTRIBUTES_MAX)
		abort();
	for (size_t i = 0; i < record.attribute_count; i++)
		check_text(&record, record.attributes[i].value);
	thread_record_decode(&record, (const struct thread_context *)bytes, length, NULL, 0);
	if (record.attribute_count)
		abort();
}
