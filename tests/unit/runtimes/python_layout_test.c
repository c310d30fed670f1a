/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets of each CPython that is installed below ~/.pyenv, as gdb reads them from its debug
 * information; and 3.13's own description, from the file. */
#include "node-agent/runtimes/python_layout.h"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

/* Where a member is in this version or that, TYPE.FIELD; the first that gdb knows counts. */
#define NAMES_MAX 3
static const struct {
	const char *name;
	size_t at, bytes;
	const char *fields[NAMES_MAX];
} members[] = {
#define MEMBER(name, ...)                                                                          \
	{ #name, offsetof(struct python_layout, name), sizeof(((struct python_layout *)0)->name),  \
	  { __VA_ARGS__ } }
	MEMBER(runtime_interpreters_head, "_PyRuntimeState.interpreters.head"),
	MEMBER(runtime_tstate_current, "_PyRuntimeState.gilstate.tstate_current"),
	MEMBER(interp_next, "PyInterpreterState.next"),
	MEMBER(interp_threads_head, "PyInterpreterState.threads.head", "PyInterpreterState.tstate_head"),
	MEMBER(tstate_next, "PyThreadState.next"),
	MEMBER(tstate_interp, "PyThreadState.interp"),
	MEMBER(tstate_thread_id, "PyThreadState.thread_id"),
	MEMBER(tstate_native_thread_id, "PyThreadState.native_thread_id"),
	MEMBER(tstate_frame, "PyThreadState.current_frame", "PyThreadState.frame", "PyThreadState.cframe"),
	MEMBER(cframe_frame, "_PyCFrame.current_frame"),
	MEMBER(frame_code, "_PyInterpreterFrame.f_executable", "_PyInterpreterFrame.f_code", "PyFrameObject.f_code"),
	MEMBER(frame_previous, "_PyInterpreterFrame.previous", "PyFrameObject.f_back"),
	MEMBER(frame_instr, "_PyInterpreterFrame.instr_ptr", "_PyInterpreterFrame.prev_instr", "PyFrameObject.f_lasti"),
	MEMBER(frame_entry, "_PyInterpreterFrame.is_entry", "_PyInterpreterFrame.owner"),
	MEMBER(frame_locals, "_PyInterpreterFrame.localsplus", "PyFrameObject.f_localsplus"),
	MEMBER(code_argcount, "PyCodeObject.co_argcount"),
	MEMBER(code_kwonly, "PyCodeObject.co_kwonlyargcount"),
	MEMBER(code_flags, "PyCodeObject.co_flags"),
	MEMBER(code_firstline, "PyCodeObject.co_firstlineno"),
	MEMBER(code_filename, "PyCodeObject.co_filename"),
	MEMBER(code_name, "PyCodeObject.co_name"),
	MEMBER(code_qualname, "PyCodeObject.co_qualname"),
	MEMBER(code_lines, "PyCodeObject.co_linetable", "PyCodeObject.co_lnotab"),
	MEMBER(code_varnames, "PyCodeObject.co_localsplusnames", "PyCodeObject.co_varnames"),
	MEMBER(code_bytes, "PyCodeObject.co_code_adaptive"),
	MEMBER(code_code, "PyCodeObject.co_code"),
	MEMBER(unicode_length, "PyASCIIObject.length"),
	MEMBER(unicode_state, "PyASCIIObject.state"),
	MEMBER(bytes_size, "PyVarObject.ob_size"),
	MEMBER(bytes_data, "PyBytesObject.ob_sval"),
	MEMBER(tuple_size, "PyVarObject.ob_size"),
	MEMBER(tuple_items, "PyTupleObject.ob_item"),
};
enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static uint32_t number(const struct python_layout *layout, size_t at, size_t bytes)
{
	uint32_t wide = 0;
	uint16_t narrow = 0;

	memcpy(bytes == 4 ? (void *)&wide : &narrow, (const char *)layout + at, bytes);
	return bytes == 4 ? wide : narrow;
}

/* gdb's commands: one line "OFFSET WHICH VALUE" per name that there is. */
static void write_commands(FILE *file, const char *dump)
{
	for (int i = 0; i < MEMBERS; i++) {
		for (int k = 0; k < NAMES_MAX && members[i].fields[k]; k++) {
			const char *dot = strchr(members[i].fields[k], '.');
			fprintf(file, "printf \"@ %d %%ld\\n\", (long)&(('%.*s' *)0)->%s\n", i,
				(int)(dot - members[i].fields[k]), members[i].fields[k], dot + 1);
		}
	}
	fprintf(file, "printf \"@ %d %%ld\\n\", sizeof(PyASCIIObject)\n", MEMBERS);
	fprintf(file, "printf \"@ %d %%ld\\n\", sizeof(PyCompactUnicodeObject)\n", MEMBERS + 1);
	fprintf(file, "dump binary value %s _PyRuntime.debug_offsets\n", dump);
}

/* Each command by itself: one that fails ends a file of them. */
static bool ask_gdb(const char *library, const char *dump, int64_t *found)
{
	char *text = NULL, *line = NULL, *command = NULL;
	size_t size = 0, room = 0, command_size = 0;
	FILE *commands = open_memstream(&text, &size);
	int at, have = 0;
	long value;

	write_commands(commands, dump);
	fclose(commands);
	FILE *whole = open_memstream(&command, &command_size);
	fprintf(whole, "gdb -nx -batch");
	for (char *rest = text, *one; (one = strsep(&rest, "\n")) && *one;)
		fprintf(whole, " -ex \"$(cat <<'END'\n%s\nEND\n)\"", one);
	fprintf(whole, " %s 2>/dev/null", library);
	fclose(whole);
	FILE *gdb = popen(command, "r");
	while (gdb && getline(&line, &room, gdb) > 0) {
		if (sscanf(line, "@ %d %ld", &at, &value) == 2 && at < MEMBERS + 2 && found[at] < 0) {
			found[at] = value;
			have++;
		}
	}
	if (gdb)
		pclose(gdb);
	free(line);
	free(text);
	free(command);
	return have > MEMBERS / 2;
}

static bool read_dump(const char *path, struct python_layout *layout)
{
	uint8_t bytes[PYTHON_DEBUG_OFFSETS_BYTES];
	FILE *file = fopen(path, "r");
	size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;

	if (file)
		fclose(file);
	return python_layout_decode(bytes, size, layout);
}

/* What threads wait at within _PyRuntime is the interpreter's lock, all four of its parts. */
static void test_locks(const char *library, unsigned minor)
{
	char command[500], line[300];
	int parts = 0, others = 0;
	FILE *gdb;

	if (minor < 7) /* it has no _PyRuntime */
		return;
	snprintf(command, sizeof command, "gdb -nx -batch -x tests/tools/python_locks_gdb.py %s 2>/dev/null", library);
	gdb = popen(command, "r");
	while (gdb && fgets(line, sizeof line, gdb)) {
		const bool is_part = strstr(line, "gil.cond") || strstr(line, "gil.mutex") ||
				     strstr(line, "gil.switch_cond") || strstr(line, "gil.switch_mutex");
		parts += is_part;
		others += !is_part;
		if (!is_part)
			printf("# %s", line);
	}
	if (gdb)
		pclose(gdb);
	CHECK_NUMBER(parts, 4);
	CHECK_NUMBER(others, 0);
}

static void test_library(const char *library)
{
	char dump[] = "/tmp/farflame-layout-XXXXXX", what[400];
	int64_t found[MEMBERS + 2];
	struct python_layout layout;
	unsigned minor = 0;
	int fd = mkstemp(dump), differ = 0;

	memset(found, 0xff, sizeof found);
	if (fd < 0 || !ask_gdb(library, dump, found)) {
		SKIP("a library without debug information, or no gdb");
		unlink(dump);
		return;
	}
	close(fd);
	sscanf(strstr(library, "libpython3."), "libpython3.%u", &minor);
	if (!CHECK(minor < 13 ? python_layout_find(0x03000000 | minor << 16, &layout) :
				read_dump(dump, &layout)))
		return;
	unlink(dump);
	for (int i = 0; i < MEMBERS; i++) {
		const int64_t none = members[i].bytes == 4 ? 0 : PYTHON_LAYOUT_NONE;
		const int64_t want = found[i] < 0 ? none : found[i];
		if (number(&layout, members[i].at, members[i].bytes) != want) {
			printf("# %s: %" PRIu32 ", gdb says %" PRId64 "\n", members[i].name,
			       number(&layout, members[i].at, members[i].bytes), want);
			differ++;
		}
	}
	snprintf(what, sizeof what, "%s: all members are where its debug information has them", library);
	check_report(differ == 0, what, __FILE__, __LINE__);
	CHECK_NUMBER(layout.unicode_ascii_data, found[MEMBERS]);
	CHECK_NUMBER(layout.unicode_compact_data, found[MEMBERS + 1]);
	CHECK_NUMBER(layout.version >> 16, 0x0300 | minor);
	test_locks(library, minor);
}

static void test_installed(void)
{
	glob_t found = {0};
	char pattern[300];

	if (glob(pyenv_pattern(pattern, sizeof pattern, "lib/libpython3.*.so.1.0"), 0, NULL, &found) != 0)
		SKIP("no CPython in ~/.pyenv/versions");
	for (size_t i = 0; i < found.gl_pathc; i++)
		test_library(found.gl_pathv[i]);
	globfree(&found);
}

/* 3.14's of a free-threaded build, after its header; made up but for the shape. */
static void write_3_14(uint64_t *words)
{
	static const uint64_t of[] = {
		0, 0x030e00f0, 1, 400000, 8, 632, /* runtime: size, finalizing, interpreters_head */
		250000, 8, 7264, 7344, 7352, 7600, 8000, 8008, 8016, 24, 0, 40, 48, 56, 64, 72,
		800, 0, 8, 16, 72, 152, 160, 240, 32, /* thread */
		96, 8, 0, 56, 88, 78, 64, 72,         /* frame: size, previous, executable, … */
		224, 128, 136, 144, 152, 84, 68, 112, 120, 216, 208, /* code */
		32, 24, 416, 40, 104, 184, 48, 40, 32, 48, 40, 32, 200, 40, 48, 56, 64, 48, 56,
		40, 32, 48, 32, 40, 56, 32, 48,       /* float, long, bytes */
		80, 48, 32, 56,                       /* unicode: size, state, length, ascii */
	};

	memcpy(words, of, sizeof of);
	memcpy(words, "xdebugpy", 8);
}

static void test_3_14(void)
{
	uint64_t words[PYTHON_DEBUG_OFFSETS_BYTES / 8] = {0};
	struct python_layout layout;

	write_3_14(words);
	CHECK(python_layout_decode(words, sizeof words, &layout));
	CHECK_NUMBER(layout.interp_threads_head, 7344);
	CHECK_NUMBER(layout.tstate_frame, 72);
	CHECK_NUMBER(layout.frame_entry, 78);
	CHECK_NUMBER(layout.code_kwonly, 76);
	CHECK_NUMBER(layout.code_flags, 64);
	CHECK_NUMBER(layout.code_bytes, 216);
	CHECK_NUMBER(layout.unicode_compact_data, 72);
	CHECK_NUMBER(layout.unicode_kind_bit, 8);
	CHECK(layout.flags & PYTHON_CODE_IS_COPIED);
}

/* As Debian's 3.14.10 and 3.15.2 have it in their files. */
static const uint64_t words_3_14[] = {
	0, 0x030e0af0, 0, 316616, 784, 808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16,
	7784, 0, 7800, 7792, 7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64,
	0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0, 16, 8, 416, 24, 88, 168, 40, 32, 16, 40,
	24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40,
};
static const uint64_t words_3_15[] = {
	0, 0x030f02f0, 0, 346568, 912, 936, 226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16,
	7736, 0, 7752, 7744, 7944, 0, 888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136,
	288, 0, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0, 16, 8,
	424, 24, 88, 168, 32, 288, 944, 888, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24,
	16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40,
};

static void test_described(void)
{
	static const struct {
		const uint64_t *words;
		size_t bytes;
		uint32_t interpreters, threads, thread_id;
	} rows[] = {
		{ words_3_14, sizeof words_3_14, 808, 7344, 152 },
		{ words_3_15, sizeof words_3_15, 936, 7336, 176 },
	};
	uint64_t words[PYTHON_DEBUG_OFFSETS_BYTES / 8];
	struct python_layout layout;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		memset(words, 0, sizeof words);
		memcpy(words, rows[i].words, rows[i].bytes);
		memcpy(words, "xdebugpy", 8);
		if (!CHECK(python_layout_decode(words, sizeof words, &layout)))
			continue;
		CHECK_NUMBER(layout.runtime_interpreters_head, rows[i].interpreters);
		CHECK_NUMBER(layout.interp_threads_head, rows[i].threads);
		CHECK_NUMBER(layout.tstate_frame, 72);
		CHECK_NUMBER(layout.tstate_thread_id, rows[i].thread_id);
		CHECK_NUMBER(layout.tstate_native_thread_id, rows[i].thread_id + 8);
		CHECK_NUMBER(layout.frame_previous, 8);
		CHECK_NUMBER(layout.frame_instr, 56);
		CHECK_NUMBER(layout.frame_entry, 74);
		CHECK_NUMBER(layout.code_firstline, 68);
		CHECK_NUMBER(layout.code_bytes, 208);
		CHECK_NUMBER(layout.tuple_items, 32);
		CHECK_NUMBER(layout.unicode_ascii_data, 40);
		CHECK_NUMBER(layout.unicode_kind_bit, 2);
		CHECK(!(layout.flags & PYTHON_CODE_IS_COPIED));
	}
}

static void test_refused(void)
{
	static const struct {
		int word;
		uint64_t value;
	} wrong[] = {
		{0, 0}, {1, 0x030c00f0}, {1, 0x031000f0}, {1, 0x030f00c1}, {1, 0x030e00a1}, {1, 1ULL << 40}, {5, 1 << 30},
		{9, 1 << 30}, {22, 1 << 20}, {26, 800}, {34, UINT64_MAX}, {45, 3}, {44, 80}, {80, 5000},
	};
	uint64_t words[PYTHON_DEBUG_OFFSETS_BYTES / 8] = {0};
	struct python_layout layout;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_3_14(words);
		words[wrong[i].word] = wrong[i].value;
		if (!CHECK(!python_layout_decode(words, sizeof words, &layout)))
			printf("# row %zu\n", i);
	}
	write_3_14(words);
	CHECK(!python_layout_decode(words, 80 * 8, &layout));
	CHECK(!python_layout_decode(words, 0, &layout));
	CHECK(!python_layout_find(0x030d00f0, &layout) && !python_layout_find(0x03050000, &layout));
	CHECK(!python_layout_find(0x020700f0, &layout));
}

/* As gdb has it of a 3.9.2 so configured. Frames are objects up to 3.10 only. */
static void test_traced(void)
{
	struct python_layout layout;

	CHECK(python_layout_find(0x03090000, &layout));
	python_layout_trace(&layout);
	CHECK_NUMBER(layout.frame_previous, 40);
	CHECK_NUMBER(layout.frame_instr, 120);
	CHECK_NUMBER(layout.code_firstline, 56);
	CHECK_NUMBER(layout.code_qualname, PYTHON_LAYOUT_NONE);
	CHECK_NUMBER(layout.unicode_ascii_data, 64);
	CHECK_NUMBER(layout.tstate_frame, 24);
	CHECK(python_layout_find(0x030c0000, &layout));
	python_layout_trace(&layout);
	CHECK_NUMBER(layout.frame_previous, 8);
	CHECK_NUMBER(layout.code_bytes, 208);
	CHECK_NUMBER(layout.tuple_items, 40);
}

static void test_texts(void)
{
	char text[PYTHON_VERSION_TEXT];

	python_version_text(0x030e0af0, text);
	CHECK_TEXT(text, "3.14.10");
	python_version_text(0x030f00c2, text);
	CHECK_TEXT(text, "3.15.0rc2");
	python_version_text(0x03070000, text);
	CHECK_TEXT(text, "3.7.0");
	python_version_text(UINT32_MAX, text);
	CHECK_TEXT(text, "255.255.255");
}

int main(void)
{
	test_traced();
	test_texts();
	test_installed();
	test_3_14();
	test_described();
	test_refused();
	return checks_done();
}
