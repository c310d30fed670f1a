/* SPDX-License-Identifier: Apache-2.0 */
/* The small languages of the parameters: match, from and until, group_by, root; and what they do
 * with labels. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "symbol-server/api/flame_request.h"
#include "symbol-server/query/query.h"
#include "symbol-server/query/time_range.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {"host", "service"};
	static const char *const values[] = {"web-1", "api"};
	static const struct series_labels labels = {names, values, 2};
	struct query query = {0};
	const char *const *root;
	struct arena arena;
	unsigned depth;
	int64_t ms;
	char *text;

	arena_init(&arena, 1 << 20);
	text = arena_text(&arena, (const char *)bytes, length < 16384 ? length : 16384);
	if (!text)
		return;
	if (selector_parse(&query.selector, text, &arena, NULL)) {
		selector_matches_series(&query.selector, &labels);
		selector_matches_thread(&query.selector, "main");
	}
	selector_release(&query.selector);
	if (time_parse(text, 1785585600000, &ms, NULL) && (ms < 0 || ms > 253402300799999))
		abort();
	query_parse_groups(&query, text, &arena, NULL);
	root_path_parse(text, &arena, &root, &depth, NULL);
	arena_release(&arena);
}
