/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/report_window.h"

#include <stdlib.h>
#include <string.h>

void report_window_init(struct report_window *window)
{
	memset(window, 0, sizeof *window);
	hash_table_init(&window->index, REPORT_WINDOW_MAX);
}

void report_window_release(struct report_window *window)
{
	free(window->runs);
	hash_table_release(&window->index);
	report_window_init(window);
}

static uint64_t run_hash(uint32_t tenant, const uint8_t prefix[12])
{
	return hash_bytes(prefix, 12, tenant);
}

enum report_seen report_window_find(const struct report_window *window, uint32_t tenant,
				    const uint8_t id[16], uint64_t committed)
{
	uint32_t number = report_number(id);
	uint64_t hash = run_hash(tenant, id);

	HASH_TABLE_EACH(i, &window->index, hash) {
		const struct report_run *run = &window->runs[i];

		if (run->tenant == tenant && !memcmp(run->prefix, id, sizeof run->prefix) &&
		    number - run->first < run->count)
			return run->group > committed ? REPORT_PENDING : REPORT_SEEN;
	}
	return REPORT_NEW;
}

/* Doubles the ring while it is not at its largest; nothing moves, as nothing has wrapped yet. */
static bool grow(struct report_window *window)
{
	uint32_t capacity = window->capacity ? window->capacity * 2 : 1024;
	struct report_run *runs;

	if (window->added < window->capacity || window->capacity == REPORT_WINDOW_MAX)
		return true;
	runs = realloc(window->runs, capacity * sizeof *runs);
	if (!runs)
		return false;
	window->runs = runs;
	window->capacity = capacity;
	return true;
}

static void unlink_run(struct report_window *window, uint32_t place)
{
	struct report_run *run = &window->runs[place];

	if (run->count)
		hash_table_remove(&window->index, run_hash(run->tenant, run->prefix), place);
	run->count = 0;
}

bool report_window_add(struct report_window *window, const struct report_run *run)
{
	uint32_t place;

	if (!grow(window))
		return false;
	place = (uint32_t)(window->added % window->capacity);
	if (window->added >= window->capacity)
		unlink_run(window, place);
	if (!hash_table_add(&window->index, run_hash(run->tenant, run->prefix), place))
		return false;
	window->runs[place] = *run;
	window->added++;
	return true;
}

void report_window_forget(struct report_window *window, uint64_t committed)
{
	for (uint64_t n = window->added; n > 0 && window->added - n < window->capacity; n--) {
		uint32_t place = (uint32_t)((n - 1) % window->capacity);

		if (window->runs[place].count && window->runs[place].group <= committed)
			break;
		unlink_run(window, place);
	}
}

const struct report_run *report_window_at(const struct report_window *window, uint64_t n)
{
	if (n >= window->added || window->added - n > window->capacity)
		return NULL;
	return &window->runs[n % window->capacity];
}
