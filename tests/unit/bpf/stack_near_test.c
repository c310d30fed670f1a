/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk in the kernel has at hand: rules met before, the part of the stack read last. */
#include <stdint.h>
#include <string.h>

#include "tests/check.h"

#include "bpf/rule_cache.bpf.h"
#include "bpf/stack_window.bpf.h"

enum { KEYS = 5000, STACK_BYTES = 4096 };

static const uint64_t stack_start = 0x7ffc00001000;
static uint64_t stack[STACK_BYTES / 8];
static unsigned reads;

/* All or nothing. */
static long stack_read(void *to, __u32 bytes, const void *from)
{
	uint64_t at = (uint64_t)from - stack_start;

	reads++;
	memset(to, 0, bytes);
	if (at > STACK_BYTES || bytes > STACK_BYTES - at)
		return -14;
	memcpy(to, (const char *)stack + at, bytes);
	return 0;
}

/* 0 bytes: it is not there. */
static uint64_t word_at(struct stack_window *window, uint64_t address)
{
	__u64 word = 0;

	if (stack_window_word(window, &word, address) &&
	    (stack_window_fill(window, address) || stack_window_word(window, &word, address)))
		return 0;
	return word;
}

static void test_window(void)
{
	struct stack_window window = {0};
	unsigned wrong = 0;

	for (unsigned i = 0; i < STACK_BYTES / 8; i++)
		stack[i] = 1000 + i;
	for (unsigned i = 0; i < STACK_BYTES / 8; i++)
		wrong += word_at(&window, stack_start + 8 * i) != 1000 + i;
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(reads, STACK_BYTES / 8 / STACK_WINDOW_WORDS);
	for (unsigned i = 0; i < STACK_BYTES / 8; i++) /* and downwards, and crosswise */
		wrong += word_at(&window, stack_start + STACK_BYTES - 8 - 8 * i) !=
			 1000 + STACK_BYTES / 8 - 1 - i;
	for (unsigned i = 0; i < STACK_BYTES / 8; i++)
		wrong += word_at(&window, stack_start + 8 * (i * 67 % (STACK_BYTES / 8))) !=
			 1000 + i * 67 % (STACK_BYTES / 8);
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(word_at(&window, stack_start + 4), 1001ULL << 32);
	CHECK_NUMBER(word_at(&window, stack_start + 8), 1001);
}

/* Where the stack ends. */
static void test_window_at_end(void)
{
	struct stack_window window = {0};

	CHECK_NUMBER(word_at(&window, stack_start + STACK_BYTES), 0);
	CHECK_NUMBER(word_at(&window, stack_start + STACK_BYTES - 4), 0);
	CHECK_NUMBER(word_at(&window, stack_start + STACK_BYTES - 16), 1000 + STACK_BYTES / 8 - 2);
	CHECK_NUMBER(word_at(&window, stack_start + STACK_BYTES - 8), 1000 + STACK_BYTES / 8 - 1);
	CHECK_NUMBER(word_at(&window, stack_start - 8), 0);
	CHECK_NUMBER(word_at(&window, ~0ULL - 7), 0);
}

static struct rule_cache cache;

static uint64_t key_of(unsigned i)
{
	return rule_cache_key(1 + i % 3, 0x1000 + (uint64_t)i * 37);
}

static void test_rules(void)
{
	unsigned wrong = 0, found = 0;

	CHECK(!rule_cache_find(&cache, 0));
	CHECK(!rule_cache_find(&cache, key_of(0)));
	for (unsigned i = 0; i < KEYS; i++) {
		const struct unwind_rule rule = {.cfa_offset = (int32_t)i};

		rule_cache_add(&cache, key_of(i), &rule);
		if (i > 0) /* one more never drives out the one before */
			wrong += !rule_cache_find(&cache, key_of(i - 1));
	}
	for (unsigned i = 0; i < KEYS; i++) {
		const struct unwind_rule *rule = rule_cache_find(&cache, key_of(i));

		found += rule != NULL;
		wrong += rule && rule->cfa_offset != (int32_t)i;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(found > RULE_CACHE_ENTRIES / 2 && found <= RULE_CACHE_ENTRIES);
	CHECK(!rule_cache_find(&cache, 0));
	CHECK_NUMBER(rule_cache_key(EXECUTABLE_ANONYMOUS, 1), 0);
	CHECK_NUMBER(rule_cache_key(1, 1ULL << 32), 0);
	CHECK(rule_cache_key(0x100001, 7) != rule_cache_key(1, 7)); /* the millionth file */
}

int main(void)
{
	bpf_probe_read_user = stack_read;
	test_window();
	test_window_at_end();
	test_rules();
	return checks_done();
}
