/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's mappings are said to be for the kernel side, over a made-up /proc. */
#include "node-agent/processes/process_table.h"

#include <fcntl.h>

#include "tests/check.h"
#include "tests/unit/processes/golden_process.h"

#define BASE 0x500000ull

enum { ROOM = 200 };

static struct process_mapping mappings[ROOM];
static uint32_t generation;

static struct process_table *new_table(void)
{
	static const struct process_table_limits limits = {0};

	return process_table_new(&limits, fake_proc, NULL);
}

static size_t get(struct process_table *table, const struct process_key *key, unsigned ms)
{
	memset(mappings, 0xff, sizeof mappings);
	return process_table_mappings(table, key, at(ms), mappings, ROOM, &generation);
}

/* A process whose maps are that text. */
static struct process_key fake_process(uint32_t tgid, const char *maps)
{
	struct process_key key = {tgid, 1, at(0) + boot_offset_ns};
	char name[64];

	snprintf(name, sizeof name, "proc/%u/stat", tgid);
	fake_file(name,
		  "%u (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0 18446744073709551615",
		  tgid, (unsigned long long)(key.start_time_ns / TICK));
	snprintf(name, sizeof name, "proc/%u/root", tgid);
	fake_link(name, "/");
	fake_status(tgid);
	snprintf(name, sizeof name, "proc/%u/maps", tgid);
	fake_file(name, "%s", maps);
	return key;
}

static size_t golden_row(char *text, size_t room, uint64_t start, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		abort();
	return (size_t)snprintf(text, room, "%llx-%llx r-xp 00000000 08:01 %llu   %s\n",
				(long long)start, (long long)start + 0x1000,
				(unsigned long long)st.st_ino, path);
}

static bool locate(struct process_table *table, const struct process_key *key, unsigned ms,
		   uint64_t address, struct located_frame *frame)
{
	return process_table_locate(table, key, at(ms), &address, 1, true, frame) == 1;
}

/* --- tests --- */

static void test_kinds(void)
{
	struct process_table *table = new_table();
	char maps[4096];
	size_t used = golden_row(maps, sizeof maps, BASE, golden);
	struct process_key key;
	struct located_frame frame;

	snprintf(maps + used, sizeof maps - used,
		 "600000-601000 r--p 00000000 00:00 0\n" /* no code */
		 "700000-701000 rwxp 00000000 00:00 0\n"
		 "800000-801000 r-xp 00000000 08:01 99999999   /no/such/file\n"
		 "900000-901000 --xp 00000000 00:00 0    [uprobes]\n");
	key = fake_process(100, maps);
	CHECK_NUMBER(process_table_mappings(table, &(struct process_key){.tgid = 4000}, at(10),
					    mappings, ROOM, &generation),
		     0);
	CHECK_NUMBER(generation, 0);
	CHECK_NUMBER(get(table, &key, 10), 4);
	CHECK(generation != 0);
	CHECK_NUMBER(mappings[0].start, BASE);
	CHECK_NUMBER(mappings[0].end, BASE + 0x1000);
	CHECK(locate(table, &key, 10, BASE + 0x340, &frame) && frame.place == PLACE_FILE);
	CHECK_NUMBER(mappings[0].executable, frame.executable->index);
	CHECK_NUMBER(BASE + 0x340 - mappings[0].base, 0x2340);
	CHECK_NUMBER(frame.address, 0x2340);
	CHECK_NUMBER(mappings[1].executable, EXECUTABLE_ANONYMOUS);
	CHECK_NUMBER(mappings[2].executable, EXECUTABLE_NONE);
	CHECK_NUMBER(mappings[3].executable, EXECUTABLE_NONE);
	CHECK(locate(table, &key, 10, 0x900010, &frame));
	CHECK_NUMBER(frame.place, PLACE_UPROBE);
	CHECK_NUMBER(process_table_mappings(table, &key, at(10), mappings, 2, &generation), 2);
	process_table_free(table);
}

static void test_generation(void)
{
	struct process_table *table = new_table();
	char maps[4096];
	struct process_key key;
	struct mapping_event event = {.time_ns = at(20),
				      .tgid = 101,
				      .start = 0xa00000,
				      .length = 0x1000,
				      .path = "//anon"};
	struct located_frame frame;
	uint32_t first, second;

	golden_row(maps, sizeof maps, BASE, golden);
	key = fake_process(101, maps);
	get(table, &key, 10);
	first = generation;
	CHECK_NUMBER(process_table_generation(table, &key, at(11)), first);
	CHECK_NUMBER(get(table, &key, 11), 1);
	CHECK_NUMBER(generation, first);
	CHECK(locate(table, &key, 11, BASE + 0x340, &frame));
	CHECK_NUMBER(frame.since, 0); /* it was there before we looked */

	event.is_anonymous = true;
	process_table_mapping(table, &event);
	second = process_table_generation(table, &key, at(21));
	CHECK(second > first);
	CHECK_NUMBER(get(table, &key, 21), 2);
	CHECK_NUMBER(generation, second);
	CHECK(locate(table, &key, 21, BASE + 0x340, &frame));
	CHECK_NUMBER(frame.since, 0);

	event.start = BASE; /* in the file's place */
	process_table_mapping(table, &event);
	CHECK_NUMBER(get(table, &key, 22), 2);
	CHECK_NUMBER(mappings[0].executable, EXECUTABLE_ANONYMOUS);
	CHECK(locate(table, &key, 22, BASE + 0x340, &frame));
	CHECK(frame.since > second && frame.since <= generation);

	process_table_exec(table, 101, at(30));
	key.exec_id++;
	CHECK_NUMBER(process_table_generation(table, &key, at(31)), 0);
	CHECK_NUMBER(get(table, &key, 31), 0);
	process_table_free(table);
}

/* Maps that are read again show the same, more, or something else in its place. */
static void test_read_again(void)
{
	struct process_table *table = new_table();
	char maps[4096], other[4096];
	struct process_key key;
	struct located_frame frame;
	uint32_t first;
	size_t used;

	golden_row(maps, sizeof maps, BASE, golden);
	key = fake_process(102, maps);
	get(table, &key, 10);
	first = generation;
	used = golden_row(maps, sizeof maps, BASE, golden);
	golden_row(maps + used, sizeof maps - used, BASE + 0x100000, golden);
	fake_file("proc/102/maps", "%s", maps);
	CHECK(locate(table, &key, 200, BASE + 0x100340, &frame));
	CHECK_NUMBER(frame.since, 0); /* nothing was known to be there */
	CHECK(locate(table, &key, 200, BASE + 0x340, &frame));
	CHECK_NUMBER(frame.since, 0);
	CHECK(process_table_generation(table, &key, at(200)) > first);

	first = process_table_generation(table, &key, at(200));
	used = (size_t)snprintf(other, sizeof other, "500000-501000 rwxp 00000000 00:00 0\n");
	golden_row(other + used, sizeof other - used, BASE + 0x200000, golden);
	fake_file("proc/102/maps", "%s", other);
	CHECK(locate(table, &key, 1000, BASE + 0x200340, &frame));
	CHECK(locate(table, &key, 1000, BASE + 0x340, &frame));
	CHECK_NUMBER(frame.place, PLACE_ANONYMOUS);
	CHECK(frame.since > first);
	process_table_free(table);
}

/* A file that an event named by other numbers than maps does is the same one. */
static void test_read_after_event(void)
{
	struct process_table *table = new_table();
	struct mapping_event event = {.time_ns = at(5),
				      .tgid = 103,
				      .start = BASE,
				      .length = 0x1000,
				      .device_major = 8,
				      .device_minor = 2};
	char maps[4096];
	struct process_key key;
	struct located_frame frame;
	uint32_t first;

	golden_row(maps, sizeof maps, BASE, golden);
	key = fake_process(103, maps);
	key.exec_id = 2;
	event.path = golden;
	event.inode = golden_stat.st_ino;
	process_table_exec(table, 103, at(4));
	process_table_mapping(table, &event);
	CHECK_NUMBER(get(table, &key, 10), 1);
	first = generation;
	CHECK(locate(table, &key, 10, BASE + 0x340, &frame) && frame.place == PLACE_FILE);
	CHECK(frame.since && frame.since <= first);

	CHECK(!locate(table, &key, 200, BASE + 0x100340, &frame)); /* maps is read, in vain */
	CHECK(process_table_generation(table, &key, at(200)) > first);
	CHECK(locate(table, &key, 200, BASE + 0x340, &frame) && frame.place == PLACE_FILE);
	CHECK(frame.since <= first);
	process_table_free(table);
}

/* Files' contents are looked at in portions. */
static void test_many_files(void)
{
	enum { FILES = 150 };
	static char maps[1 << 15], bytes[4096];
	struct process_table *table = new_table();
	struct process_key key;
	size_t used = 0, length, known = 0;
	FILE *file = fopen(golden, "rb");
	uint32_t before;

	if (!file)
		abort();
	length = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	for (unsigned i = 0; i < FILES; i++) {
		char name[32], path[PATH_MAX];

		snprintf(name, sizeof name, "lib/%u.so", i);
		bytes[length - 1] = (char)i; /* contents of their own */
		fake_bytes(name, bytes, length);
		fake_path(path, name);
		used += golden_row(maps + used, sizeof maps - used, BASE + i * 0x2000, path);
	}
	key = fake_process(103, maps);
	for (int call = 1; call <= 3; call++) {
		CHECK_NUMBER(get(table, &key, 10), FILES);
		before = generation;
		known = 0;
		for (unsigned i = 0; i < FILES; i++)
			known += mappings[i].executable != EXECUTABLE_NONE;
		CHECK_NUMBER(known, call < 3 ? 64 * call : FILES);
		CHECK_NUMBER(process_table_generation(table, &key, at(11)) != before, call < 3);
	}
	process_table_free(table);
}

static void test_read_code(void)
{
	struct process_table *table = new_table();
	unsigned char truth[32], got[32] = {0};
	char maps[4096];
	struct process_key key;
	int fd = open(golden, O_RDONLY);

	if (fd < 0 || pread(fd, truth, sizeof truth, 0x340) != sizeof truth)
		abort();
	close(fd);
	golden_row(maps, sizeof maps, BASE, golden);
	key = fake_process(104, maps);
	CHECK(!process_table_read_code(table, &key, BASE + 0x340, got, sizeof got));
	get(table, &key, 10);
	CHECK(process_table_read_code(table, &key, BASE + 0x340, got, sizeof got));
	CHECK(!memcmp(got, truth, sizeof truth));
	CHECK(!process_table_read_code(table, &key, BASE + 0xff0, got, sizeof got));
	CHECK(!process_table_read_code(table, &key, BASE - 0x10, got, sizeof got));
	CHECK(!process_table_read_code(table, &key, UINT64_MAX - 4, got, sizeof got));
	process_table_free(table);
}

int main(void)
{
	golden_begin();
	test_kinds();
	test_generation();
	test_read_again();
	test_read_after_event();
	test_many_files();
	test_read_code();
	fake_clean();
	return checks_done();
}
