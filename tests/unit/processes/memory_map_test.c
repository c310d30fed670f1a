/* SPDX-License-Identifier: Apache-2.0 */
/* The golden text has rows as Linux 6.18 wrote them for such mappings, put together by hand. */
#include "node-agent/processes/memory_map.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

static char text[1 << 16];
static struct memory_row row;

static size_t load(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t length = file ? fread(text, 1, sizeof text, file) : 0;

	if (file)
		fclose(file);
	return length;
}

static void test_golden(void)
{
	static const struct {
		uint64_t start, end, offset, inode;
		uint32_t device_major, device_minor;
		bool is_executable;
		enum memory_kind kind;
		const char *path;
	} want[] = {
		{0x400000, 0x401000, 0, 100, 0xfe, 0, false, MEMORY_FILE, "/opt/a b/pro gram"},
		{0x401000, 0x452000, 0x1000, 100, 0xfe, 0, true, MEMORY_FILE, "/opt/a b/pro gram"},
		{0x452000, 0x453000, 0, 0, 0, 0, true, MEMORY_ANONYMOUS, ""},
		{0x1a00000, 0x1a21000, 0, 0, 0, 0, false, MEMORY_ANONYMOUS, "[heap]"},
		{0x7f0000000000, 0x7f0000001000, 0, 2049, 0, 1, true, MEMORY_FILE,
		 "/memfd:doublemapper"},
		{0x7f0000001000, 0x7f0000002000, 0, 3, 0, 1, true, MEMORY_ANONYMOUS, "/dev/zero"},
		{0x7f0000002000, 0x7f0000003000, 0xf000, UINT64_MAX, 0x103, 0x1f, true, MEMORY_FILE,
		 "/usr/lib/x.so"},
		{0x7f0000003000, 0x7f0000004000, 0, 7, 0xfe, 0, true, MEMORY_FILE,
		 "/tmp/new\nline.so"},
		{0x7f0000004000, 0x7f0000005000, 0, 0, 0, 0, true, MEMORY_ANONYMOUS,
		 "[anon:jit code]"},
		{0x7f0000005000, 0x7f0000006000, 0, 0, 0, 0, true, MEMORY_UPROBE, "[uprobes]"},
		{0x7f0000006000, 0x7f0000007000, 0, 12, 0, 0xf, true, MEMORY_ANONYMOUS,
		 "anon_inode:[perf_event]"},
		{0x7f0000007000, 0x7f0000008000, 0, 9, 0xfe, 0, true, MEMORY_FILE, "/(deleted)"},
		{0x7f0000008000, 0x7f0000009000, 0, 32768, 0, 1, true, MEMORY_ANONYMOUS,
		 "/SYSV00000000"},
		{0x7ffd00000000, 0x7ffd00002000, 0, 0, 0, 0, true, MEMORY_VDSO, "[vdso]"},
		{0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, true, MEMORY_ANONYMOUS,
		 "[vsyscall]"},
	};
	size_t length = load("tests/golden/maps/odd.maps"), rows = sizeof want / sizeof want[0];
	const char *at = text;

	for (size_t i = 0; i < rows; i++) {
		CHECK_NUMBER(memory_map_next(&at, text + length, &row), MEMORY_ROW);
		CHECK_NUMBER(row.start, want[i].start);
		CHECK_NUMBER(row.end, want[i].end);
		CHECK_NUMBER(row.file_offset, want[i].offset);
		CHECK_NUMBER(row.inode, want[i].inode);
		CHECK_NUMBER(row.device_major, want[i].device_major);
		CHECK_NUMBER(row.device_minor, want[i].device_minor);
		CHECK_NUMBER(row.is_executable, want[i].is_executable);
		CHECK_NUMBER(row.kind, want[i].kind);
		CHECK_TEXT(row.path, want[i].path);
	}
	CHECK_NUMBER(memory_map_next(&at, text + length, &row), MEMORY_END);
}

static enum memory_read read_line(const char *line)
{
	const char *at = line;

	return memory_map_next(&at, line + strlen(line), &row);
}

static void test_bad_lines(void)
{
	static const char *const bad[] = {
		"\n",
		"hello\n",
		"1000-2000\n",
		"1000-2000 r-xp\n",
		"1000-2000 rqxp 0 0:0 0\n",
		"1000-2000 r-x 0 0:0 0\n",
		"2000-1000 r-xp 0 0:0 0 /x\n",
		"1000-1000 r-xp 0 0:0 0 /x\n",
		"1000-2000 r-xp 0 0:0 /x\n",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0 /x\n",
		"1000-2000 r-xp 0 0:0 99999999999999999999 /x\n",
		"1000-2000 r-xp 0 0:0 12/x\n",
		"-1000-2000 r-xp 0 0:0 12 /x\n",
	};
	char line[MEMORY_PATH_MAX + 100];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK_NUMBER(read_line(bad[i]), MEMORY_BAD);
	CHECK_NUMBER(read_line(""), MEMORY_END);
	CHECK_NUMBER(read_line("1000-2000 r-xp 0 0:0 0"), MEMORY_ROW); /* cut before the end */
	CHECK_TEXT(row.path, "");
	CHECK_NUMBER(read_line("1000-2000 r-xp 0 0:0 5    /a"), MEMORY_ROW);
	CHECK_TEXT(row.path, "/a");

	memset(line, 'x', sizeof line);
	memcpy(line, "1000-2000 r-xp 0 0:0 5 /", 24);
	line[sizeof line - 1] = '\0';
	CHECK_NUMBER(read_line(line), MEMORY_ROW);
	CHECK_TEXT(row.path, ""); /* longer than any path */
}

static void test_a_bad_line_is_only_that_line(void)
{
	static const char lines[] = "nonsense\n1000-2000 r-xp 0 0:0 5 /a\n";
	const char *at = lines, *end = lines + sizeof lines - 1;

	CHECK_NUMBER(memory_map_next(&at, end, &row), MEMORY_BAD);
	CHECK_NUMBER(memory_map_next(&at, end, &row), MEMORY_ROW);
	CHECK_NUMBER(memory_map_next(&at, end, &row), MEMORY_END);
}

static void test_perf_paths(void)
{
	CHECK_NUMBER(memory_kind_of("//anon", false), MEMORY_ANONYMOUS);
	CHECK_NUMBER(memory_kind_of("//toolong", true), MEMORY_FILE);
	CHECK_NUMBER(memory_kind_of("[heap]", false), MEMORY_ANONYMOUS);
	CHECK_NUMBER(memory_kind_of("[vdso]", false), MEMORY_VDSO);
	CHECK_NUMBER(memory_kind_of("/usr/bin/true", false), MEMORY_FILE);
	CHECK_NUMBER(memory_kind_of("", true), MEMORY_FILE);
	CHECK_NUMBER(memory_kind_of("/tmp/jit-12.dump", true), MEMORY_ANONYMOUS);
	CHECK_NUMBER(memory_kind_of("/tmp/jit-12.dump.so", true), MEMORY_FILE);
	CHECK_NUMBER(memory_kind_of("/tmp/jit-.dump", true), MEMORY_FILE);
	CHECK_NUMBER(memory_kind_of("/jit-1.dump/lib.so", true), MEMORY_FILE);
}

static uint32_t random_state = 7;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

static void test_mutations(void)
{
	size_t length = load("tests/golden/maps/odd.maps");
	int rows = 0, bad = 0, wrong = 0;

	for (int round = 0; round < 200; round++) {
		size_t cut = round % 4 ? length : next_random() % length;
		char *copy = malloc(cut + 1);
		const char *at = copy;
		enum memory_read result;

		memcpy(copy, text, cut);
		for (uint32_t i = 0; cut && i < 1 + next_random() % 8; i++)
			copy[next_random() % cut] = (char)next_random();
		while ((result = memory_map_next(&at, copy + cut, &row)) != MEMORY_END) {
			rows += result == MEMORY_ROW;
			bad += result == MEMORY_BAD;
			wrong += result == MEMORY_ROW && row.start >= row.end;
		}
		wrong += at != copy + cut;
		free(copy);
	}
	CHECK(rows > 1000 && bad > 20);
	CHECK_NUMBER(wrong, 0);
}

/* Our own maps: all rows are read, and the program's file is among them. */
static void test_own_maps(void)
{
	size_t length = load("/proc/self/maps"), lines = 0, rows = 0, own = 0;
	char path[MEMORY_PATH_MAX] = "";
	const char *at = text;

	if (!length || readlink("/proc/self/exe", path, sizeof path - 1) < 0) {
		SKIP("/proc is not mounted");
		return;
	}
	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	while (memory_map_next(&at, text + length, &row) == MEMORY_ROW) {
		rows++;
		own += row.is_executable && !strcmp(row.path, path);
	}
	CHECK_NUMBER(rows, lines);
	CHECK_NUMBER(own, 1);
}

int main(void)
{
	test_golden();
	test_bad_lines();
	test_a_bad_line_is_only_that_line();
	test_perf_paths();
	test_mutations();
	test_own_maps();
	return checks_done();
}
