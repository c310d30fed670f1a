/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_pages.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/check.h"

enum { POOL_BYTES = 1 << 20, NOW = 1000 };

/* --- the kernel's maps, made and read with nothing but bpf(2) --- */

struct maps {
	int pages, rules, pools;
};

static const struct maps in_memory = {-1, -1, -1};

static int call(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static int new_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries, int inner)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof attributes);
	attributes.map_type = type;
	attributes.key_size = key;
	attributes.value_size = value;
	attributes.max_entries = entries;
	attributes.inner_map_fd = (uint32_t)inner;
	return call(BPF_MAP_CREATE, &attributes);
}

static bool lookup(int map, const void *key, void *value)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof attributes);
	attributes.map_fd = (uint32_t)map;
	attributes.key = (uintptr_t)key;
	attributes.value = (uintptr_t)value;
	return call(BPF_MAP_LOOKUP_ELEM, &attributes) == 0;
}

static bool new_maps(struct maps *maps, uint32_t pages_max)
{
	int inner = new_map(BPF_MAP_TYPE_ARRAY, 4, 4096, UNWIND_POOL_ELEMENTS, 0);

	maps->pages = new_map(BPF_MAP_TYPE_HASH, sizeof(struct unwind_page_key),
			      sizeof(struct unwind_page), pages_max, 0);
	maps->rules = new_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct unwind_rule), UNWIND_RULES_MAX,
			      0);
	maps->pools = inner < 0
			      ? -1
			      : new_map(BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, UNWIND_POOLS_MAX, inner);
	close(inner);
	return maps->pages >= 0 && maps->rules >= 0 && maps->pools >= 0;
}

static void close_maps(const struct maps *maps)
{
	close(maps->pages);
	close(maps->rules);
	close(maps->pools);
}

/* The rule at an address as a BPF program finds it. */
static bool kernel_rule(const struct maps *maps, uint32_t executable, uint64_t address,
			struct unwind_rule *rule)
{
	static struct unwind_row element[UNWIND_ELEMENT_ROWS];
	const struct unwind_page_key key = {executable, (uint32_t)(address >> UNWIND_PAGE_BITS)};
	uint32_t pool_id, read = UINT32_MAX, number = 0;
	union bpf_attr attributes;
	struct unwind_page page;
	int pool;

	if (!lookup(maps->pages, &key, &page) || page.state != UNWIND_PAGE_LOADED)
		return false;
	if ((page.first_row + page.count - 1) / UNWIND_ELEMENT_ROWS -
		    page.first_row / UNWIND_ELEMENT_ROWS >=
	    UNWIND_PAGE_ELEMENTS_MAX)
		return false;
	if (page.first_row >> 18 != (page.first_row + page.count - 1) >> 18)
		return false;
	pool_id = page.first_row >> 18;
	if (!lookup(maps->pools, &pool_id, &pool_id))
		return false;
	memset(&attributes, 0, sizeof attributes);
	attributes.map_id = pool_id;
	pool = call(BPF_MAP_GET_FD_BY_ID, &attributes);
	for (uint32_t i = 0; i < page.count; i++) {
		uint32_t row = page.first_row + i, index = row >> 10 & 255;

		if (index != read && !lookup(pool, &index, element))
			break;
		read = index;
		if (element[row & 1023].low > (uint16_t)address)
			break;
		number = element[row & 1023].rule;
	}
	close(pool);
	return lookup(maps->rules, &number, rule);
}

/* --- made-up pages --- */

static uint32_t seed_now;

static uint32_t random_below(uint32_t limit)
{
	seed_now = seed_now * 1664525 + 1013904223;
	return (seed_now >> 8) % limit;
}

/* Always the same rows for the same page; version: for a page that comes back otherwise. */
static void make_page(struct page_rows *rows, uint32_t executable, uint32_t page, uint32_t count)
{
	uint32_t gap = 0x10000 / count;

	seed_now = executable * 7919 + page;
	memset(rows, 0, offsetof(struct page_rows, rows));
	rows->executable = executable;
	rows->page = page;
	rows->state = UNWIND_PAGE_LOADED;
	rows->rule_count = 20;
	rows->count = count;
	for (uint32_t i = 0; i < rows->rule_count; i++)
		rows->rules[i] = (struct unwind_rule){.cfa = UNWIND_CFA_REGISTER,
						      .cfa_register = UNWIND_REGISTER_SP,
						      .ra_offset = -8,
						      .cfa_offset = (int)random_below(500) * 8};
	for (uint32_t i = 0; i < count; i++)
		rows->rows[i] = (struct unwind_row){
			.low = (uint16_t)(i ? i * gap + random_below(gap) : 0),
			.rule = (uint16_t)random_below(rows->rule_count),
		};
}

static const struct unwind_rule *expected_rule(const struct page_rows *rows, uint16_t low)
{
	uint32_t at = 0;

	while (at + 1 < rows->count && rows->rows[at + 1].low <= low)
		at++;
	return &rows->rules[rows->rows[at].rule];
}

static struct page_rows made;

static bool put(struct row_pages *pages, uint32_t executable, uint32_t page, uint32_t count,
		uint32_t now_s)
{
	make_page(&made, executable, page, count);
	return row_pages_put(pages, &made, now_s);
}

static bool put_state(struct row_pages *pages, uint32_t page, enum unwind_page_state state,
		      enum row_failure failure, uint32_t now_s)
{
	memset(&made, 0, offsetof(struct page_rows, rows));
	made.executable = 1;
	made.page = page;
	made.state = (uint8_t)state;
	made.failure = (uint8_t)failure;
	return row_pages_put(pages, &made, now_s);
}

/* At the page's ends, at every few rows and just below them: what user space and the kernel say. */
static bool is_right(struct row_pages *pages, const struct maps *maps, uint32_t executable,
		     uint32_t page, uint32_t count)
{
	uint32_t step = count < 64 ? 1 : count / 16;
	struct unwind_rule rule;

	make_page(&made, executable, page, count);
	for (uint32_t i = 0; i <= count; i += step)
		for (int below = 0; below < 2; below++) {
			uint16_t low = (uint16_t)((i < count ? made.rows[i].low : 0xffff) -
						  (i ? below : 0));
			uint64_t address = (uint64_t)page << UNWIND_PAGE_BITS | low;
			const struct unwind_rule *right = expected_rule(&made, low);

			if (!row_pages_rule(pages, executable, address, &rule) ||
			    memcmp(&rule, right, sizeof rule) != 0)
				return false;
			if (maps->pages >= 0 && (!kernel_rule(maps, executable, address, &rule) ||
						 memcmp(&rule, right, sizeof rule) != 0))
				return false;
		}
	return true;
}

static struct row_pages *new_pages(const struct maps *maps, uint64_t limit_bytes)
{
	const struct row_pages_options options = {maps->pages, maps->rules, maps->pools,
						  limit_bytes};
	struct error err = {0};
	struct row_pages *pages = row_pages_new(&options, &err);

	if (!pages)
		printf("# %s\n", err.message);
	return pages;
}

static enum unwind_page_state state(struct row_pages *pages, uint32_t executable, uint32_t page,
				    uint32_t now_s)
{
	bool is_asked;

	return row_pages_state(pages, executable, page, now_s, &is_asked);
}

/* --- tests --- */

static void test_states(void)
{
	struct row_pages *pages = new_pages(&in_memory, 0);
	struct row_pages_counters counters;
	struct unwind_rule rule;
	bool is_asked = true;

	CHECK_NUMBER(row_pages_state(pages, 1, 5, NOW, &is_asked), UNWIND_PAGE_ABSENT);
	CHECK(!is_asked);
	row_pages_asked(pages, 1, 5, NOW);
	CHECK_NUMBER(row_pages_state(pages, 1, 5, NOW, &is_asked), UNWIND_PAGE_ABSENT);
	CHECK(is_asked);
	CHECK(!row_pages_rule(pages, 1, 0x50000, &rule));
	CHECK(put(pages, 1, 5, 10, NOW));
	CHECK_NUMBER(row_pages_state(pages, 1, 5, NOW, &is_asked), UNWIND_PAGE_LOADED);
	CHECK(!is_asked);
	CHECK(row_pages_rule(pages, 1, 0x5ffff, &rule));
	CHECK(!row_pages_rule(pages, 1, 0x4ffff, &rule));
	CHECK(!row_pages_rule(pages, 1, 0x60000, &rule));
	CHECK(!row_pages_rule(pages, 2, 0x50000, &rule));
	CHECK(!row_pages_rule(pages, 1, UINT64_C(0x1000000050000), &rule));
	CHECK(put_state(pages, 6, UNWIND_PAGE_EMPTY, ROW_FAILURE_NONE, NOW));
	CHECK_NUMBER(state(pages, 1, 6, NOW), UNWIND_PAGE_EMPTY);
	CHECK(!row_pages_rule(pages, 1, 0x60000, &rule));
	row_pages_counters(pages, &counters);
	CHECK_NUMBER(counters.pages, 2);
	CHECK_NUMBER(counters.loaded, 1);
	CHECK_NUMBER(counters.empty, 1);
	CHECK_NUMBER(counters.rows, 10);
	CHECK_NUMBER(counters.row_bytes, POOL_BYTES);
	row_pages_forget(pages, 1);
	CHECK_NUMBER(state(pages, 1, 5, NOW), UNWIND_PAGE_ABSENT);
	row_pages_counters(pages, &counters);
	CHECK_NUMBER(counters.pages, 0);
	CHECK_NUMBER(counters.rows, 0);
	row_pages_free(pages);
	row_pages_free(NULL);
}

static const struct {
	enum row_failure failure;
	uint32_t retry_s; /* 0: never */
} failures[] = {
	{ROW_FAILURE_NOT_CODE, 0}, {ROW_FAILURE_UNREADABLE, 5}, {ROW_FAILURE_DAMAGED, 0},
	{ROW_FAILURE_LIMIT, 0},    {ROW_FAILURE_WORKER, 60},
};

static void test_retries(void)
{
	struct row_pages *pages = new_pages(&in_memory, 0);
	uint32_t now_s = NOW, wait_s = 60, retry_s;

	for (uint32_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		CHECK(put_state(pages, i, UNWIND_PAGE_FAILED, failures[i].failure, NOW));
		retry_s = failures[i].retry_s ? NOW + failures[i].retry_s : UINT32_MAX;
		CHECK_NUMBER(state(pages, 1, i, retry_s - 1), UNWIND_PAGE_FAILED);
		if (failures[i].retry_s)
			CHECK_NUMBER(state(pages, 1, i, retry_s), UNWIND_PAGE_ABSENT);
	}
	for (int i = 0; i < 9; i++) {
		row_pages_asked(pages, 1, 100, now_s);
		put_state(pages, 100, UNWIND_PAGE_FAILED, ROW_FAILURE_WORKER, now_s);
		CHECK_NUMBER(state(pages, 1, 100, now_s + wait_s - 1), UNWIND_PAGE_FAILED);
		CHECK_NUMBER(state(pages, 1, 100, now_s + wait_s), UNWIND_PAGE_ABSENT);
		now_s += wait_s;
		wait_s = wait_s * 2 < 3600 ? wait_s * 2 : 3600;
	}
	CHECK(put(pages, 1, 100, 10, now_s));
	CHECK_NUMBER(state(pages, 1, 100, UINT32_MAX), UNWIND_PAGE_LOADED);
	row_pages_free(pages);
}

static void test_sizes(const struct maps *maps)
{
	static const uint32_t sizes[] = {1, 2, 1023, 1024, 1025, 2584, 16384, 1, 500, 600};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	struct row_pages *pages = new_pages(maps, 2 * POOL_BYTES);

	for (uint32_t i = 0; i < SIZES; i++)
		CHECK(put(pages, 3, i, sizes[i], NOW));
	for (uint32_t i = 0; i < SIZES; i++)
		CHECK(is_right(pages, maps, 3, i, sizes[i]));
	row_pages_free(pages);
}

/* Pages that are used stay, others go; nothing that is there is ever another's. */
static void test_eviction(const struct maps *maps)
{
	enum { HOT = 40, ROUNDS = 1000, ROWS = 700, LARGE = 1500 };
	struct row_pages *pages = new_pages(maps, POOL_BYTES);
	struct row_pages_counters counters;
	uint32_t wrong = 0, hot_lost = 0, refused = 0;

	for (uint32_t i = 0; i < HOT; i++)
		put(pages, 1, i, ROWS, NOW);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t count = round % 7 ? ROWS : LARGE, now_s = NOW + round;

		refused += !put(pages, 2, round, count, now_s);
		wrong += !is_right(pages, maps, 2, round, count);
		if (state(pages, 1, round % HOT, now_s) == UNWIND_PAGE_LOADED)
			wrong += !is_right(pages, maps, 1, round % HOT, ROWS);
		else
			hot_lost++;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(hot_lost, 0);
	CHECK_NUMBER(refused, 0);
	for (uint32_t i = 0; i < ROUNDS; i++)
		if (state(pages, 2, i, NOW + ROUNDS) == UNWIND_PAGE_LOADED)
			wrong += !is_right(pages, maps, 2, i, i % 7 ? ROWS : LARGE);
	CHECK_NUMBER(wrong, 0);
	row_pages_counters(pages, &counters);
	CHECK(counters.evicted > ROUNDS / 2);
	CHECK_NUMBER(counters.evicted + counters.pages, ROUNDS + HOT);
	CHECK_NUMBER(counters.row_bytes, POOL_BYTES);
	CHECK(counters.rows > POOL_BYTES / 4 * 4 / 5);
	row_pages_free(pages);
}

/* Executables come and go, pages of every size: after each step a known page is looked at. */
static void test_coming_and_going(const struct maps *maps, uint32_t steps)
{
	enum { EXECUTABLES = 12, PAGES = 200 };
	struct row_pages *pages = new_pages(maps, 3 * POOL_BYTES);
	static uint16_t sizes[EXECUTABLES + 1][PAGES];
	uint32_t choice = 4711, wrong = 0, seen = 0;

	memset(sizes, 0, sizeof sizes);
	for (uint32_t step = 0; step < steps; step++) {
		uint32_t executable, page, other;

		seed_now = choice;
		executable = 1 + random_below(EXECUTABLES);
		page = random_below(PAGES);
		other = random_below(PAGES);
		choice = seed_now;
		if (state(pages, executable, page, NOW + step) == UNWIND_PAGE_ABSENT) {
			sizes[executable][page] = (uint16_t)(1 + (choice >> 8) % 2000);
			wrong += !put(pages, executable, page, sizes[executable][page], NOW + step);
		}
		if (state(pages, executable, other, NOW + step) == UNWIND_PAGE_LOADED) {
			wrong += !is_right(pages, maps, executable, other,
					   sizes[executable][other]);
			seen++;
		}
		if (step % 200 == 199)
			row_pages_forget(pages, executable);
	}
	for (uint32_t i = 0; i < EXECUTABLES * PAGES; i++) {
		uint32_t executable = 1 + i / PAGES, page = i % PAGES;

		if (state(pages, executable, page, NOW + steps) == UNWIND_PAGE_LOADED)
			wrong += !is_right(pages, maps, executable, page, sizes[executable][page]);
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(seen > steps / 10);
	row_pages_free(pages);
}

/* What a program that is gone had is used again: nobody else's page goes for it. */
static void test_forgotten(const struct maps *maps)
{
	enum { FILLING = POOL_BYTES / 4 / 1000 };
	struct row_pages *pages = new_pages(maps, POOL_BYTES);
	struct row_pages_counters counters;
	uint32_t refused = 0;

	put(pages, 1, 0, 100, NOW - 100);
	for (uint32_t executable = 2; executable < 8; executable++) {
		for (uint32_t page = 0; page < FILLING; page++)
			refused += !put(pages, executable, page, 999, NOW);
		row_pages_forget(pages, executable);
	}
	CHECK_NUMBER(refused, 0);
	CHECK(is_right(pages, maps, 1, 0, 100));
	row_pages_counters(pages, &counters);
	CHECK_NUMBER(counters.evicted, 0);
	CHECK_NUMBER(counters.rows, 100);
	row_pages_free(pages);
}

/* Room is counted again while a page is on its way in. */
static void test_room_on_the_way(const struct maps *maps)
{
	struct row_pages *pages = new_pages(maps, POOL_BYTES);

	put(pages, 1, 0, 800, NOW);
	put(pages, 2, 0, 800, NOW);
	row_pages_forget(pages, 1);
	for (uint32_t page = 1; page < 4; page++) {
		CHECK(put(pages, 2, page, 700, NOW));
		for (uint32_t i = 0; i <= page; i++)
			CHECK(is_right(pages, maps, 2, i, i ? 700 : 800));
	}
	row_pages_free(pages);
}

/* As many rules as a page may have, no two pages' alike. */
static bool put_rules(struct row_pages *pages, uint32_t page, uint32_t now_s)
{
	make_page(&made, 1, page, 16);
	made.rule_count = PAGE_RULES_MAX;
	made.count = PAGE_RULES_MAX;
	for (uint32_t i = 0; i < PAGE_RULES_MAX; i++) {
		made.rules[i] = (struct unwind_rule){
			.cfa = UNWIND_CFA_REGISTER, .cfa_offset = (int)(page * PAGE_RULES_MAX + i)};
		made.rows[i] = (struct unwind_row){(uint16_t)(i * 32), (uint16_t)i};
	}
	return row_pages_put(pages, &made, now_s);
}

static void test_rules_full(const struct maps *maps)
{
	enum { FULL = UNWIND_RULES_MAX / PAGE_RULES_MAX };
	struct row_pages *pages = new_pages(maps, 4 * POOL_BYTES);
	struct row_pages_counters counters;
	struct unwind_rule rule;
	uint32_t page = 0;

	while (page < 20 && put_rules(pages, page, NOW))
		page++;
	/* The first time they are full all begins anew, and then for a while they stay full. */
	CHECK_NUMBER(page, 2 * FULL);
	CHECK_NUMBER(state(pages, 1, FULL - 1, NOW), UNWIND_PAGE_ABSENT);
	CHECK_NUMBER(state(pages, 1, page, NOW), UNWIND_PAGE_FAILED);
	for (page = FULL; page < 2 * FULL; page++) {
		uint64_t address = (uint64_t)page << 16 | 0xffff;
		int last = (int)(page * PAGE_RULES_MAX + PAGE_RULES_MAX - 1);

		CHECK(row_pages_rule(pages, 1, address, &rule) && rule.cfa_offset == last);
		CHECK(maps->pages < 0 ||
		      (kernel_rule(maps, 1, address, &rule) && rule.cfa_offset == last));
	}
	row_pages_counters(pages, &counters);
	CHECK_NUMBER(counters.rules, UNWIND_RULES_MAX);
	CHECK_NUMBER(counters.evicted, FULL);
	CHECK_NUMBER(counters.by_failure[ROW_FAILURE_LIMIT], 1);
	CHECK_NUMBER(state(pages, 1, page, NOW + 600), UNWIND_PAGE_ABSENT);
	CHECK(put_rules(pages, page, NOW + 600));
	CHECK_NUMBER(state(pages, 1, page, NOW + 600), UNWIND_PAGE_LOADED);
	CHECK(put(pages, 2, 1, 700, NOW + 600) && is_right(pages, maps, 2, 1, 700));
	row_pages_free(pages);
}

/* kernel_max: of its hash, which may be smaller than ours. */
static void test_pages_full(const struct maps *maps, uint32_t kernel_max)
{
	struct row_pages *pages = new_pages(maps, POOL_BYTES);
	struct row_pages_counters counters;
	uint32_t refused = 0, lost = 0;

	CHECK(put(pages, 2, 7, 100, NOW));
	for (uint32_t i = 0; i < 2 * kernel_max; i++) {
		refused += !put_state(pages, i, UNWIND_PAGE_EMPTY, ROW_FAILURE_NONE, NOW + i);
		lost += state(pages, 2, 7, NOW + i) != UNWIND_PAGE_LOADED;
		if (i)
			lost += state(pages, 1, i - 1, NOW + i - 1) != UNWIND_PAGE_EMPTY;
	}
	CHECK_NUMBER(refused, 0);
	CHECK_NUMBER(lost, 0);
	CHECK(is_right(pages, maps, 2, 7, 100));
	row_pages_counters(pages, &counters);
	CHECK(counters.pages <= kernel_max && counters.pages > kernel_max / 2);
	CHECK_NUMBER(counters.pages + counters.evicted, 2 * kernel_max + 1);
	for (uint32_t i = 0; i < 2 * kernel_max; i++) { /* all in one second */
		put_state(pages, 2 * kernel_max + i, UNWIND_PAGE_EMPTY, ROW_FAILURE_NONE, NOW);
		lost += state(pages, 1, 2 * kernel_max + i, NOW) != UNWIND_PAGE_EMPTY;
	}
	CHECK_NUMBER(lost, 0);
	row_pages_free(pages);
}

static void test_in_kernel(void)
{
	struct maps maps, small;

	if (!new_maps(&maps, UNWIND_PAGES_MAX) || !new_maps(&small, 512)) {
		SKIP(errno == EPERM ? "bpf(2) is not permitted: the kernel's maps are not tested"
				    : "the kernel's maps cannot be made");
		return;
	}
	test_sizes(&maps);
	test_eviction(&maps);
	test_coming_and_going(&maps, 2000);
	test_forgotten(&maps);
	test_room_on_the_way(&maps);
	test_rules_full(&maps);
	test_pages_full(&small, 512);
	close_maps(&maps);
	close_maps(&small);
}

int main(void)
{
	log_set_level(LOG_ERROR);
	test_states();
	test_retries();
	test_sizes(&in_memory);
	test_eviction(&in_memory);
	test_coming_and_going(&in_memory, 20000);
	test_forgotten(&in_memory);
	test_room_on_the_way(&in_memory);
	test_rules_full(&in_memory);
	test_pages_full(&in_memory, UNWIND_PAGES_MAX);
	test_in_kernel();
	return checks_done();
}
