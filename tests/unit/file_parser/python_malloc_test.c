/* SPDX-License-Identifier: Apache-2.0 */
/* Where the CPythons that are installed here take a pool for small objects: in the functions that
 * do, as nm has them, at an instruction that objdump sees, and only there. */
#include "node-agent/file_parser/python_malloc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

static bool places_of(const char *path, struct memory_places *places)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_file *file = fd < 0 ? NULL : unwind_file_open(fd);

	*places = (struct memory_places){0};
	if (!file)
		return false;
	unwind_file_memory(file, places);
	unwind_file_close(file);
	return true;
}

/* The first line that a command says; 0: none. */
static size_t __attribute__((format(printf, 3, 4)))
ask(char *line, size_t bytes, const char *format, ...)
{
	char command[1024];
	va_list arguments;
	FILE *pipe;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	line[0] = '\0';
	pipe = popen(command, "r");
	if (pipe && !fgets(line, (int)bytes, pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	line[strcspn(line, "\n")] = '\0';
	return strlen(line);
}

/* Of the last symbol at or before the address. */
static void function_at(const char *path, uint64_t address, char *name, size_t bytes)
{
	ask(name, bytes,
	    "nm -n '%s' 2>/dev/null | awk '$2 ~ /[tT]/ && $1 <= \"%016" PRIx64
	    "\" {name = $3} END {print name}'",
	    path, address);
}

static bool is_pymalloc(const char *name)
{
	static const char *const names[] = {"allocate_from_new_pool", "_PyObject_Malloc",
					    "_PyObject_Calloc",       "_PyObject_Realloc",
					    "_PyObject_Alloc",        "pymalloc_alloc"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static void check_place(const char *path, uint64_t address)
{
	char name[256], line[256];

	function_at(path, address, name, sizeof name);
	if (name[0] && !CHECK(is_pymalloc(name)))
		printf("# %s: %" PRIx64 " is in %s\n", path, address, name);
	/* The instructions from well before on, as they follow one another. */
	ask(line, sizeof line,
	    "objdump -d --no-show-raw-insn --start-address=%" PRIu64 " --stop-address=%" PRIu64
	    " '%s' | grep -E '^ +%" PRIx64 ":'",
	    name[0] ? address - 64 : address, address + 16, path, address);
	CHECK(line[0]);
}

static unsigned check_file(const char *path)
{
	struct memory_places places;
	const struct memory_place *base;
	char version[64];
	unsigned found = 0;

	if (!places_of(path, &places))
		return 0;
	base = memory_place_find(&places, MEMORY_BASE);
	for (uint32_t i = 0; base && i < places.count; i++) {
		const struct memory_place *place = &places.items[i];

		if (place->kind != MEMORY_PYTHON_POOL)
			continue;
		found++;
		check_place(path, place->at + base->at);
		ask(version, sizeof version, "echo '%s' | grep -oE 'python3\\.[0-9]+' | tail -1",
		    path);
		CHECK_NUMBER(place->bytes, atoi(version + 8) < 10 ? 4096 : 16384);
	}
	printf("# %s: %u places\n", path, found);
	CHECK(found <= PYTHON_POOL_PLACES_MAX);
	return found;
}

static unsigned check_all(const char *pattern)
{
	glob_t found = {0};
	unsigned count = 0;

	glob(pattern, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat st;

		if (lstat(found.gl_pathv[i], &st) || S_ISLNK(st.st_mode) || st.st_size < 1 << 20)
			continue; /* the others are but doors to a library */
#if defined(__x86_64__)
		count += CHECK(check_file(found.gl_pathv[i]) > 0);
#else
		CHECK_NUMBER(check_file(found.gl_pathv[i]), 0);
#endif
	}
	globfree(&found);
	return count;
}

int main(void)
{
	char libraries[300], programs[300];
	struct memory_places places;

	CHECK(places_of("/proc/self/exe", &places) &&
	      !memory_place_find(&places, MEMORY_PYTHON_POOL));
	printf("# %u interpreters\n",
	       check_all("/usr/bin/python3.[0-9]*[0-9]") +
		       check_all("/usr/lib/*-linux-gnu/libpython3.*.so.1.0") +
		       check_all(pyenv_pattern(libraries, sizeof libraries,
					       "lib/libpython3.*.so.1.0")) +
		       check_all(pyenv_pattern(programs, sizeof programs,
					       "bin/python3.[0-9]*[0-9]")));
	return checks_done();
}
