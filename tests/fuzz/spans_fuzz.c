/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as spans of samples, stored or collected, and as a sample's context: what is read is
 * inside, what was read is written and read again the same, and a filter has all of its ids. First
 * byte: which of the three. */
#include "symbol-server/store/sqlite/cells/spans.h"

#include <string.h>

#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"
#include "symbol-server/store/sample_context.h"
#include "tests/fuzz/fuzz.h"

enum { KEPT = 4096 };

struct list {
	struct span_sample at[KEPT];
	size_t count;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool keep(void *context, const struct span_sample *span)
{
	struct list *list = context;

	list->at[list->count++] = *span;
	return list->count < KEPT;
}

static bool same(const struct list *a, const struct list *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (memcmp(a->at[i].ids, b->at[i].ids, SPAN_IDS_BYTES) ||
		    a->at[i].thread != b->at[i].thread || a->at[i].stack != b->at[i].stack)
			return false;
	return a->count == b->count;
}

static void check_spans(const uint8_t *bytes, size_t length, bool is_raw)
{
	static struct list in, out;
	struct buffer stored, filter;

	in.count = out.count = 0;
	is_raw ? spans_each_raw(bytes, length, keep, &in) : spans_each(bytes, length, keep, &in);
	buffer_init(&stored, 1 << 20);
	buffer_init(&filter, 1 << 20);
	spans_encode(in.at, in.count, &stored); /* sorts them */
	spans_filter(in.at, in.count, &filter);
	must(!stored.failed && !filter.failed);
	must(in.count == KEPT || spans_each(stored.bytes, stored.length, keep, &out));
	must(in.count == KEPT || same(&in, &out));
	for (size_t i = 0; i < in.count; i++)
		must(spans_may_have(filter.bytes, filter.length, in.at[i].ids, TRACE_ID_BYTES) &&
		     spans_may_have(filter.bytes, filter.length, in.at[i].ids + TRACE_ID_BYTES,
				    SPAN_ID_BYTES));
	spans_may_have(bytes, length, bytes, length < 16 ? length : 16);
	buffer_release(&stored);
	buffer_release(&filter);
}

static bool see(void *to, const char *name, const char *value)
{
	size_t *seen = to;

	*seen += strlen(name) + strlen(value);
	return true;
}

/* Two contexts of a day, of which one may tell of the other's process. */
static void check_lifetimes(const char *text, size_t length)
{
	struct catalog *catalog = catalog_new();
	const char *half = memchr(text, '\n', length);
	size_t first = half ? (size_t)(half - text) : length;
	char out[CONTEXT_BYTES_MAX];
	struct lifetimes *lifetimes;

	must(catalog);
	catalog_add_string(catalog, (struct text){text, (uint32_t)first});
	lifetimes = catalog_lifetimes_new(catalog, catalog_mark(catalog).count[CATALOG_STRINGS]);
	must(lifetimes);
	must(strlen(lifetimes_join(lifetimes, half ? half + 1 : text, out)) < 2 * sizeof out);
	lifetimes_free(lifetimes);
	catalog_release(catalog);
}

static void check_context(const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {"thread", "thread_id", "http.route", "attr.a",
					    "attr_a_b"};
	char text[4096], value[40], again[40], reduced[CONTEXT_BYTES_MAX];
	size_t seen = 0;

	if (length >= sizeof text)
		return;
	memcpy(text, bytes, length);
	text[length] = 0;
	check_lifetimes(text, strlen(text));
	sample_context_each(text, see, &seen);
	sample_context_reduce(text, names, 5, reduced);
	must(strlen(reduced) < CONTEXT_BYTES_MAX);
	for (unsigned i = 0; i < 5; i++) {
		sample_context_get(text, names[i], value, sizeof value);
		sample_context_get(reduced, names[i], again, sizeof again);
		must(strlen(value) < sizeof value && strlen(again) < sizeof again);
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	if (!length)
		return;
	if (bytes[0] % 3 == 2)
		check_context(bytes + 1, length - 1);
	else
		check_spans(bytes + 1, length - 1, bytes[0] % 3);
}
