/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/code_cache.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct code_cache_key key_of(uint64_t word)
{
	struct code_cache_key key;

	memset(&key, 0, sizeof key);
	key.process = (struct process_key){7, 1, 100};
	key.words[0] = word;
	return key;
}

static const void *put(struct code_cache *cache, uint64_t word, size_t bytes)
{
	const struct code_cache_key key = key_of(word);
	uint64_t *value = calloc(1, bytes);

	*value = word;
	return code_cache_put(cache, &key, value, bytes);
}

static bool has(struct code_cache *cache, uint64_t word)
{
	const struct code_cache_key key = key_of(word);
	const void *value;

	return code_cache_find(cache, &key, &value) && value && *(const uint64_t *)value == word;
}

static void test_use(void)
{
	struct code_cache *cache = code_cache_new(64 << 10);
	unsigned wrong = 0;

	for (uint64_t i = 1; i <= 10000; i++) {
		code_cache_begin(cache);
		wrong += !has(cache, 1) && !put(cache, 1, 100);
		wrong += !put(cache, i, 100) && i != 1;
		wrong += !has(cache, i) || !has(cache, 1);
		wrong += code_cache_bytes(cache) > 64 << 10;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(!has(cache, 2));
	CHECK(has(cache, 9990));
	CHECK(!put(cache, 20000, 32 << 10)); /* larger than a half */
	code_cache_free(cache);
	code_cache_free(NULL);
}

static void test_tries(void)
{
	struct code_cache *cache = code_cache_new(64 << 10);
	const struct code_cache_key key = key_of(1);
	const void *value;

	for (int i = 0; i < CODE_CACHE_TRIES; i++) {
		CHECK(!code_cache_find(cache, &key, &value));
		CHECK(!value && !code_cache_put(cache, &key, NULL, 0));
	}
	CHECK(code_cache_find(cache, &key, &value) && !value);
	CHECK(put(cache, 1, 8) && has(cache, 1));
	CHECK(put(cache, 1, 16) && has(cache, 1)); /* in place of it */
	code_cache_free(cache);
}

static void test_pace(void)
{
	enum { SECOND = 1000000000 };
	struct code_cache *cache = code_cache_new(4096);
	unsigned allowed = 0, later = 0;

	for (int i = 0; i < 10000; i++)
		allowed += code_cache_may_read(cache, 7, SECOND);
	CHECK_NUMBER(allowed, CODE_CACHE_BURST);
	CHECK(code_cache_may_read(cache, 8, SECOND));
	for (int i = 0; i < 10000; i++)
		later += code_cache_may_read(cache, 7, 2ULL * SECOND);
	CHECK_NUMBER(later, CODE_CACHE_A_SECOND);
	code_cache_free(cache);
}

int main(void)
{
	test_use();
	test_tries();
	test_pace();
	return checks_done();
}
