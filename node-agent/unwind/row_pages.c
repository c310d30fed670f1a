/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/unwind/page_table.h"
#include "node-agent/unwind/row_pools.h"
#include "node-agent/unwind/row_room.h"
#include "node-agent/unwind/rule_table.h"

enum {
	POOL_ROWS = UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS,
	AT_ONCE = 16, /* a sixteenth goes in one eviction: each wait for the readers takes ms */
	RETRY_FIRST_S = 60,
	RETRY_UNREADABLE_S = 5, /* a descriptor closed for others, mostly */
	RETRY_LAST_S = 3600,
	ASKED_MAX_S = 600, /* an answer that has not come by then will not */
	RULES_KEEP_S = 600,
};

struct row_pages {
	int pages_map;
	struct page_table table;
	struct row_pools *pools;
	struct row_room room;
	struct rule_table rules;
	uint32_t rules_since_s; /* when they were begun anew */
	uint64_t dead_rows;     /* of pages that went; they are free after a recount */
	/* An entry went from the kernel's hash, whose memory the next one gets: somebody may still
	 * read it as what it was. */
	bool is_unclean;
	uint32_t held; /* the page that an eviction must leave, or PAGE_NONE */
	struct row_pages_counters counters;
};

static struct page_entry *entry_of(struct row_pages *pages, uint32_t number)
{
	return &pages->table.entries[number];
}

/* Nobody in the kernel knows any more what has left: its rows are free. */
static bool recount(struct row_pages *pages)
{
	struct row_span *used = malloc((pages->table.count + 1) * sizeof *used);
	uint32_t count = 0;
	bool ok = false;

	if (!used)
		return false;
	for (uint32_t i = 0; i < pages->table.count; i++) {
		const struct page_entry *entry = entry_of(pages, i);

		if (entry->executable && entry->count)
			used[count++] = (struct row_span){entry->first_row, entry->count};
	}
	ok = row_room_recount(&pages->room, row_pools_count(pages->pools), used, count);
	free(used);
	if (ok) {
		pages->dead_rows = 0;
		pages->is_unclean = false;
	}
	return ok;
}

struct row_pages *row_pages_new(const struct row_pages_options *options, struct error *err)
{
	struct row_pages *pages = calloc(1, sizeof *pages);

	if (!pages) {
		error_set(err, ERROR_MEMORY, "no memory for the table of unwind pages");
		return NULL;
	}
	pages->pages_map = options->pages_map;
	pages->held = PAGE_NONE;
	page_table_init(&pages->table);
	rule_table_init(&pages->rules, options->rules_map);
	pages->pools = row_pools_new(options->pools_map, options->limit_bytes, err);
	if (pages->pools && recount(pages))
		return pages;
	if (pages->pools)
		error_set(err, ERROR_MEMORY, "no memory for the table of unwind pages");
	row_pages_free(pages);
	return NULL;
}

void row_pages_free(struct row_pages *pages)
{
	if (!pages)
		return;
	page_table_release(&pages->table);
	rule_table_release(&pages->rules);
	row_pools_free(pages->pools);
	row_room_release(&pages->room);
	free(pages);
}

/* --- leaving --- */

/* ABSENT, for the kernel too. False: the kernel keeps it, and so do we. */
static bool unpublish(struct row_pages *pages, struct page_entry *entry)
{
	const struct unwind_page_key key = {entry->executable, entry->page};

	if (entry->state == UNWIND_PAGE_ABSENT)
		return true;
	if (pages->pages_map >= 0) {
		if (!bpf_map_remove(pages->pages_map, &key, NULL))
			return false;
		pages->is_unclean = true;
	}
	if (entry->state == UNWIND_PAGE_LOADED) {
		pages->dead_rows += entry->count;
		pages->counters.rows -= entry->count;
	}
	pages->counters.pages--;
	entry->state = UNWIND_PAGE_ABSENT;
	entry->is_asked = false;
	entry->count = 0;
	return true;
}

static bool drop(struct row_pages *pages, uint32_t number)
{
	if (!unpublish(pages, entry_of(pages, number)))
		return false;
	page_table_remove(&pages->table, number);
	return true;
}

void row_pages_forget(struct row_pages *pages, uint32_t executable)
{
	for (uint32_t i = 0; i < pages->table.count; i++)
		if (executable && entry_of(pages, i)->executable == executable)
			drop(pages, i);
}

static bool settle(struct row_pages *pages)
{
	struct error err = {0};

	if (!row_pools_wait(pages->pools, &err)) {
		log_warn("unwind rows stay", "why=\"%s\"", err.message);
		return false;
	}
	return recount(pages);
}

static bool grow(struct row_pages *pages)
{
	return row_pools_grow(pages->pools, NULL) && recount(pages); /* readers were waited for */
}

/* --- eviction --- */

struct candidate {
	uint32_t used_s, number;
};

static int least_used_first(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->used_s != right->used_s)
		return left->used_s < right->used_s ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

/* The least used pages, until so many rows, or pages, have gone. False: none could go. */
static bool evict(struct row_pages *pages, bool for_rows, uint64_t amount)
{
	struct candidate *order = calloc(pages->table.count + 1, sizeof *order);
	uint32_t count = 0;
	uint64_t gone = 0;

	for (uint32_t i = 0; order && i < pages->table.count; i++)
		if (entry_of(pages, i)->executable && i != pages->held &&
		    (entry_of(pages, i)->count || !for_rows))
			order[count++] = (struct candidate){entry_of(pages, i)->used_s, i};
	if (count)
		qsort(order, count, sizeof *order, least_used_first);
	for (uint32_t i = 0; i < count && gone < amount; i++) {
		uint32_t rows = entry_of(pages, order[i].number)->count;

		if (drop(pages, order[i].number)) {
			pages->counters.evicted++;
			gone += for_rows ? rows : 1;
		}
	}
	free(order);
	return gone;
}

static bool evict_rows(struct row_pages *pages)
{
	return evict(pages, true, (uint64_t)row_pools_count(pages->pools) * POOL_ROWS / AT_ONCE);
}

/* For the table's sake, or the kernel's hash: whatever their state. */
static bool evict_pages(struct row_pages *pages)
{
	return evict(pages, false, pages->table.by_key.live / AT_ONCE + 1);
}

/* --- entries --- */

static uint32_t find_or_add(struct row_pages *pages, uint32_t executable, uint32_t page,
			    uint32_t now_s)
{
	uint32_t number = page_table_find(&pages->table, executable, page);

	if (!executable)
		return PAGE_NONE;
	if (number == PAGE_NONE) {
		number = page_table_add(&pages->table, executable, page);
		if (number == PAGE_NONE && evict_pages(pages))
			number = page_table_add(&pages->table, executable, page);
	}
	if (number != PAGE_NONE)
		entry_of(pages, number)->used_s = now_s;
	return number;
}

enum unwind_page_state row_pages_state(struct row_pages *pages, uint32_t executable, uint32_t page,
				       uint32_t now_s, bool *is_asked)
{
	uint32_t number = page_table_find(&pages->table, executable, page);
	struct page_entry *entry;

	*is_asked = false;
	if (number == PAGE_NONE)
		return UNWIND_PAGE_ABSENT;
	entry = entry_of(pages, number);
	entry->used_s = now_s;
	if (entry->state == UNWIND_PAGE_FAILED && entry->retry_s <= now_s)
		unpublish(pages, entry);
	if (entry->state == UNWIND_PAGE_ABSENT && entry->is_asked &&
	    now_s - entry->asked_s >= ASKED_MAX_S)
		entry->is_asked = false;
	*is_asked = entry->is_asked;
	return entry->state;
}

void row_pages_asked(struct row_pages *pages, uint32_t executable, uint32_t page, uint32_t now_s)
{
	uint32_t number = find_or_add(pages, executable, page, now_s);
	struct page_entry *entry;

	if (number == PAGE_NONE)
		return;
	entry = entry_of(pages, number);
	if (entry->state != UNWIND_PAGE_ABSENT)
		return;
	entry->is_asked = true;
	entry->asked_s = now_s;
}

/* --- answers --- */

static bool write_entry(struct row_pages *pages, const struct page_entry *entry,
			const struct unwind_page *value, struct error *err)
{
	const struct unwind_page_key key = {entry->executable, entry->page};

	return pages->pages_map < 0 || bpf_map_write(pages->pages_map, &key, value, err);
}

/* The entry gets this state, for the kernel too. */
static bool publish(struct row_pages *pages, uint32_t number, const struct unwind_page *value,
		    struct error *err)
{
	struct error why = {0};
	struct page_entry *entry;

	if (pages->is_unclean && !settle(pages))
		return error_set(err, ERROR_SYSTEM, "readers of unwind pages could not be awaited");
	entry = entry_of(pages, number);
	if (!write_entry(pages, entry, value, &why)) {
		/* Fuller than we know. */
		if (why.os_error != E2BIG || !evict_pages(pages) || !settle(pages) ||
		    !write_entry(pages, entry, value, &why)) {
			if (err)
				*err = why;
			return false;
		}
	}
	entry->state = value->state;
	entry->is_asked = false;
	entry->count = value->count;
	pages->counters.pages++;
	return true;
}

static uint32_t find_room(struct row_pages *pages, uint32_t count)
{
	uint64_t capacity = (uint64_t)row_pools_count(pages->pools) * POOL_ROWS;
	uint32_t place = row_room_take(&pages->room, count);

	if (place == ROW_PLACE_NONE && pages->dead_rows >= capacity / AT_ONCE && settle(pages))
		place = row_room_take(&pages->room, count);
	if (place == ROW_PLACE_NONE && grow(pages))
		place = row_room_take(&pages->room, count);
	if (place == ROW_PLACE_NONE && pages->dead_rows && settle(pages))
		place = row_room_take(&pages->room, count);
	while (place == ROW_PLACE_NONE && evict_rows(pages) && settle(pages))
		place = row_room_take(&pages->room, count);
	return place;
}

/* The page's rules → everybody's; its rows with those numbers, in an element's worth at a time. */
static bool write_rows(struct row_pages *pages, const struct page_rows *rows, uint32_t place,
		       const uint16_t *numbers, struct error *err)
{
	struct unwind_row part[UNWIND_ELEMENT_ROWS];

	for (uint32_t done = 0; done < rows->count; done += UNWIND_ELEMENT_ROWS) {
		uint32_t count = rows->count - done;

		if (count > UNWIND_ELEMENT_ROWS)
			count = UNWIND_ELEMENT_ROWS;
		for (uint32_t i = 0; i < count; i++) {
			part[i] = rows->rows[done + i];
			part[i].rule = numbers[part[i].rule];
		}
		if (!row_pools_write(pages->pools, place + done, part, count, err))
			return false;
	}
	return true;
}

/* Rules are only ever added to, and one file of a stranger's may have thousands: once they are too
 * many all pages go, and those that are in use come back. Not too often, since that costs every
 * process. */
static bool begin_rules(struct row_pages *pages, uint32_t now_s)
{
	if (now_s - pages->rules_since_s < RULES_KEEP_S)
		return false;
	for (uint32_t i = 0; i < pages->table.count; i++) {
		if (entry_of(pages, i)->state != UNWIND_PAGE_LOADED)
			continue;
		if (!drop(pages, i))
			return false;
		pages->counters.evicted++;
	}
	if (!settle(pages))
		return false;
	log_info("unwind rules begun anew", "rules=%u", pages->rules.count);
	rule_table_clear(&pages->rules);
	pages->rules_since_s = now_s;
	return true;
}

static bool number_rules(struct row_pages *pages, const struct page_rows *rows, uint16_t *numbers,
			 struct error *err)
{
	for (uint32_t i = 0; i < rows->rule_count; i++)
		if (!rule_table_number(&pages->rules, &rows->rules[i], &numbers[i], err))
			return false;
	return true;
}

static bool load(struct row_pages *pages, uint32_t number, const struct page_rows *rows,
		 uint32_t now_s, struct error *err)
{
	struct unwind_page value = {.count = (uint16_t)rows->count, .state = UNWIND_PAGE_LOADED};
	uint16_t numbers[PAGE_RULES_MAX];

	if (!number_rules(pages, rows, numbers, err) &&
	    (err->kind != ERROR_LIMIT || !begin_rules(pages, now_s) ||
	     !number_rules(pages, rows, numbers, err)))
		return false;
	value.first_row = find_room(pages, rows->count);
	if (value.first_row == ROW_PLACE_NONE)
		return error_set(err, ERROR_MEMORY, "no room for unwind rows");
	entry_of(pages, number)->first_row = value.first_row;
	entry_of(pages, number)->count = value.count;
	if (!write_rows(pages, rows, value.first_row, numbers, err) ||
	    !publish(pages, number, &value, err)) {
		entry_of(pages, number)->count = 0;
		pages->dead_rows += rows->count;
		return false;
	}
	pages->counters.rows += rows->count;
	return true;
}

/* What may pass is tried again, each time after twice as long. */
static uint32_t retry_time(const struct page_entry *entry, enum row_failure failure, uint32_t now_s)
{
	uint32_t after = failure == ROW_FAILURE_UNREADABLE ? RETRY_UNREADABLE_S : RETRY_FIRST_S;

	for (int i = 1; i < entry->failures && after < RETRY_LAST_S; i++)
		after *= 2;
	return now_s + (after < RETRY_LAST_S ? after : RETRY_LAST_S);
}

static void fail(struct row_pages *pages, uint32_t number, enum row_failure failure, bool may_pass,
		 uint32_t now_s)
{
	const struct unwind_page value = {.state = UNWIND_PAGE_FAILED};
	struct page_entry *entry = entry_of(pages, number);

	pages->counters.failed++;
	pages->counters.by_failure[failure]++;
	if (!publish(pages, number, &value, NULL)) {
		entry->state = UNWIND_PAGE_FAILED; /* the kernel says ABSENT; for us it counts */
		entry->is_asked = false;
		pages->counters.pages++;
		may_pass = true;
	}
	if (may_pass && entry->failures < UINT8_MAX)
		entry->failures++;
	entry->retry_s = may_pass ? retry_time(entry, failure, now_s) : UINT32_MAX;
}

static bool take_answer(struct row_pages *pages, uint32_t number, const struct page_rows *rows,
			uint32_t now_s)
{
	const struct unwind_page empty = {.state = UNWIND_PAGE_EMPTY};
	struct error err = {0};

	switch (rows->state) {
	case UNWIND_PAGE_LOADED:
		if (load(pages, number, rows, now_s, &err)) {
			pages->counters.loaded++;
			return true;
		}
		break;
	case UNWIND_PAGE_EMPTY:
		if (publish(pages, number, &empty, &err)) {
			pages->counters.empty++;
			return true;
		}
		break;
	default:
		fail(pages, number, rows->failure,
		     rows->failure == ROW_FAILURE_UNREADABLE || rows->failure == ROW_FAILURE_WORKER,
		     now_s);
		return true;
	}
	log_warn("unwind rows not loaded", "why=\"%s\"", err.message);
	fail(pages, number, ROW_FAILURE_LIMIT, true, now_s);
	return false;
}

bool row_pages_put(struct row_pages *pages, const struct page_rows *rows, uint32_t now_s)
{
	uint32_t number = find_or_add(pages, rows->executable, rows->page, now_s);
	bool ok;

	if (number == PAGE_NONE) {
		pages->counters.failed++;
		pages->counters.by_failure[ROW_FAILURE_LIMIT]++;
		return false;
	}
	if (entry_of(pages, number)->state != UNWIND_PAGE_ABSENT)
		return true; /* asked for twice; what is published stays */
	pages->held = number;
	ok = take_answer(pages, number, rows, now_s);
	pages->held = PAGE_NONE;
	return ok;
}

/* --- use --- */

bool row_pages_rule(struct row_pages *pages, uint32_t executable, uint64_t address,
		    struct unwind_rule *rule)
{
	const uint64_t page = address >> UNWIND_PAGE_BITS;
	uint32_t low = 0, high, number;
	const struct unwind_rule *found;
	const struct page_entry *entry;
	struct unwind_row row;

	number = page > UINT32_MAX ? PAGE_NONE
				   : page_table_find(&pages->table, executable, (uint32_t)page);
	if (number == PAGE_NONE)
		return false;
	entry = entry_of(pages, number);
	if (entry->state != UNWIND_PAGE_LOADED)
		return false;
	/* The last row that is not above the address; the first is at 0. */
	for (high = entry->count; high - low > 1;) {
		uint32_t middle = low + (high - low) / 2;

		if (!row_pools_read(pages->pools, entry->first_row + middle, &row))
			return false;
		if (row.low <= (uint16_t)address)
			low = middle;
		else
			high = middle;
	}
	if (!row_pools_read(pages->pools, entry->first_row + low, &row))
		return false;
	found = rule_table_find(&pages->rules, row.rule);
	if (found)
		*rule = *found;
	return found;
}

void row_pages_counters(const struct row_pages *pages, struct row_pages_counters *out)
{
	*out = pages->counters;
	out->rules = pages->rules.count;
	out->row_bytes = (uint64_t)row_pools_count(pages->pools) * POOL_ROWS *
			 sizeof(struct unwind_row);
}
