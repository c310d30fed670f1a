/* SPDX-License-Identifier: Apache-2.0 */
/* perf maps and jitdumps as real runtimes write them, in pieces, and what is none; through the
 * parser's child as well. */
#include <string.h>
#include <sys/mman.h>

#include "node-agent/file_parser/jit/jit_file.h"
#include "node-agent/file_parser/jit/perf_map.h"
#include "tests/unit/file_parser/asking.h"

static struct jit_chunk chunk;

static size_t parse(const char *text)
{
	jit_chunk_init(&chunk);
	return perf_map_parse(text, strlen(text), &chunk);
}

static const char *name_at(uint32_t i)
{
	return chunk.text + chunk.entries[i].name;
}

static const char *file_at(uint32_t i)
{
	return chunk.text + chunk.entries[i].file;
}

/* --- names --- */

/* As node 18 and 20, CPython 3.13, OpenJDK 17's jcmd, Erlang 25, LuaJIT 2.1 and .NET write them. */
static const struct {
	const char *written, *function, *file;
	uint32_t line;
	enum jit_language language;
} names[] = {
	{"JS:*f6 /tmp/six.js:2:12", "f6", "/tmp/six.js", 2, JIT_V8},
	{"JS:~f6 /tmp/six.js:2:12", "f6", "/tmp/six.js", 2, JIT_V8},
	{"LazyCompile:*foo /path/x.js:12:3", "foo", "/path/x.js", 12, JIT_V8},
	{"LazyCompile:*foo /path/x.js:12", "foo", "/path/x.js", 12, JIT_V8},
	{"Eval:~ /path/x.js:1", "(anonymous)", "/path/x.js", 1, JIT_V8},
	{"LazyCompile:^get size /a b/x y.js:7:1", "get size", "/a b/x y.js", 7, JIT_V8},
	{"JS:*readFileSync node:fs:441:22", "readFileSync", "node:fs", 441, JIT_V8},
	{"JS:*f file:///a/m.mjs:3:4", "f", "file:///a/m.mjs", 3, JIT_V8},
	{"JS:~ /tmp/six.js:1:1", "(anonymous)", "/tmp/six.js", 1, JIT_V8},
	{"Eval:~ /tmp/six.js:1:1", "(anonymous)", "/tmp/six.js", 1, JIT_V8},
	{"Function:*x", "x", "", 0, JIT_V8},
	{"JS:*x 12", "x 12", "", 0, JIT_V8},
	{"Builtin:ArrayPrototypePush", "Builtin:ArrayPrototypePush", "", 0, JIT_V8},
	{"RegExp:(a|b):1:2", "RegExp:(a|b):1:2", "", 0, JIT_V8},
	{"py::Foo.bar:/tmp/six.py", "Foo.bar", "/tmp/six.py", 0, JIT_PYTHON},
	{"py::_find_and_load:<frozen importlib._bootstrap>", "_find_and_load",
	 "<frozen importlib._bootstrap>", 0, JIT_PYTHON},
	{"$lists:map/2", "lists:map/2", "", 0, JIT_BEAM},
	{"$x", "$x", "", 0, JIT_UNKNOWN},
	{"TRACE_12::six.lua:34", "six.lua:34", "six.lua", 34, JIT_LUAJIT},
	{"TRACE_x::six.lua:34", "TRACE_x::six.lua:34", "", 0, JIT_UNKNOWN},
	{"int32 [six] Six::F6(int32)[OptimizedTier1]", "int32 [six] Six::F6(int32)", "", 0,
	 JIT_DOTNET},
	{"int java.lang.String.hashCode()", "int java.lang.String.hashCode()", "", 0, JIT_UNKNOWN},
	{"JS:*f /x.js:99999999999:1", "f /x.js:99999999999:1", "", 0, JIT_V8},
};

static void test_names(void)
{
	char line[256];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(line, sizeof line, "7f00 10 %s\n", names[i].written);
		CHECK_NUMBER(parse(line), strlen(line));
		CHECK_NUMBER(chunk.head.count, 1);
		CHECK_TEXT(name_at(0), names[i].function);
		CHECK_TEXT(file_at(0), names[i].file);
		CHECK_NUMBER(chunk.entries[0].line, names[i].line);
		CHECK_NUMBER(chunk.entries[0].language, names[i].language);
		CHECK(jit_chunk_is_sound(&chunk));
	}
}

/* --- maps --- */

static void test_lines(void)
{
	CHECK_NUMBER(parse("0x00007f0000001000 0x0000000000000040 int a.B.c(int)\n7F01 0a d e\r\n"
			   "28b9 5 unfinis"),
		     66);
	CHECK_NUMBER(chunk.head.count, 2);
	CHECK_NUMBER(chunk.entries[0].start, 0x7f0000001000);
	CHECK_NUMBER(chunk.entries[0].size, 0x40);
	CHECK_TEXT(name_at(0), "int a.B.c(int)");
	CHECK_NUMBER(chunk.entries[1].size, 10);
	CHECK_TEXT(name_at(1), "d e");
	CHECK_NUMBER(chunk.head.refused, 0);
}

static void test_wrong_lines(void)
{
	static const char *const wrong[] = {"x 10 f\n",
					    "10 x f\n",
					    "10 10\n",
					    "10 10 \n",
					    "10  \n",
					    "\x7f"
					    "ELF\n",
					    "10 0 empty\n",
					    "10 1000001 large\n",
					    "-10 10 f\n",
					    "10 -10 f\n",
					    "1 11112222333344445 f\n",
					    "ffffffffffffffff 10 wraps\n",
					    "100000000000000 10 beyond\n",
					    "0x 10 f\n"};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK_NUMBER(parse(wrong[i]), strlen(wrong[i]));
		CHECK_NUMBER(chunk.head.count, 0);
		CHECK_NUMBER(chunk.head.refused, 1);
	}
	CHECK_NUMBER(parse("\n\n10 10 f\n"), 10);
	CHECK_NUMBER(chunk.head.count, 1);
	CHECK_NUMBER(chunk.head.refused, 0);
}

static void test_hostile_names(void)
{
	static char text[200 << 10];
	size_t read;

	memset(text, 'a', sizeof text - 1); /* 100 kB of a name: not even a line */
	memcpy(text, "10 10 ", 6);
	text[100 << 10] = '\n';
	read = parse(text);
	CHECK_NUMBER(chunk.head.count, 1);
	CHECK_NUMBER(chunk.head.cut, 1);
	CHECK_NUMBER(strlen(name_at(0)), JIT_NAME_MAX);
	CHECK(read > 100 << 10);
	parse("10 10 \x1b[31mred\x07\xff\xc3\xa4\xed\xa0\x80\xe2\x82\n");
	CHECK_TEXT(name_at(0), "?[31mred??\xc3\xa4?????");
	CHECK(jit_chunk_is_sound(&chunk));
	jit_chunk_init(&chunk);
	CHECK_NUMBER(perf_map_parse("10 10 a\0b\n", 10, &chunk), 10);
	CHECK_TEXT(name_at(0), "a?b");
	memset(text, 'b', JIT_NAME_MAX + 6); /* the cut goes through a character */
	memcpy(text, "10 10 ", 6);
	strcpy(text + 6 + JIT_NAME_MAX - 1, "\xe2\x82\xac\n");
	parse(text);
	CHECK_NUMBER(strlen(name_at(0)), JIT_NAME_MAX - 1);
}

static int file_of(const void *bytes, size_t length)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	CHECK(write(fd, bytes, length) == (ssize_t)length);
	return fd;
}

/* Entries of a whole file, read as the agent does. */
static uint32_t read_whole(int fd, enum jit_format format, uint64_t limit, uint32_t *pieces)
{
	uint64_t at = 0;
	uint32_t count = 0;

	for (*pieces = 0; *pieces < 1000; at = chunk.head.next) {
		jit_file_read(fd, format, at, limit, &chunk);
		CHECK(jit_chunk_is_sound(&chunk));
		++*pieces;
		count += chunk.head.count;
		if (chunk.head.next <= at)
			break;
	}
	return count;
}

static void test_pieces(void)
{
	enum { LINES = 5000 };
	FILE *file = tmpfile();
	uint32_t pieces;
	long size;

	for (int i = 0; i < LINES; i++)
		fprintf(file, "%x 10 JS:*function_%d /a/rather/long/path.js:%d:1\n", i * 16, i, i);
	fputs("10 10 unfinished", file);
	fflush(file);
	size = ftell(file);
	CHECK_NUMBER(read_whole(fileno(file), JIT_PERF_MAP, (uint64_t)size, &pieces), LINES);
	CHECK(pieces > LINES / JIT_ENTRIES_MAX && pieces < 20);
	CHECK_NUMBER(chunk.head.next, size - 16);
	jit_file_read(fileno(file), JIT_PERF_MAP, 0, 100, &chunk); /* what was there then */
	CHECK(chunk.head.next <= 100 && chunk.head.count == 2);
	jit_file_read(fileno(file), JIT_PERF_MAP, UINT64_MAX, UINT64_MAX, &chunk);
	CHECK_NUMBER(chunk.head.count, 0);
	fclose(file);
}

/* --- dumps --- */

static uint8_t dump[1 << 16];
static size_t dump_bytes;

static void put(const void *bytes, size_t length)
{
	memcpy(dump + dump_bytes, bytes, length);
	dump_bytes += length;
}

static void put32(uint32_t value)
{
	put(&value, sizeof value);
}

static void put64(uint64_t value)
{
	put(&value, sizeof value);
}

static void begin_dump(uint64_t flags)
{
	dump_bytes = 0;
	put("DTiJ", 4);
	put32(1);
	put32(40);
	put32(62);
	put32(0);
	put32(1234);
	put64(0);
	put64(flags);
}

static void put_load(uint64_t time, uint64_t address, uint32_t size, const char *name)
{
	put32(0);
	put32((uint32_t)(56 + strlen(name) + 1 + size));
	put64(time);
	put64(0);
	put64(address);
	put64(address);
	put64(size);
	put64(1);
	put(name, strlen(name) + 1);
	memset(dump + dump_bytes, 0x90, size);
	dump_bytes += size;
}

static void put_unwinding(void)
{
	put32(4);
	put32(24);
	put64(0);
	put64(0);
}

static void put_line(uint64_t address, uint32_t line, const char *file)
{
	put64(address);
	put32(line);
	put32(0);
	put(file, strlen(file) + 1);
}

static void put_debug(uint64_t address)
{
	const size_t begin = dump_bytes;
	uint32_t bytes;

	put32(2);
	put32(0);
	put64(0);
	put64(address);
	put64(3);
	put_line(address, 10, "/src/a.jl");
	put_line(address + 8, 11, "\xff");
	put_line(address + 16, 3, "/src/inlined.jl");
	bytes = (uint32_t)(dump_bytes - begin);
	memcpy(dump + begin + 4, &bytes, sizeof bytes);
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	put32(1);
	put32(64);
	put64(time);
	put64(0);
	put64(to);
	put64(from);
	put64(to);
	put64(size);
	put64(1);
}

static void read_dump(uint64_t limit)
{
	int fd = file_of(dump, dump_bytes);

	jit_file_read(fd, JIT_DUMP, 0, limit, &chunk);
	CHECK(jit_chunk_is_sound(&chunk));
	close(fd);
}

static void test_dump(void)
{
	size_t before_debug;

	begin_dump(0);
	put_load(1000, 0x7f0000001000, 64, "julia_f6_12");
	before_debug = dump_bytes;
	put_debug(0x7f0000002000);
	put_unwinding(); /* V8 has it between the lines and their function */
	put_load(2000, 0x7f0000002000, 32, "with_lines");
	put_move(3000, 0x7f0000001000, 0x7f0000003000, 64);
	read_dump(dump_bytes);
	CHECK_NUMBER(chunk.head.count, 3);
	CHECK_NUMBER(chunk.head.next, dump_bytes);
	CHECK_TEXT(name_at(0), "julia_f6_12");
	CHECK_NUMBER(chunk.entries[0].time_ns, 1000);
	CHECK_NUMBER(chunk.entries[0].line_count, 0);
	CHECK_TEXT(file_at(1), "/src/a.jl");
	CHECK_NUMBER(chunk.entries[1].line_count, 3);
	CHECK_NUMBER(chunk.lines[chunk.entries[1].first_line + 1].line, 11);
	CHECK_NUMBER(chunk.lines[chunk.entries[1].first_line + 1].offset, 8);
	CHECK_TEXT(chunk.text + chunk.lines[chunk.entries[1].first_line + 1].file, "/src/a.jl");
	CHECK_TEXT(chunk.text + chunk.lines[chunk.entries[1].first_line + 2].file,
		   "/src/inlined.jl");
	CHECK_NUMBER(chunk.entries[2].old_start, 0x7f0000001000);
	CHECK_NUMBER(chunk.entries[2].start, 0x7f0000003000);
	/* Lines are read again with their function when that is not there yet. */
	read_dump(dump_bytes - 64 - 1);
	CHECK_NUMBER(chunk.head.count, 1);
	CHECK_NUMBER(chunk.head.next, before_debug);
	begin_dump(1); /* its times are of another clock */
	put_load(1000, 0x7f0000001000, 64, "f");
	read_dump(dump_bytes);
	CHECK_NUMBER(chunk.entries[0].time_ns, 0);
}

static void test_wrong_dumps(void)
{
	begin_dump(0);
	dump[0] = 'X';
	read_dump(dump_bytes);
	CHECK(chunk.head.is_wrong);
	begin_dump(0);
	put32(0);
	put32(8); /* a record shorter than its own beginning */
	put64(0);
	read_dump(dump_bytes);
	CHECK(chunk.head.is_wrong);
	begin_dump(0);
	put_load(1, 0x1000, 16, "f");
	put_load(1, 0x1000, 0, "nothing");
	put_load(1, UINT64_MAX - 8, 16, "wraps");
	put_move(1, 0, 0x2000, 16);
	read_dump(dump_bytes);
	CHECK_NUMBER(chunk.head.count, 1);
	CHECK_NUMBER(chunk.head.refused, 3);
	CHECK_NUMBER(chunk.head.next, dump_bytes);
	read_dump(dump_bytes - 1);
	CHECK(chunk.head.next < dump_bytes && !chunk.head.is_wrong);
	read_dump(0);
	CHECK_NUMBER(chunk.head.count, 0);
}

/* A terabyte of records, all holes: read in pieces that cost nothing. */
static void test_sparse(void)
{
	int fd;

	begin_dump(0);
	put32(4);
	put32(UINT32_MAX);
	put64(0);
	fd = file_of(dump, dump_bytes);
	CHECK(!ftruncate(fd, (off_t)1 << 40));
	jit_file_read(fd, JIT_DUMP, 0, UINT64_C(1) << 40, &chunk);
	CHECK(chunk.head.is_wrong); /* the second is of zero bytes */
	CHECK_NUMBER(chunk.head.count, 0);
	close(fd);
}

/* --- the child --- */

static uint32_t told_number, told_count;
static bool is_told;

static void take(void *context, uint32_t number, const struct jit_chunk *piece)
{
	(void)context;
	told_number = number;
	is_told = true;
	told_count = piece ? piece->head.count : UINT32_MAX;
	if (piece)
		chunk = *piece;
}

static void test_child(void)
{
	static const char text[] = "10 10 JS:*a /x.js:1:2\n20 10 b\n";
	const struct file_parser_piece piece = {JIT_PERF_MAP, 0, sizeof text - 1};
	struct file_parser *parser = file_parser_new(NULL);
	int fd = file_of(text, sizeof text - 1);
	int64_t end = monotonic_ms() + PATIENCE_MS;

	file_parser_set_jit(parser, take, NULL);
	CHECK(file_parser_ask_jit(parser, 7, fd, &piece, monotonic_ms()));
	CHECK(ask(parser, REAL, 0)); /* and a page behind it, told of by itself */
	CHECK(wait_answer(parser));
	while (!is_told && monotonic_ms() < end)
		file_parser_next(parser, monotonic_ms());
	CHECK_NUMBER(told_number, 7);
	CHECK_NUMBER(told_count, 2);
	CHECK_TEXT(name_at(0), "a");
	CHECK_TEXT(file_at(0), "/x.js");
	CHECK_NUMBER(chunk.head.next, sizeof text - 1);
	close(fd);
	file_parser_free(parser);
}

int main(int argc, char **argv)
{
	int child = file_parser_main(argc, argv);

	if (child >= 0)
		return child;
	own_file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	test_names();
	test_lines();
	test_wrong_lines();
	test_hostile_names();
	test_pieces();
	test_dump();
	test_wrong_dumps();
	test_sparse();
	test_child();
	return checks_done();
}
