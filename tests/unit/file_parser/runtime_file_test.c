/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are CPython, which one, and where its loop is: beside nm and readelf, in all that is
 * installed here, as they are and stripped. */
#include "node-agent/file_parser/runtime_file.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

enum { TRAP_BYTES = 8 };

static char folder[] = "/tmp/farflame_runtime_XXXXXX";

static bool read_file(const char *path, struct runtime_symbols *out)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_file *file = fd < 0 ? NULL : unwind_file_open(fd);

	if (!file)
		return false;
	unwind_file_runtime(file, out);
	unwind_file_close(file);
	return true;
}

/* nm's own, of dynamic symbols and the others. */
static bool nm_find(const char *path, const char *name, uint64_t *address, uint64_t *bytes)
{
	char command[512], line[512];
	bool is_found = false;
	FILE *pipe;

	snprintf(command, sizeof command,
		 "{ nm -S --defined-only '%s'; nm -D -S --defined-only --without-symbol-versions "
		 "'%s'; } 2>/dev/null | awk '$4 == \"%s\"'",
		 path, path, name);
	pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof line, pipe))
		is_found |= sscanf(line, "%" SCNx64 " %" SCNx64, address, bytes) == 2;
	if (pipe)
		pclose(pipe);
	return is_found;
}

static bool has_part(const struct runtime_symbols *found, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < found->loop_count; i++)
		if (found->loop[i].start <= start && found->loop[i].end >= end)
			return true;
	return false;
}

/* Of a path such as …/libpython3.11.so.1.0: 0x030b. */
static uint32_t version_of(const char *path)
{
	const char *at = strrchr(path, '/');
	unsigned minor = 0;

	at = strstr(at ? at : path, "python3.");
	if (at)
		sscanf(at, "python3.%u", &minor);
	return 0x0300 + minor;
}

/* By objdump: whether code from start up to end jumps to some place from low up to high. */
static bool jumps_into(const char *path, uint64_t start, uint64_t end, uint64_t low, uint64_t high)
{
	char command[512];
	FILE *pipe;
	unsigned long long target;
	bool does = false;

	snprintf(command, sizeof command,
		 "objdump -d --no-show-raw-insn --start-address=0x%" PRIx64
		 " --stop-address=0x%" PRIx64 " '%s' | awk '$2 ~ /^j/ { print $3 }'",
		 start, end, path);
	pipe = popen(command, "r");
	while (pipe && fscanf(pipe, "%llx%*[^\n]", &target) >= 1)
		does |= target >= low && target < high;
	if (pipe)
		pclose(pipe);
	return does;
}

/* Parts that were found by jumps are the loop's: they jump back. */
static void check_parts(const char *path, const struct runtime_symbols *found)
{
	for (uint32_t i = 1; i < found->loop_count; i++) {
		printf("# a part of %" PRIu64 " bytes\n",
		       found->loop[i].end - found->loop[i].start);
		CHECK(jumps_into(path, found->loop[0].start, found->loop[0].end,
				 found->loop[i].start, found->loop[i].end));
		CHECK(jumps_into(path, found->loop[i].start, found->loop[i].end,
				 found->loop[0].start, found->loop[0].end));
	}
}

/* Where threads wait for the interpreter's lock and for nothing else; of 3.6 where its symbols say
 * it. */
static void check_lock(const char *path, const struct runtime_symbols *found)
{
	static const char *const names[] = {"gil_cond", "gil_mutex", "switch_cond", "switch_mutex"};

	if (found->version >= 0x03070000) {
		CHECK_NUMBER(found->lock, found->state);
		CHECK_NUMBER(found->lock_bytes, found->state_bytes);
		return;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		uint64_t address = 0, bytes = 0;

		if (!nm_find(path, names[i], &address, &bytes))
			CHECK_NUMBER(found->lock_bytes, 0);
		else
			CHECK(address >= found->lock &&
			      address + bytes <= found->lock + found->lock_bytes);
	}
}

/* Without the names of what the compiler put elsewhere; where nothing but a trap is there, which a
 * table of jumps leads to, it stays unknown. */
static void check_stripped(const char *path, const struct runtime_symbols *whole, uint64_t cold,
			   uint64_t cold_bytes)
{
	char command[512], copy[128];
	struct runtime_symbols found;

	snprintf(copy, sizeof copy, "%s/stripped", folder);
	snprintf(command, sizeof command, "strip -o %s '%s' 2>/dev/null", copy, path);
	if (!CHECK(system(command) == 0) || !CHECK(read_file(copy, &found)))
		return;
	CHECK_NUMBER(found.language, whole->language);
	CHECK_NUMBER(found.version, whole->version);
	CHECK_NUMBER(found.state, whole->state);
	CHECK_NUMBER(found.loop[0].start, whole->loop[0].start);
	CHECK(cold_bytes <= TRAP_BYTES || has_part(&found, cold, cold + cold_bytes));
	check_parts(copy, &found);
	check_lock(copy, &found);
	unlink(copy);
}

static void check_python(const char *path)
{
	uint64_t loop = 0, loop_bytes = 0, state = 0, state_bytes = 0, cold = 0, cold_bytes = 0;
	struct runtime_symbols found;
	const bool has_cold = nm_find(path, "_PyEval_EvalFrameDefault.cold", &cold, &cold_bytes);

	printf("# %s\n", path);
	CHECK(nm_find(path, "_PyEval_EvalFrameDefault", &loop, &loop_bytes));
	CHECK(nm_find(path, "_PyRuntime", &state, &state_bytes) ||
	      nm_find(path, "_PyThreadState_Current", &state, &state_bytes));
	if (!CHECK(read_file(path, &found)))
		return;
	CHECK_NUMBER(found.language, RUNTIME_CPYTHON);
	CHECK_NUMBER(found.version >> 16, version_of(path));
	CHECK_NUMBER(found.flags, 0);
	CHECK_NUMBER(found.state, state);
	CHECK_NUMBER(found.state_bytes, state_bytes);
	CHECK(has_part(&found, loop, loop + loop_bytes));
	CHECK(!has_cold || has_part(&found, cold, cold + cold_bytes));
	check_lock(path, &found);
	check_stripped(path, &found, cold, cold_bytes);
}

static unsigned check_all(const char *pattern)
{
	glob_t found;
	unsigned count = 0;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		uint64_t address, bytes;

		if (!nm_find(found.gl_pathv[i], "_PyEval_EvalFrameDefault", &address, &bytes))
			continue; /* a program whose interpreter is in a library */
		check_python(found.gl_pathv[i]);
		count++;
	}
	globfree(&found);
	return count;
}

/* HotSpot's, by the tables that it exports. */
static void check_jvms(void)
{
	static const char *const names[] = {
#define NAME(number, name) name,
		HOTSPOT_SYMBOLS(NAME)
#undef NAME
	};
	glob_t found = {0};

	if (glob("/usr/lib/jvm/*/lib/server/libjvm.so", 0, NULL, &found))
		SKIP("no Java virtual machine");
	for (size_t i = 0; i < found.gl_pathc && i < 2; i++) {
		struct runtime_symbols symbols;
		uint64_t address, bytes;

		CHECK(read_file(found.gl_pathv[i], &symbols));
		CHECK_NUMBER(symbols.language, RUNTIME_HOTSPOT);
		CHECK(!symbols.loop_count && !symbols.state);
		for (size_t at = 0; at < HOTSPOT_SYMBOL_COUNT; at++)
			CHECK(nm_find(found.gl_pathv[i], names[at], &address, &bytes) &&
			      symbols.hotspot[at] == address);
	}
	globfree(&found);
}

/* One that says that it is a Java virtual machine, and has no tables of HotSpot's. */
static void check_other_jvm(void)
{
	struct runtime_symbols found;
	char path[128], command[512];

	snprintf(path, sizeof path, "%s/libjvm.so", folder);
	snprintf(command, sizeof command,
		 "echo 'int JNI_CreateJavaVM(void) { return 1; } int JNI_GetCreatedJavaVMs(void) "
		 "{ return 2; }' | gcc -x c -shared -fPIC -o %s -",
		 path);
	if (CHECK(system(command) == 0) && CHECK(read_file(path, &found))) {
		CHECK_NUMBER(found.language, 0);
		CHECK_NUMBER(found.flags, RUNTIME_IS_OTHER_JVM);
	}
	unlink(path);
}

/* What has no interpreter, also where it has the word in it. */
static void check_others(void)
{
	static const char *const others[] = {"/proc/self/exe", "/bin/sh", "/usr/bin/env",
					     "/etc/passwd", "/usr/bin/gdb"};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct runtime_symbols found = {.language = 77};

		if (read_file(others[i], &found))
			CHECK_NUMBER(found.language, 0);
	}
}

/* A loop as a profile-guided build splits it: half of it lies elsewhere, a function that it ends in
 * is not a part of it. */
static const char split_loop[] =
	"unsigned long _PyRuntime[64];\n"
	"const unsigned long Py_Version = 0x030c01f0;\n"
	"int step(int); void fail(int) __attribute__((cold));\n"
	"__attribute__((noinline)) int other(int n) { return step(n) + 1; }\n"
	"int _PyEval_EvalFrameDefault(int n) {\n"
	"	for (;;) {\n"
	"		n = step(n);\n"
	"		if (__builtin_expect(n == 7, 0)) {\n"
	"			fail(n); n = step(n + 3); fail(n + 1); n = step(n * 5);\n"
	"			if (n != 9) continue;\n"
	"		}\n"
	"		if (n == 100) return other(n);\n"
	"	}\n"
	"}\n";

static void check_split(void)
{
	char source[128], path[128], command[512];
	FILE *file;

	snprintf(source, sizeof source, "%s/split.c", folder);
	snprintf(path, sizeof path, "%s/libpython3.12.so", folder);
	file = fopen(source, "w");
	if (!CHECK(file && fputs(split_loop, file) >= 0 && !fclose(file)))
		return;
	snprintf(command, sizeof command, "gcc -O2 -shared -fPIC -o %s %s", path, source);
	if (CHECK(system(command) == 0)) {
		uint64_t cold, bytes;

		CHECK(nm_find(path, "_PyEval_EvalFrameDefault.cold", &cold, &bytes) &&
		      bytes > TRAP_BYTES);
		check_python(path);
	}
	unlink(path);
	unlink(source);
}

int main(void)
{
	char libraries[300], programs[300];
	unsigned count;

	if (!CHECK(mkdtemp(folder)))
		return checks_done();
	check_jvms();
	check_other_jvm();
	check_others();
	check_split();
	count = check_all("/usr/bin/python3.[0-9]*[0-9]") +
		check_all("/usr/lib/*-linux-gnu/libpython3.*.so.1.0") +
		check_all(pyenv_pattern(libraries, sizeof libraries, "lib/libpython3.*.so.1.0")) +
		check_all(pyenv_pattern(programs, sizeof programs, "bin/python3.[0-9]*[0-9]"));
	printf("# %u files with CPython\n", count);
	rmdir(folder);
	return checks_done();
}
