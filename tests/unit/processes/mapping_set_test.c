/* SPDX-License-Identifier: Apache-2.0 */
/* Against a model that keeps one entry per page, as mmap(2) would. */
#include "node-agent/processes/mapping_set.h"

#include "tests/check.h"

enum { PAGES = 64, FILES = 5 };

static int references[FILES];

static void keep(void *context, uint32_t file)
{
	(void)context;
	references[file]++;
}

static void drop(void *context, uint32_t file)
{
	(void)context;
	references[file]--;
}

static struct mapping_pool new_pool(size_t limit)
{
	memset(references, 0, sizeof references);
	return (struct mapping_pool){.limit = limit, .file_keep = keep, .file_drop = drop};
}

static uint32_t random_state = 3;

static uint32_t next_random(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

struct page {
	bool mapped;
	enum mapping_kind kind;
	uint32_t file;
	uint64_t offset;
};

static struct mapping random_row(void)
{
	uint64_t first = next_random(PAGES), length = 1 + next_random(12);
	struct mapping row = {.start = first << 12, .kind = MAPPING_ANONYMOUS};

	if (first + length > PAGES)
		length = PAGES - first;
	row.end = (first + length) << 12;
	if (next_random(3)) {
		row.kind = MAPPING_FILE;
		row.file = next_random(FILES);
		row.file_offset = (uint64_t)next_random(100) << 12;
		keep(NULL, row.file);
	}
	return row;
}

static void add_to_model(struct page *pages, const struct mapping *row)
{
	for (uint64_t page = row->start >> 12; page < row->end >> 12; page++)
		pages[page] = (struct page){true, row->kind, row->file,
					    row->file_offset + (page << 12) - row->start};
}

static int differences(const struct mapping_set *set, const struct page *pages)
{
	uint32_t near = 0;
	int wrong = 0;

	for (uint64_t page = 0; page < PAGES; page++) {
		const struct mapping *row = mapping_set_find(set, (page << 12) + 5, &near);

		if (!row != !pages[page].mapped) {
			wrong++;
		} else if (row && (row->kind != pages[page].kind ||
				   (row->kind == MAPPING_FILE &&
				    (row->file != pages[page].file ||
				     row->file_offset + (page << 12) - row->start !=
					     pages[page].offset)))) {
			wrong++;
		}
	}
	for (uint32_t i = 1; i < set->count; i++)
		wrong += set->rows[i - 1].end > set->rows[i].start;
	return wrong;
}

static int held_references(void)
{
	int held = 0;

	for (int i = 0; i < FILES; i++)
		held += references[i];
	return held;
}

static void test_against_model(void)
{
	int wrong = 0, unbalanced = 0;

	for (int round = 0; round < 100; round++) {
		struct mapping_pool pool = new_pool(1000);
		struct mapping_set *set = mapping_set_new(&pool), *copy;
		struct page pages[PAGES] = {{0}}, before[PAGES];

		for (int i = 0; i < 40; i++) {
			struct mapping row = random_row();

			add_to_model(pages, &row);
			wrong += !mapping_set_add(set, &row);
			wrong += differences(set, pages);
		}
		/* a shared set is copied before it changes */
		copy = mapping_set_share(set);
		memcpy(before, pages, sizeof before);
		wrong += !mapping_set_own(&copy) || copy == set;
		for (int i = 0; i < 10; i++) {
			struct mapping row = random_row();

			add_to_model(pages, &row);
			mapping_set_add(copy, &row);
		}
		wrong += differences(set, before) + differences(copy, pages);
		mapping_set_free(set);
		mapping_set_free(copy);
		unbalanced += held_references() != 0 || pool.used != 0;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(unbalanced, 0);
}

static void test_limit(void)
{
	struct mapping_pool pool = new_pool(20);
	struct mapping_set *set = mapping_set_new(&pool);
	uint32_t near = 0;
	int added = 0;

	for (uint64_t i = 0; i < 100; i++) {
		struct mapping row = {.start = i << 13, .end = (i << 13) + 4096, .file = 1};

		keep(NULL, 1);
		added += mapping_set_add(set, &row);
	}
	CHECK(added > 8 && added <= 20);
	CHECK(set->is_truncated);
	CHECK(pool.used <= 20);
	CHECK_NUMBER(references[1], added);
	CHECK(mapping_set_find(set, 0x2001, &near) != NULL); /* what was added stays */
	mapping_set_free(set);
	mapping_set_free(NULL);
	CHECK_NUMBER(references[1], 0);
}

static void test_anonymous_rows_join(void)
{
	struct mapping_pool pool = new_pool(100);
	struct mapping_set *set = mapping_set_new(&pool);

	for (uint64_t i = 0; i < 1000; i++) {
		struct mapping row = {
			.start = i << 12, .end = (i + 1) << 12, .kind = MAPPING_ANONYMOUS};

		mapping_set_add(set, &row);
	}
	CHECK_NUMBER(set->count, 1); /* a JIT that asks page by page costs one row */
	mapping_set_free(set);
}

int main(void)
{
	test_against_model();
	test_limit();
	test_anonymous_rows_join();
	return checks_done();
}
