/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are the memory of a process with Java, at TABLES_AT; in front of it, after a byte of
 * flags, a JavaThread, and where references begin and how far they are shifted. */
#include "node-agent/runtimes/hotspot_thread_name.h"

#include "tests/fuzz/fuzz.h"
#include "tests/unit/runtimes/hotspot_tables.h"

enum { THREADS = 8 };

static const char kernel[] = "a-rather-long-j";

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct tables_image image = {bytes + 1, length - 1};
	const struct python_memory memory = {tables_read, &image};
	struct hotspot_layout layout = {.thread_os = 16,
					.thread_object = 24,
					.thread_next = 32,
					.list_length = 4,
					.list_threads = 8,
					.narrow_oop_base = TABLES_AT,
					.narrow_oop_shift = TABLES_AT + 8,
					.threads = TABLES_AT + 40};
	struct hotspot_name_place place = {0};
	char name[HOTSPOT_THREAD_NAME_BYTES];
	uint64_t threads[THREADS];

	if (length < 1)
		return;
	layout.version = bytes[0] & 1 ? 8 : 17;
	layout.flags = bytes[0] & 2 ? HOTSPOT_LAYOUT_OBJECT_HANDLE : 0;
	layout.flags |= bytes[0] & 4 ? HOTSPOT_LAYOUT_THREADS_LINKED : 0;
	for (unsigned i = 0; i < 2; i++) { /* at first sight, and as it was learnt */
		if (!hotspot_thread_name_read(&memory, &layout, &place, TABLES_AT, kernel, name))
			continue;
		if (strlen(name) >= sizeof name || !hotspot_thread_name_fits(name, kernel))
			abort();
	}
	if (hotspot_threads_list(&memory, &layout, bytes[0] >> 3, threads, THREADS) > THREADS)
		abort();
	(void)hotspot_thread_id(&memory, &layout, TABLES_AT);
}
