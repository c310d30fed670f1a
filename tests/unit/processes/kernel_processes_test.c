/* SPDX-License-Identifier: Apache-2.0 */
/* Published mappings as a reader in the kernel finds them, against what was published last, over
 * maps that this test keeps; and that nothing is rewritten under a reader. */
#include "node-agent/processes/kernel_processes.h"

#include "node-agent/kernel/bpf_map.h"
#include "tests/check.h"

enum { PROCESSES_MAP = 1, HEADS_MAP, BLOCKS_MAP, TGIDS = 3000, MAPPINGS = 1100 };

/* --- the kernel's maps --- */

static uint32_t index_of[TGIDS]; /* head + 1; 0: not in the hash */
static struct process_head heads[PROCESS_HEADS];
static struct process_block blocks[PROCESS_BLOCKS];
static int64_t now_ms, head_known_ms[PROCESS_HEADS], block_known_ms[PROCESS_BLOCKS];
static unsigned rewritten, taken_over, waits;
static uint32_t head_of[PROCESS_BLOCKS]; /* that was written last with it */
static bool cannot_wait, refuse;

/* Whether a head says to be of somebody, and to have that block. */
static bool has_block(const struct process_head *head, uint32_t block)
{
	for (uint32_t i = 0; head->tgid && i < head->block_count; i++)
		if (head->blocks[i] == block)
			return true;
	return false;
}

/* A reader that began before now may stand at everything that was published just now. */
static void know(uint32_t head)
{
	head_known_ms[head] = now_ms;
	for (uint32_t i = 0; i < heads[head].block_count; i++)
		block_known_ms[heads[head].blocks[i]] = now_ms;
}

bool bpf_map_write(int map, const void *key, const void *value, struct error *err)
{
	uint32_t at = *(const uint32_t *)key;

	if (refuse)
		return error_set(err, ERROR_SYSTEM, "refused");
	if (map == BLOCKS_MAP) {
		rewritten += block_known_ms[at] + 1000 > now_ms;
		taken_over += has_block(&heads[head_of[at]], at);
		blocks[at] = *(const struct process_block *)value;
	} else if (map == HEADS_MAP) {
		rewritten += head_known_ms[at] + 1000 > now_ms;
		heads[at] = *(const struct process_head *)value;
		for (uint32_t i = 0; i < heads[at].block_count; i++)
			head_of[heads[at].blocks[i]] = at;
	} else {
		if (index_of[at])
			know(index_of[at] - 1);
		index_of[at] = *(const uint32_t *)value + 1;
		know(index_of[at] - 1);
	}
	return true;
}

bool bpf_map_remove(int map, const void *key, struct error *err)
{
	uint32_t tgid = *(const uint32_t *)key;

	(void)map, (void)err;
	if (index_of[tgid])
		know(index_of[tgid] - 1);
	index_of[tgid] = 0;
	return true;
}

bool bpf_programs_wait(void)
{
	if (cannot_wait)
		return false;
	waits++;
	for (unsigned i = 0; i < PROCESS_HEADS; i++)
		head_known_ms[i] = INT32_MIN;
	for (unsigned i = 0; i < PROCESS_BLOCKS; i++)
		block_known_ms[i] = INT32_MIN;
	for (unsigned i = 0; i < TGIDS; i++) /* but those that begin now */
		if (index_of[i])
			know(index_of[i] - 1);
	return true;
}

static void clear_maps(void)
{
	memset(index_of, 0, sizeof index_of);
	memset(heads, 0, sizeof heads);
	now_ms += 10000;
	rewritten = waits = 0;
	cannot_wait = refuse = false;
}

static const struct process_mapping *read_mapping(const struct process_key *key, uint64_t address)
{
	const struct process_head *head;

	if (!index_of[key->tgid])
		return NULL;
	head = &heads[index_of[key->tgid] - 1];
	if (head->tgid != key->tgid || head->exec_id != key->exec_id ||
	    head->start_time_ns != key->start_time_ns)
		return NULL;
	for (uint32_t i = 0; i < head->mapping_count; i++) {
		uint32_t block = i / PROCESS_BLOCK_MAPPINGS;
		const struct process_mapping *mapping =
			&blocks[head->blocks[block]].mappings[i % PROCESS_BLOCK_MAPPINGS];

		if (block >= head->block_count ||
		    head->first_start[block] != blocks[head->blocks[block]].mappings[0].start)
			return NULL;
		if (address >= mapping->start && address < mapping->end)
			return mapping;
	}
	return NULL;
}

/* --- what is published --- */

static struct process_mapping mappings[MAPPINGS];

/* Mapping i of program n, with a hole behind it. */
static void make_mappings(uint32_t number, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mappings[i] = (struct process_mapping){.start = (i + 1) << 20,
						       .end = ((i + 1) << 20) + (1 << 16),
						       .base = number,
						       .executable = (uint32_t)i + 1};
}

static bool is_published(const struct process_key *key, uint32_t number, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct process_mapping *found = read_mapping(key, ((i + 1) << 20) + 0xffff);

		if (!found || found->base != number || found->executable != i + 1)
			return false;
	}
	return !read_mapping(key, (1 << 20) - 1) && !read_mapping(key, ((count + 1) << 20));
}

static struct process_key key_of(uint32_t tgid)
{
	return (struct process_key){.tgid = tgid, .exec_id = 3, .start_time_ns = tgid * 7};
}

static struct processes *registry;

static bool publish(struct kernel_processes *processes, uint32_t tgid, uint32_t number,
		    size_t count)
{
	struct process_key key = key_of(tgid);

	make_mappings(number, count);
	kernel_processes_set_time(processes, now_ms);
	processes_for_sample(registry, &key, 1);
	return kernel_processes_publish(processes, &key, number, mappings, count);
}

static struct kernel_processes *new_processes(void)
{
	clear_maps();
	registry = processes_new(2 * TGIDS, NULL);
	return kernel_processes_new(registry, PROCESSES_MAP, HEADS_MAP, BLOCKS_MAP, NULL);
}

static void free_processes(struct kernel_processes *processes)
{
	kernel_processes_free(processes);
	processes_free(registry);
}

/* --- tests --- */

static void test_one(void)
{
	static const size_t counts[] = {0, 1, 31, 32, 33, 64, 1000, 1024};
	struct kernel_processes *processes = new_processes();
	struct process_key key = key_of(5), other = key;
	struct kernel_processes_counters counters;

	CHECK_NUMBER(kernel_processes_generation(processes, &key), 0);
	for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		CHECK(publish(processes, 5, 10 + i, counts[i]));
		CHECK(is_published(&key, 10 + i, counts[i]));
		CHECK_NUMBER(kernel_processes_generation(processes, &key), 10 + i);
		CHECK_NUMBER(heads[index_of[5] - 1].generation, 10 + i);
	}
	other.exec_id++; /* it is now something else */
	CHECK_NUMBER(kernel_processes_generation(processes, &other), 0);
	CHECK(!read_mapping(&other, 1 << 20));
	CHECK(publish(processes, 5, 50, MAPPINGS));
	CHECK(is_published(&key, 50, 1024));
	kernel_processes_counters(processes, &counters);
	CHECK_NUMBER(counters.cut, MAPPINGS - 1024);
	CHECK_NUMBER(counters.heads, 1);
	processes_exit(registry, 5, 2);
	processes_exit(registry, 6, 2);
	CHECK_NUMBER(kernel_processes_generation(processes, &key), 0);
	CHECK(!read_mapping(&key, 1 << 20));
	CHECK_NUMBER(rewritten, 0);
	free_processes(processes);
}

/* What lies side by side and is the same becomes one. */
static void test_joined(void)
{
	static const struct process_mapping rows[] = {
		{0x1000, 0x2000, 7, 1, 0}, {0x2000, 0x3000, 7, 1, 0}, {0x3000, 0x4000, 8, 1, 0},
		{0x4000, 0x5000, 8, 2, 0}, {0x6000, 0x7000, 8, 2, 0},
	};
	struct kernel_processes *processes = new_processes();
	struct process_key key = key_of(1);

	processes_for_sample(registry, &key, 1);
	CHECK(kernel_processes_publish(processes, &key, 1, rows, sizeof rows / sizeof *rows));
	CHECK_NUMBER(heads[index_of[1] - 1].mapping_count, 4);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct process_mapping *found = read_mapping(&key, rows[i].end - 1);

		CHECK(found && found->base == rows[i].base &&
		      found->executable == rows[i].executable);
	}
	CHECK(!read_mapping(&key, 0x5000));
	free_processes(processes);
}

/* More programs than there is room for, over and over: those asked for stay. */
static void test_many(void)
{
	struct kernel_processes *processes = new_processes();
	struct kernel_processes_counters counters;
	struct process_key kept = key_of(1);
	unsigned wrong = 0;

	publish(processes, 1, 1, 40);
	for (uint32_t tgid = 2; tgid < TGIDS; tgid++) {
		struct process_key key = key_of(tgid);

		wrong += !publish(processes, tgid, tgid, tgid % 3 ? 5 : 70);
		wrong += !is_published(&key, tgid, tgid % 3 ? 5 : 70);
		wrong += kernel_processes_generation(processes, &kept) != 1;
		now_ms += tgid % 2;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(is_published(&kept, 1, 40));
	CHECK_NUMBER(rewritten, 0);
	kernel_processes_counters(processes, &counters);
	CHECK_NUMBER(counters.published, TGIDS - 1);
	CHECK(counters.heads <= PROCESS_HEADS && counters.blocks <= PROCESS_BLOCKS);
	CHECK(counters.pushed_out >= TGIDS - 1 - PROCESS_HEADS);
	CHECK(waits > 0 && waits < TGIDS / 20);
	free_processes(processes);
}

/* Those with many mappings do not push everybody else out. */
static void test_scarce(void)
{
	struct kernel_processes *processes = new_processes();
	struct kernel_processes_counters counters;
	unsigned wrong = 0;

	for (uint32_t tgid = 1; tgid <= 80; tgid++)
		wrong += !publish(processes, tgid, tgid, tgid <= 37 ? 1024 : 1000);
	for (uint32_t tgid = 1; tgid <= 80; tgid++) {
		struct process_key key = key_of(tgid);

		wrong += !is_published(&key, tgid, tgid <= 37 ? 1024 : 256);
	}
	CHECK_NUMBER(wrong, 0);
	kernel_processes_counters(processes, &counters);
	CHECK_NUMBER(counters.blocks, 37 * 32 + 43 * 8);
	CHECK_NUMBER(counters.cut, 43 * (1000 - 256));
	CHECK_NUMBER(counters.pushed_out, 0);
	for (uint32_t tgid = 1; tgid <= 12; tgid++)
		processes_exit(registry, tgid, 2);
	now_ms += 1000;
	CHECK(publish(processes, 100, 1, 1024)); /* there is room again */
	CHECK(is_published(&(struct process_key){100, 3, 700}, 1, 1024));
	free_processes(processes);
}

/* One that changes all the time. */
static void test_again(void)
{
	struct kernel_processes *processes = new_processes();
	struct process_key key = key_of(9);
	unsigned wrong = 0;

	for (uint32_t i = 1; i < 5000; i++) {
		wrong += !publish(processes, 9, i, i % 200);
		wrong += !is_published(&key, i, i % 200);
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(rewritten, 0);
	free_processes(processes);
}

/* Where nobody can tell whether readers are done, a second has to pass. */
static void test_without_wait(void)
{
	struct kernel_processes *processes = new_processes();
	struct process_key key = key_of(9);
	uint32_t last = 0;

	cannot_wait = true;
	while (last < 3000 && publish(processes, 9, last + 1, 10))
		last++;
	CHECK_NUMBER(last, PROCESS_HEADS);
	CHECK(is_published(&key, last, 10));
	now_ms += 999;
	CHECK(!publish(processes, 9, last + 1, 10));
	CHECK(is_published(&key, last, 10));
	now_ms++;
	CHECK(publish(processes, 9, last + 1, 10));
	CHECK(is_published(&key, last + 1, 10));
	CHECK_NUMBER(rewritten, 0);
	free_processes(processes);
}

/* What the kernel refuses leaves everything as it was. */
static void test_refused(void)
{
	struct kernel_processes *processes = new_processes();
	struct kernel_processes_counters counters;
	struct process_key key = key_of(9);

	CHECK(publish(processes, 9, 1, 100));
	refuse = true;
	for (int i = 0; i < 3000; i++)
		publish(processes, 9, 2, 100);
	refuse = false;
	CHECK(is_published(&key, 1, 100));
	CHECK_NUMBER(kernel_processes_generation(processes, &key), 1);
	CHECK(publish(processes, 9, 3, 100));
	CHECK(is_published(&key, 3, 100));
	kernel_processes_counters(processes, &counters);
	CHECK_NUMBER(counters.heads, 1);
	CHECK_NUMBER(counters.published, 2);
	CHECK_NUMBER(counters.blocks, 8); /* the old ones too: somebody may be at them */
	free_processes(processes);
}

int main(void)
{
	test_one();
	test_joined();
	test_many();
	test_scarce();
	test_again();
	test_without_wait();
	test_refused();
	CHECK_NUMBER(taken_over, 0); /* for readers that a second is not enough for */
	return checks_done();
}
