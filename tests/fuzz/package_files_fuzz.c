/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's package, as the child reads it: listed, then its first file unpacked. */
#include "symbol-server/symbolize/sources/package_files.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { LIMIT = 8 << 20 };

static char *read_lines(int fd, size_t *length)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)size + 1);
	ssize_t got = pread(fd, text, (size_t)size, 0);

	*length = got > 0 ? (size_t)got : 0;
	text[*length] = '\0';
	return text;
}

static void unpack(int package, const char *path)
{
	struct package_reading reading = {.package = package,
					  .wanted = path,
					  .output = memfd_create("file", MFD_CLOEXEC),
					  .limit_bytes = LIMIT};

	package_read(&reading, NULL);
	close(reading.output);
}

/* What the child writes, the server has to understand. */
static void check_lines(int package, int output)
{
	struct package_member member;
	size_t length;
	char *text = read_lines(output, &length), *line = text, *end;
	bool is_first = true;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!package_member_parse(line, &member))
			abort();
		if (is_first)
			unpack(package, member.path);
		is_first = false;
	}
	free(text);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct package_reading reading = {.package = memfd_create("package", MFD_CLOEXEC),
					  .output = memfd_create("list", MFD_CLOEXEC),
					  .limit_bytes = LIMIT};

	if (write(reading.package, bytes, length) == (ssize_t)length &&
	    package_read(&reading, NULL))
		check_lines(reading.package, reading.output);
	close(reading.package);
	close(reading.output);
}
