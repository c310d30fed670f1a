/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that come from a child which strangers may have taken over, and notes from the disk: what
 * is understood is written the same way again. */
#include <string.h>
#include <unistd.h>

#include "symbol-server/symbolize/sources/package_files.h"
#include "symbol-server/symbolize/sources/package_notes.h"
#include "tests/fuzz/fuzz.h"

static void check_line(char *line)
{
	char again[8192], copy[8192];
	struct package_member member, second;
	size_t length;

	if (!package_member_parse(line, &member))
		return;
	length = package_member_format(&member, again, sizeof(again));
	if (!length || again[length - 1] != '\n')
		abort();
	again[length - 1] = '\0';
	memcpy(copy, again, length);
	if (!package_member_parse(copy, &second) || strcmp(second.path, member.path) != 0 ||
	    second.content != member.content || !build_id_equal(&second.id, &member.id))
		abort();
}

static void check_notes(const uint8_t *bytes, size_t length)
{
	char path[] = "/tmp/package-list-fuzz-XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0 && write(fd, bytes, length) == (ssize_t)length)
		file_index_free(package_notes_load(path));
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	char *text = malloc(length + 1), *line = text, *end;

	memcpy(text, bytes, length);
	text[length] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		check_line(line);
	}
	free(text);
	check_notes(bytes, length);
}
