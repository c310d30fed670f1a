/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/buffer.h"
#include "common/build_id.h"
#include "common/hash_table.h"
#include "common/string_table.h"
#include "tests/check.h"

static void test_buffer(void)
{
	struct buffer buffer;
	const uint8_t *at;
	uint64_t value = 0;

	buffer_init(&buffer, 600);
	buffer_printf(&buffer, "%s-%d", "a", 7);
	CHECK(buffer.length == 3 && !memcmp(buffer.bytes, "a-7", 3));
	buffer_printf(&buffer, "%520s", "x"); /* longer than the room on the stack */
	CHECK_NUMBER(buffer.length, 523);
	CHECK(buffer.bytes[522] == 'x' && !buffer.failed);
	buffer_append(&buffer, "0123456789012345678901234567890123456789012345678901234567890123456789"
			       "012345678901234567", 77);
	CHECK_NUMBER(buffer.length, 600);
	buffer_append_char(&buffer, 'y');
	CHECK(buffer.failed && buffer.length == 600);
	buffer_clear(&buffer);
	buffer_append_varint(&buffer, UINT64_MAX);
	buffer_append_varint(&buffer, 300);
	at = buffer.bytes;
	CHECK(varint_read(&at, buffer.bytes + buffer.length, &value) && value == UINT64_MAX);
	CHECK(varint_read(&at, buffer.bytes + buffer.length, &value) && value == 300);
	CHECK(!varint_read(&at, buffer.bytes + buffer.length, &value));
	at = (const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
	CHECK(!varint_read(&at, at + 10, &value)); /* 65 bits */
	CHECK(zigzag_decode(zigzag_encode(INT64_MIN)) == INT64_MIN);
	buffer_release(&buffer);
	buffer_release(NULL);
}

static void test_arena(void)
{
	struct arena arena;
	char *text;

	arena_init(&arena, 10000);
	text = arena_text(&arena, "hello", 4);
	CHECK_TEXT(text, "hell");
	CHECK((uintptr_t)arena_alloc(&arena, 3) % 16 == 0);
	CHECK(arena_alloc(&arena, 9000) == NULL && arena.failed);
	CHECK(arena_array(&arena, SIZE_MAX / 2, 3) == NULL);
	arena_clear(&arena);
	CHECK(!arena.failed && arena_alloc(&arena, 4000) != NULL);
	CHECK(arena.used <= arena.limit);
	arena_release(&arena);
}

struct pair {
	uint32_t number;
	uint64_t square;
};

static void test_array(void)
{
	struct pair *items = NULL, *placed = NULL;
	size_t room = 0, moves = 0, wide = 0;
	uint32_t short_room = 0, count = 0, full;
	uint64_t *huge = NULL;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	for (; count < 10000; count++) {
		moves += count == room;
		CHECK(ARRAY_GROW(items, count, room));
		CHECK(ARENA_GROW(&arena, placed, count, short_room));
		items[count] = placed[count] = (struct pair){count, (uint64_t)count * count};
	}
	for (uint32_t i = 0; i < count; i++)
		CHECK(items[i].square == (uint64_t)i * i && placed[i].number == i);
	CHECK(room >= 10000 && room < 20000 && moves < 10);
	CHECK_NUMBER(short_room, room);
	CHECK(ARRAY_RESERVE(items, 50000, room) && room >= 50000 && items[9999].number == 9999);
	CHECK(ARRAY_RESERVE(items, 3, room)); /* there already */

	/* What does not fit leaves all as it is: memory, a room's type, an arena's ceiling. */
	room = wide = 50000;
	CHECK(!ARRAY_RESERVE(items, SIZE_MAX / sizeof *items + 1, wide) && wide == room);
	CHECK(!ARRAY_RESERVE(items, SIZE_MAX, wide) && items[9999].number == 9999);
	short_room = full = UINT32_MAX;
	CHECK(!ARRAY_GROW(huge, full, short_room) && !huge && short_room == full);
	short_room = count;
	for (count = 0; ARENA_GROW(&arena, placed, short_room, short_room) && count < 99; count++)
		;
	CHECK(arena.failed && count < 10 && placed[9999].number == 9999);
	arena_release(&arena);
	free(items);
}

/* Against a plain array: every operation, some thousand times, with hashes that collide. */
static void test_hash_table(void)
{
	enum { KEYS = 2000 };
	static uint64_t hashes[KEYS];
	static bool there[KEYS];
	struct hash_table table;
	uint32_t live = 0, wrong = 0;
	unsigned seed = 1;

	hash_table_init(&table, KEYS);
	for (uint32_t i = 0; i < KEYS; i++)
		hashes[i] = i % 3 ? hash_word(0, i) : 77; /* a third share one hash */
	for (int step = 0; step < 20000; step++) {
		uint32_t i = (uint32_t)rand_r(&seed) % KEYS;

		if (there[i]) {
			hash_table_remove(&table, hashes[i], i);
			live--;
		} else if (hash_table_add(&table, hashes[i], i)) {
			live++;
		} else {
			wrong++;
		}
		there[i] = !there[i];
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t probe = 0, found = 0;

		for (uint32_t j = hash_table_first(&table, hashes[i], &probe); j != HASH_TABLE_NONE;
		     j = hash_table_next(&table, hashes[i], &probe))
			found += j == i;
		wrong += found != there[i];
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(table.live, live);
	hash_table_clear(&table);
	CHECK_NUMBER(table.live, 0);
	hash_table_release(&table);
	hash_table_init(&table, 1);
	CHECK(hash_table_add(&table, 1, 0) && !hash_table_add(&table, 2, 1)); /* the limit */
	hash_table_release(&table);
}

static void test_strings(void)
{
	struct string_table table;
	char text[20];

	string_table_init(&table, 5000, 100);
	CHECK_NUMBER(string_table_add(&table, ""), 0);
	CHECK_NUMBER(string_table_add(&table, "one"), 1);
	CHECK_NUMBER(string_table_add(&table, "two"), 2);
	CHECK_NUMBER(string_table_add(&table, "one"), 1);
	CHECK_TEXT(table.texts[2], "two");
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "text %d", i);
		string_table_add(&table, text);
	}
	CHECK(table.arena.failed);
	CHECK_NUMBER(string_table_add(&table, "two"), 2); /* what was there stays found */
	string_table_clear(&table);
	CHECK(string_table_find(&table, "one", 3) == UINT32_MAX);
	CHECK_NUMBER(string_table_add(&table, "three"), 1);
	string_table_release(&table);
}

static void test_build_id(void)
{
	struct build_id id, other;
	char hex[BUILD_ID_HEX];

	CHECK(build_id_parse(&id, "DEADbeef01", 10));
	CHECK_TEXT(build_id_format(&id, hex), "deadbeef01");
	CHECK(!build_id_parse(&id, "deadbeef0", 9));
	CHECK(!build_id_parse(&id, "deadbeeg", 8));
	CHECK(!build_id_parse(&id, "dead", 4)); /* two bytes name nothing */
	CHECK(!build_id_set(&other, hex, 65));
	CHECK(build_id_set(&other, "\xde\xad\xbe\xef\x01", 5) && build_id_equal(&id, &other));
}

int main(void)
{
	test_buffer();
	test_arena();
	test_array();
	test_hash_table();
	test_strings();
	test_build_id();
	return checks_done();
}
