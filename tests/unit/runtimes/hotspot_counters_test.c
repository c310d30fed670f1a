/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in made-up memory, and memory that is none of them. tests/system runs JVMs that unload
 * classes. */
#include "node-agent/runtimes/hotspot_counters.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { BASE = 0x7000, LENGTH = 400, NAME = 20, VALUE = 48, ENTRY = 56 };

static uint8_t image[LENGTH];

static bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	if (address < BASE || address - BASE > LENGTH || bytes > LENGTH - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), bytes);
	return true;
}

static void put(size_t at, uint32_t value)
{
	memcpy(image + at, &value, sizeof value);
}

static void put_entry(size_t at, const char *name)
{
	put(at, ENTRY);
	put(at + 4, NAME);
	image[at + 12] = 'J';
	put(at + 16, VALUE);
	memcpy(image + at + NAME, name, strlen(name) + 1);
}

/* Two counters, at 32 and behind it. */
static void fill(void)
{
	memset(image, 0, sizeof image);
	memcpy(image, "\xca\xfe\xc0\xc0", 4);
	put(8, 32 + 2 * ENTRY);
	put(24, 32);
	put(28, 2);
	put_entry(32, "java.cls.unloadedClasse");
	put_entry(32 + ENTRY, "java.cls.unloadedClasses");
}

static uint64_t found(void)
{
	const struct python_memory memory = {read_image, NULL};

	return hotspot_counter_find(&memory, BASE, "java.cls.unloadedClasses");
}

int main(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
	} rows[] = {
		{"another format", 0, 0},
		{"more than there is", 8, LENGTH + 1},
		{"more than is looked at", 8, UINT32_MAX},
		{"fewer counters", 28, 1},
		{"a counter of no length", 32, 0},
		{"one that is longer than all", 32, UINT32_MAX},
		{"entries behind the end", 24, UINT32_MAX},
		{"a name behind its end", 32 + ENTRY + 4, ENTRY},
		{"a value behind its end", 32 + ENTRY + 16, ENTRY - 7},
		{"a list of values", 32 + ENTRY + 8, 1},
		{"a text", 32 + ENTRY + 12, 'B'},
	};

	fill();
	CHECK_NUMBER(found(), BASE + 32 + ENTRY + VALUE);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		fill();
		put(rows[i].at, rows[i].value);
		check_report(!found(), rows[i].what, __FILE__, __LINE__);
	}
	CHECK(!hotspot_counter_find(&(struct python_memory){read_image, NULL}, 0, "x"));
	return checks_done();
}
