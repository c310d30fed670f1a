/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of real machines as they were kept, whole and without one row after the other; and those
 * that somebody has made up. What the numbers of 17, 25 and 28 are is from Debian's debug
 * information. */
#include "node-agent/runtimes/hotspot_layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/runtimes/hotspot_tables.h"

#define FOLDER "tests/fuzz/corpus/hotspot_structs/"

enum { IMAGE_MAX = 64 << 10, ROW = 48 };

static uint8_t bytes[IMAGE_MAX];
static struct tables_image image = {bytes, 0};
static const struct python_memory memory = {tables_read, &image};

static bool load(unsigned version)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof path, FOLDER "%u", version);
	file = fopen(path, "rb");
	image.length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
	if (file)
		fclose(file);
	return image.length;
}

static struct hotspot_structs *read_tables(struct error *err)
{
	const struct runtime_symbols symbols = tables_symbols();

	*err = (struct error){0};
	return hotspot_structs_read(&memory, &symbols, TABLES_AT, err);
}

static bool fill(struct hotspot_layout *layout, struct error *err)
{
	struct hotspot_structs *structs = read_tables(err);
	const bool ok = structs && hotspot_layout_fill(structs, &memory, layout, err);

	hotspot_structs_free(structs);
	return ok;
}

static void set(enum hotspot_symbol symbol, uint64_t value)
{
	memcpy(bytes + symbol * sizeof value, &value, sizeof value);
}

static uint64_t get(enum hotspot_symbol symbol)
{
	uint64_t value;

	memcpy(&value, bytes + symbol * sizeof value, sizeof value);
	return value;
}

static void test_version(unsigned version, unsigned flags, unsigned nmethod, unsigned compile_id,
			 unsigned pcs, unsigned constant)
{
	struct hotspot_walk_layout walk;
	struct hotspot_layout layout = {0};
	struct error err;

	printf("# Java %u\n", version);
	if (!CHECK(load(version)) || !CHECK(fill(&layout, &err))) {
		printf("# %s\n", err.message);
		return;
	}
	CHECK_NUMBER(layout.version, version);
	CHECK_NUMBER(layout.flags, flags);
	CHECK_NUMBER(layout.nmethod_bytes, nmethod);
	CHECK_NUMBER(layout.nmethod_compile_id, compile_id);
	CHECK_NUMBER(layout.nmethod_scopes_pcs, pcs);
	CHECK_NUMBER(layout.const_bytes, constant);
	CHECK_NUMBER(layout.pc_bytes, 16);
	hotspot_layout_walk(&layout, &walk);
	CHECK_NUMBER(walk.slot_bcp, version == 8 ? -7 : -8);
	CHECK_NUMBER(walk.nmethod_compile_id, compile_id);
}

static void test_versions(void)
{
	const unsigned pointers = HOTSPOT_LAYOUT_CODE_POINTER | HOTSPOT_LAYOUT_DEOPT_POINTER;
	const unsigned since_17 = HOTSPOT_LAYOUT_OBJECT_HANDLE | HOTSPOT_LAYOUT_SOURCE_IN_POOL;
	const unsigned since_21 = HOTSPOT_LAYOUT_FLAGS_LONG | HOTSPOT_LAYOUT_WITHOUT_ZERO;
	const unsigned since_25 = since_17 | since_21 | HOTSPOT_LAYOUT_PARTS_APART;

	test_version(8, HOTSPOT_LAYOUT_ONE_HEAP | HOTSPOT_LAYOUT_THREADS_LINKED, 296, 204, 180, 48);
	test_version(11, pointers | HOTSPOT_LAYOUT_THREADS_LINKED, 376, 324, 300, 56);
	test_version(17, pointers | since_17, 352, 304, 268, 48);
	test_version(21, pointers | since_17 | since_21, 344, 308, 276, 56);
	test_version(25, since_25 | HOTSPOT_LAYOUT_COMPLETE_SHORT, 224, 212, 196, 56);
	test_version(28, since_25, 232, 212, 196, 56);
}

/* Without one row or the other there is no layout, or one of what other versions do without. */
static void test_missing(unsigned version)
{
	unsigned rows = 0, refused = 0, named = 0;
	struct hotspot_layout layout;
	struct error err;
	uint64_t at, name;

	if (!CHECK(load(version)))
		return;
	at = get(HOTSPOT_SYMBOL_STRUCTS) - TABLES_AT;
	for (; memcpy(&name, bytes + at, sizeof name), name; at += ROW, rows++) {
		const uint64_t nothing = TABLES_AT + image.length - 1; /* "" */

		memcpy(bytes + at, &nothing, sizeof nothing);
		if (!fill(&layout, &err)) {
			refused++;
			named += strstr(err.message, "do not tell") ||
				 strstr(err.message, "is not known");
		}
		memcpy(bytes + at, &name, sizeof name);
	}
	printf("# Java %u: %u rows, %u cannot be missing\n", version, rows, refused);
	CHECK(refused > 50 && refused < rows);
	CHECK_NUMBER(named, refused);
	CHECK(fill(&layout, &err));
}

/* No step beyond its bounds, and never a layout out of what makes no sense. */
static void test_refused(void)
{
	struct hotspot_layout layout;
	struct error err;

	image.length = 0;
	CHECK(!read_tables(&err) && err.kind == ERROR_FORMAT);
	load(17);
	set(HOTSPOT_SYMBOL_STRUCTS, 0); /* not relocated yet */
	CHECK(!read_tables(&err));
	load(17);
	set(HOTSPOT_SYMBOL_STRUCT_STRIDE, 0);
	CHECK(!read_tables(&err));
	set(HOTSPOT_SYMBOL_STRUCT_STRIDE, UINT64_MAX);
	CHECK(!read_tables(&err));
	load(17);
	set(HOTSPOT_SYMBOL_STRUCT_ADDRESS, 41); /* the entry has 48 bytes */
	CHECK(!read_tables(&err));
	set(HOTSPOT_SYMBOL_STRUCT_ADDRESS, UINT64_MAX - 4);
	CHECK(!read_tables(&err));
	load(17);
	set(HOTSPOT_SYMBOL_STRUCTS, UINT64_MAX - 8);
	CHECK(!read_tables(&err));
	load(25);
	bytes[HOTSPOT_SYMBOL_COUNT * sizeof(uint64_t)] = 24; /* its version */
	CHECK(!fill(&layout, &err));
	CHECK_TEXT(err.message, "Java 24 is not known");
	bytes[HOTSPOT_SYMBOL_COUNT * sizeof(uint64_t)] = 29;
	CHECK(!fill(&layout, &err) && strstr(err.message, "newer than the agent knows"));
}

/* Memory without an end, in which each row is one more, whose texts are "". */
static bool read_endless(void *context, uint64_t address, void *to, size_t count)
{
	const uint64_t nothing = TABLES_AT + image.length - 1;
	uint32_t *reads = context;

	++*reads;
	if (address < TABLES_AT + 2ULL * TABLES_PAGE)
		return tables_read(&image, address, to, count);
	for (size_t i = 0; i + sizeof nothing <= count; i += sizeof nothing)
		memcpy((uint8_t *)to + i, &nothing, sizeof nothing);
	return true;
}

static void test_endless(void)
{
	const struct runtime_symbols symbols = tables_symbols();
	struct error err = {0};
	uint32_t reads = 0;

	load(17);
	set(HOTSPOT_SYMBOL_STRUCTS, TABLES_AT + 16ULL * TABLES_PAGE);
	CHECK(!hotspot_structs_read(&(struct python_memory){read_endless, &reads}, &symbols,
				    TABLES_AT, &err));
	CHECK(reads > 1 && reads <= HOTSPOT_READS_MAX);
}

int main(void)
{
	test_versions();
	test_missing(8);
	test_missing(17);
	test_missing(28);
	test_refused();
	test_endless();
	return checks_done();
}
