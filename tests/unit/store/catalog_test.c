/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary's tree of stacks: as many nodes as there are different ways down from the root,
 * counted here by comparing them, and every stack comes back frame by frame. */
#include "symbol-server/store/sqlite/dictionary/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/dictionary/catalog_items.h"
#include "tests/check.h"

enum { STACKS = 600, DEPTH = 24, LOCATIONS = 40 };

struct path { /* root first */
	uint32_t location[DEPTH], depth;
};

static uint32_t state = 12345;

static uint32_t below(uint32_t limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

/* Some begin like an earlier one and go on by themselves, end early, or part in the middle. */
static void make_paths(struct path *paths)
{
	for (unsigned i = 0; i < STACKS; i++) {
		uint32_t kept = 0;

		if (i && below(4)) {
			const struct path *like = &paths[below(i)];

			paths[i] = *like;
			kept = below(like->depth + 1);
		}
		paths[i].depth = kept + below(DEPTH - kept + 1);
		if (!paths[i].depth)
			paths[i].depth = 1;
		for (uint32_t k = kept; k < paths[i].depth; k++)
			paths[i].location[k] = 1 + below(LOCATIONS);
	}
}

static int compare_prefix(const struct path *a, const struct path *b, uint32_t length)
{
	return memcmp(a->location, b->location, length * sizeof *a->location);
}

/* Of the first count paths and of the dictionary's own stack. */
static uint32_t distinct_prefixes(const struct path *paths, unsigned count)
{
	uint32_t distinct = 1;

	for (unsigned i = 0; i < count; i++)
		for (uint32_t length = 1; length <= paths[i].depth; length++) {
			bool is_known = false;

			for (unsigned k = 0; k < i && !is_known; k++)
				is_known = paths[k].depth >= length &&
					   !compare_prefix(&paths[i], &paths[k], length);
			distinct += !is_known;
		}
	return distinct;
}

static uint32_t put(struct catalog *catalog, const struct path *path, uint64_t number)
{
	uint32_t leaf_first[DEPTH];
	uint64_t hash[2] = {number * 0x9e3779b97f4a7c15ull, number};

	/* Location 1 is the dictionary's own stack's. */
	for (uint32_t i = 0; i < path->depth; i++)
		leaf_first[i] = path->location[path->depth - 1 - i] + 1;
	return catalog_put_stack(catalog, hash, leaf_first, path->depth);
}

static bool comes_back(const struct catalog *catalog, uint32_t number, const struct path *path)
{
	const struct catalog_stack *stack = catalog_stack(catalog, number);
	uint32_t leaf_first[DEPTH];

	if (stack->depth != path->depth)
		return false;
	catalog_stack_locations(catalog, stack, leaf_first);
	for (uint32_t i = 0; i < path->depth; i++)
		if (leaf_first[i] != path->location[path->depth - 1 - i] + 1)
			return false;
	return true;
}

static uint32_t string_of(struct catalog *catalog, uint32_t number)
{
	char text[20];
	int length = snprintf(text, sizeof text, "string %u", number);

	return catalog_add_string(catalog, (struct text){text, (uint32_t)length});
}

/* A runtime's own location is one of its own, comes back as such, and is written so that who reads
 * as servers before it did, a kind as any number, finds the native one. */
static void test_runtime_location(void)
{
	const struct catalog_location native = {.address = 0x1234},
				      own = {.address = 0x1234, .kind = LOCATION_RUNTIME};
	struct catalog *from = catalog_new(), *to = catalog_new();
	uint32_t first = from->items[CATALOG_LOCATIONS].count;
	const uint8_t *at;
	struct buffer out;
	uint64_t value;

	CHECK(catalog_put_location(from, &native) == first &&
	      catalog_put_location(from, &own) == first + 1);
	buffer_init(&out, 1000);
	catalog_encode(from, CATALOG_LOCATIONS, first, 2, &out);
	at = out.bytes;
	CHECK(catalog_decode(to, CATALOG_LOCATIONS, first, 2, &at, out.bytes + out.length, NULL));
	CHECK(at == out.bytes + out.length);
	CHECK_NUMBER(catalog_location(to, first)->kind, LOCATION_NATIVE);
	CHECK_NUMBER(catalog_location(to, first + 1)->kind, LOCATION_RUNTIME);
	CHECK_NUMBER(catalog_location(to, first + 1)->address, 0x1234);
	at = out.bytes;
	for (unsigned i = 0; i < 6; i++) {
		CHECK(varint_read(&at, out.bytes + out.length, &value));
		CHECK_NUMBER(value, i % 3 == 2 ? 0x1234 : 0);
	}
	CHECK(at == out.bytes + out.length);
	buffer_release(&out);
	catalog_release(from);
	catalog_release(to);
}

/* Two who want to add make the index apart, of what a reader of files leaves: a part of one. */
static void test_index_apart(void)
{
	struct catalog *catalog = catalog_new(), *first, *second;
	uint32_t numbers[STACKS], wrong = 0;

	for (uint32_t i = 0; i < STACKS; i++)
		numbers[i] = string_of(catalog, i);
	catalog->is_indexed = false;
	first = catalog_alike(catalog);
	second = catalog_alike(catalog);
	catalog_index_alike(first);
	catalog_index_alike(second);
	catalog_take_index(catalog, first);
	catalog_take_index(catalog, second);
	CHECK(catalog->is_indexed);
	for (uint32_t i = 0; i < STACKS; i++)
		wrong += string_of(catalog, i) != numbers[i];
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(string_of(catalog, STACKS), numbers[STACKS - 1] + 1);
	catalog_release(catalog);
}

int main(void)
{
	struct path *paths = calloc(STACKS, sizeof *paths);
	struct catalog *catalog = catalog_new();
	unsigned wrong = 0, half = STACKS / 2;
	uint32_t numbers[STACKS];

	CHECK(paths && catalog);
	make_paths(paths);
	for (unsigned i = 0; i < half; i++)
		numbers[i] = put(catalog, &paths[i], i + 1);
	CHECK_NUMBER(catalog->nodes.count - 1, distinct_prefixes(paths, half));
	/* What finds nodes is made again from the nodes alone. */
	catalog_drop_index(catalog);
	for (unsigned i = half; i < STACKS; i++)
		numbers[i] = put(catalog, &paths[i], i + 1);
	CHECK_NUMBER(catalog->nodes.count - 1, distinct_prefixes(paths, STACKS));
	for (unsigned i = 0; i < STACKS; i++)
		wrong += !numbers[i] || !comes_back(catalog, numbers[i], &paths[i]);
	CHECK_NUMBER(wrong, 0);
	catalog_release(catalog);
	free(paths);
	test_index_apart();
	test_runtime_location();
	return checks_done();
}
