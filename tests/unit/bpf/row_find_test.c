/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's searches as ordinary C, over maps that are arrays here: against a plain walk
 * through everything there is. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

#include "bpf/process_map.bpf.h"
#include "bpf/unwind_rows.bpf.h"

enum { PAGES = 64, ELEMENTS = 64, EXECUTABLE = 7 };

static struct {
	struct unwind_page_key key;
	struct unwind_page page;
} pages[PAGES];
static size_t page_count;
static struct unwind_element elements[UNWIND_POOL_ELEMENTS];
static struct unwind_rule rules[UNWIND_RULES_MAX];
static struct process_head head;
static struct process_block blocks[PROCESS_BLOCKS];
static uint32_t published_tgid;
static bool is_preempted; /* for long, just before a block is looked at */

enum { POOL = 3, HEAD = 5 }; /* the only ones there are */

/* As user space does when it needs the room. */
static void take_over(uint32_t block)
{
	memset(&head, 0, sizeof head);
	for (uint32_t i = 0; i < PROCESS_BLOCK_MAPPINGS; i++)
		blocks[block].mappings[i].executable = 999; /* another's, at the same addresses */
}

static void *lookup(void *map, const void *key)
{
	static uint32_t head_index = HEAD;
	uint32_t index;

	if (map == (void *)&unwind_pages) {
		for (size_t i = 0; i < page_count; i++)
			if (!memcmp(&pages[i].key, key, sizeof pages[i].key))
				return &pages[i].page;
		return NULL;
	}
	memcpy(&index, key, sizeof index);
	if (map == (void *)&unwind_rules)
		return index < UNWIND_RULES_MAX ? &rules[index] : NULL;
	if (map == (void *)&unwind_pools)
		return index == POOL ? elements : NULL;
	if (map == (void *)elements)
		return index < UNWIND_POOL_ELEMENTS ? &elements[index] : NULL;
	if (map == (void *)&processes)
		return index == published_tgid ? &head_index : NULL;
	if (map == (void *)&process_heads)
		return index == HEAD ? &head : NULL;
	if (map == (void *)&process_blocks && is_preempted)
		take_over(index);
	if (map == (void *)&process_blocks)
		return index < PROCESS_BLOCKS ? &blocks[index] : NULL;
	abort();
}

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % limit;
}

/* --- rows --- */

static struct unwind_row rows[UNWIND_PAGE_ROWS_MAX];

static int by_address(const void *a, const void *b)
{
	return ((const struct unwind_row *)a)->low - ((const struct unwind_row *)b)->low;
}

/* count rows at different addresses, the first at 0, from that slot on. */
static void page_put(uint32_t page, uint32_t count, uint32_t slot)
{
	static uint8_t is_used[1 << UNWIND_PAGE_BITS];

	memset(is_used, 0, sizeof is_used);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t low = i ? random_below(sizeof is_used) : 0;

		while (is_used[low])
			low = (low + 1) % sizeof is_used;
		is_used[low] = 1;
		rows[i].low = (uint16_t)low;
		rows[i].rule = (uint16_t)(1 + random_below(UNWIND_RULES_MAX - 1));
	}
	qsort(rows, count, sizeof rows[0], by_address);
	for (uint32_t i = 0; i < count; i++)
		elements[(slot + i) / UNWIND_ELEMENT_ROWS].rows[(slot + i) % UNWIND_ELEMENT_ROWS] =
			rows[i];
	pages[page_count].key = (struct unwind_page_key){EXECUTABLE, page};
	pages[page_count++].page = (struct unwind_page){
		.first_row = POOL * UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS + slot,
		.count = (uint16_t)count,
		.state = UNWIND_PAGE_LOADED};
}

static uint16_t rule_by_walking(uint32_t count, uint32_t low)
{
	uint32_t at = 0;

	while (at + 1 < count && rows[at + 1].low <= low)
		at++;
	return rows[at].rule;
}

static unsigned rules_wrong(uint32_t page, uint32_t count)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < 4000; i++) {
		/* at a row, right before it, anywhere */
		uint32_t row = random_below(count), low = rows[row].low;
		struct unwind_rule rule = {0};

		if (i % 3 == 1 && low)
			low--;
		else if (i % 3 == 2)
			low = random_below(1 << UNWIND_PAGE_BITS);
		if (unwind_rule_find(EXECUTABLE, (uint64_t)page << UNWIND_PAGE_BITS | low, &rule) !=
			    STACK_RULE_FOUND ||
		    memcmp(&rule, &rules[rule_by_walking(count, low)], sizeof rule) != 0)
			wrong++;
	}
	return wrong;
}

static void test_rows(void)
{
	static const struct {
		uint32_t count, slot;
	} shapes[] = {
		{1, 0},
		{1, 1023},
		{2, 1022},
		{3, 500},
		{800, 200},
		{1023, 1},
		{1024, 0},
		{1024, 5 * 1024},
		{1025, 1024},
		{2600, 7 * 1024},
		{2048, 254 * 1024},
		{2, 1023},
		{1024, 1},
		{1000, 5 * 1024 + 600},
		{1500, 6 * 1024 - 10},
		{2600, 7 * 1024 + 1023},
		{1025, 254 * 1024 + 1023},
		{UNWIND_PAGE_ROWS_MAX - 1023, 9 * 1024 + 1023},
		{4097, 3 * 1024},
		{UNWIND_PAGE_ROWS_MAX, 9 * 1024},
	};

	for (uint32_t i = 0; i < UNWIND_RULES_MAX; i++)
		rules[i] = (struct unwind_rule){.cfa = UNWIND_CFA_REGISTER, .cfa_offset = (int)i};
	for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		page_count = 0;
		memset(elements, 0xff, sizeof elements); /* what neighbours leave there */
		page_put(i * 1000, shapes[i].count, shapes[i].slot);
		CHECK_NUMBER(rules_wrong(i * 1000, shapes[i].count), 0);
		memset(elements, 0, sizeof elements);
		page_count = 0;
		page_put(i * 1000, shapes[i].count, shapes[i].slot);
		CHECK_NUMBER(rules_wrong(i * 1000, shapes[i].count), 0);
	}
}

static int state_of(uint64_t address)
{
	struct unwind_rule rule;

	return unwind_rule_find(EXECUTABLE, address, &rule);
}

static void test_page_states(void)
{
	page_count = 0;
	page_put(2, 10, 0);
	CHECK_NUMBER(state_of(0x20010), STACK_RULE_FOUND);
	CHECK_NUMBER(state_of(0x30010), STACK_RULE_ABSENT);
	CHECK_NUMBER(state_of(0x2000000020010),
		     STACK_RULE_NO_TABLE); /* no such address in a file */
	pages[0].page.state = UNWIND_PAGE_EMPTY;
	CHECK_NUMBER(state_of(0x20010), STACK_RULE_NO_TABLE);
	pages[0].page.state = UNWIND_PAGE_FAILED;
	CHECK_NUMBER(state_of(0x20010), STACK_RULE_FAILED);
	pages[0].page.state = UNWIND_PAGE_LOADED;
	pages[0].page.first_row = 0; /* a pool that is not there */
	CHECK_NUMBER(state_of(0x20010), STACK_RULE_FAILED);
	page_count = 0;
	page_put(2, 1, 0);
	rules[rows[0].rule].cfa = UNWIND_CFA_NONE;
	CHECK_NUMBER(state_of(0x20010), STACK_RULE_NO_TABLE);
}

/* --- mappings --- */

static struct process_mapping mappings[PROCESS_BLOCKS_MAX * PROCESS_BLOCK_MAPPINGS];

static void process_put(uint32_t count)
{
	uint64_t address = 0x400000;

	memset(blocks, 0, sizeof blocks);
	memset(&head, 0, sizeof head);
	published_tgid = 100;
	head.tgid = 100, head.exec_id = 3, head.start_time_ns = 12345;
	head.mapping_count = count;
	head.block_count = (count + PROCESS_BLOCK_MAPPINGS - 1) / PROCESS_BLOCK_MAPPINGS;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = i / PROCESS_BLOCK_MAPPINGS, number = 1000 - 7 * block;

		address += 4096 * (uint64_t)random_below(3); /* some touch */
		mappings[i] = (struct process_mapping){
			.start = address,
			.end = address + 4096 * (1 + (uint64_t)random_below(5)),
			.base = i,
			.executable = i + 1,
		};
		address = mappings[i].end;
		head.blocks[block] = number;
		if (i % PROCESS_BLOCK_MAPPINGS == 0)
			head.first_start[block] = mappings[i].start;
		blocks[number].mappings[i % PROCESS_BLOCK_MAPPINGS] = mappings[i];
	}
}

static uint32_t mapping_by_walking(uint32_t count, uint64_t address)
{
	for (uint32_t i = 0; i < count; i++)
		if (address >= mappings[i].start && address < mappings[i].end)
			return mappings[i].executable;
	return 0;
}

static void test_mappings(void)
{
	static const uint32_t counts[] = {0, 1, 2, 31, 32, 33, 64, 65, 500, 1023, 1024};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		unsigned wrong = 0, found = 0;
		struct process_view view = {0};
		uint64_t last;

		process_put(counts[i]);
		process_view_begin(&view, 100, 3, 12345);
		CHECK_NUMBER(view.head, HEAD + 1);
		last = counts[i] ? mappings[counts[i] - 1].end : 0;
		for (uint64_t address = 0x3ff000; address < last + 0x2000; address += 1024) {
			uint32_t wanted = mapping_by_walking(counts[i], address);
			int missed;

			if (address % 4096 == 0) /* without and with the last ones at hand */
				view.mapping.start = view.mapping.end = view.other.end = 0;
			missed = process_mapping_find(&view, address);
			wrong += missed ? wanted != 0 : view.mapping.executable != wanted;
			found += !missed;
		}
		CHECK_NUMBER(wrong, 0);
		CHECK(found >= 4 * counts[i]);
		CHECK(process_mapping_find(&view, 0) && process_mapping_find(&view, ~0ULL));
	}
}

/* A pid alone is nobody. */
static void test_identity(void)
{
	static const struct {
		uint32_t tgid, exec_id;
		uint64_t start_time_ns;
		bool is_known;
	} rows_[] = {
		{100, 3, 12345, true},
		{101, 3, 12345, false},
		{100, 4, 12345, false},
		{100, 3, 12346, false},
	};
	struct process_view view = {0};

	process_put(10);
	for (size_t i = 0; i < sizeof rows_ / sizeof *rows_; i++) {
		process_view_begin(&view, rows_[i].tgid, rows_[i].exec_id, rows_[i].start_time_ns);
		CHECK_NUMBER(view.head != 0, rows_[i].is_known);
		CHECK_NUMBER(!process_mapping_find(&view, mappings[4].start), rows_[i].is_known);
	}
	head.tgid = 99; /* the entry of a pid that became another's */
	process_view_begin(&view, 100, 3, 12345);
	CHECK_NUMBER(view.head, 0);
}

/* A walk that lasted longer than its process' place. */
static void test_taken_over(void)
{
	struct process_view view = {0};

	process_put(10);
	process_view_begin(&view, 100, 3, 12345);
	CHECK(!process_mapping_find(&view, mappings[4].start));
	is_preempted = true;
	CHECK(!process_mapping_find(&view, mappings[4].start)); /* at hand, and its own */
	CHECK(process_mapping_find(&view, mappings[7].start));
	is_preempted = false;
	CHECK(process_mapping_find(&view, mappings[7].start));
	process_view_begin(&view, 100, 3, 12345);
	CHECK_NUMBER(view.head, 0);
}

/* What was found holds for the next sample, unless the process or its mappings are others. */
static void test_next_sample(void)
{
	struct process_view view = {0};

	process_put(100);
	process_view_begin(&view, 100, 3, 12345);
	CHECK(!process_mapping_find(&view, mappings[4].start));
	CHECK(!process_mapping_find(&view, mappings[80].start));
	CHECK(!process_mapping_find(&view, mappings[4].start)); /* of the two, the other */
	CHECK_NUMBER(view.mapping.executable, mappings[4].executable);
	CHECK_NUMBER(view.other.executable, mappings[80].executable);
	process_view_begin(&view, 100, 3, 12345);
	CHECK_NUMBER(view.mapping.executable, mappings[4].executable);
	CHECK_NUMBER(view.mapping.end, mappings[4].end);

	head.generation++;
	CHECK_NUMBER(process_view_begin(&view, 100, 3, 12345), head.generation);
	CHECK_NUMBER(view.mapping.end + view.other.end, 0);

	CHECK(!process_mapping_find(&view, mappings[4].start));
	process_view_begin(&view, 100, 4, 12345); /* execve() */
	CHECK_NUMBER(view.mapping.end + view.other.end, 0);
	CHECK(process_mapping_find(&view, mappings[4].start));
}

int main(void)
{
	bpf_map_lookup_elem = lookup;
	test_next_sample();
	test_rows();
	test_page_states();
	test_mappings();
	test_identity();
	test_taken_over();
	return checks_done();
}
