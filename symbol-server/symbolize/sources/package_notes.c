/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a line for the format, for each package "package FINGERPRINT PATH" and its members' lines,
 * at the end a hash of everything before. */
#include "symbol-server/symbolize/sources/package_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/sources/package_files.h"

enum {
	NOTES_BYTES_MAX = 1 << 30,
	LINE_ROOM = PATH_MAX + BUILD_ID_HEX + 64,
};

#define FORMAT_LINE "farflame packages 1\n"

/* ---- saving ---- */

struct saving {
	const struct file_index *index;
	FILE *file;
	uint64_t hash;
};

static void put_line(struct saving *saving, const char *line, size_t length)
{
	saving->hash = hash_bytes(line, length, saving->hash);
	fwrite(line, 1, length, saving->file);
}

static void save_package(void *context, const char *path, uint64_t fingerprint, int64_t first,
			 int64_t count)
{
	struct saving *saving = context;
	char line[LINE_ROOM];
	struct file_view view;
	int length = snprintf(line, sizeof(line), "package %016" PRIx64 " %s\n", fingerprint, path);

	if (length < 0 || (size_t)length >= sizeof(line) || strchr(path, '\n'))
		return; /* read again after a restart */
	put_line(saving, line, (size_t)length);
	for (int64_t i = first; i < first + count; i++) {
		file_index_view(saving->index, i, &view);
		put_line(saving, line,
			 package_member_format(&(struct package_member){.path = view.name,
									.id = view.id,
									.content = view.content},
					       line, sizeof(line)));
	}
}

static bool write_notes(FILE *file, const struct file_index *index)
{
	struct saving saving = {.index = index, .file = file, .hash = 1};

	put_line(&saving, FORMAT_LINE, strlen(FORMAT_LINE));
	file_index_each_package(index, save_package, &saving);
	fprintf(file, "end %016" PRIx64 "\n", saving.hash);
	return !fflush(file) && !ferror(file) && !fsync(fileno(file));
}

bool package_notes_save(const char *path, const struct file_index *index, struct error *err)
{
	char half[PATH_MAX];
	FILE *file;
	bool ok;

	if ((size_t)snprintf(half, sizeof(half), "%s.new", path) >= sizeof(half))
		return error_set(err, ERROR_LIMIT, "'%s' is too long", path);
	file = fopen(half, "we");
	if (!file)
		return error_set_system(err, errno, "write '%s'", half);
	ok = write_notes(file, index);
	ok = !fclose(file) && ok;
	if (ok && !rename(half, path))
		return true;
	error_set_system(err, errno, "write '%s'", path);
	unlink(half);
	return false;
}

/* ---- loading ---- */

static char *read_text(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text = NULL;
	struct stat stat;
	size_t got = 0;

	if (fd >= 0 && !fstat(fd, &stat) && stat.st_size > 0 && stat.st_size <= NOTES_BYTES_MAX)
		text = malloc((size_t)stat.st_size + 1);
	while (text && got < (size_t)stat.st_size) {
		ssize_t more = read(fd, text + got, (size_t)stat.st_size - got);

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	if (fd >= 0)
		close(fd);
	if (text)
		text[got] = '\0';
	*length = got;
	return text;
}

/* The line's package or member goes into the index. False: it is neither. */
static bool load_line(struct file_index *index, int64_t *package, char *line)
{
	struct package_member member;
	char *end;

	if (!strncmp(line, "package ", 8)) {
		uint64_t fingerprint = strtoull(line + 8, &end, 16);

		if (*end != ' ' || !end[1])
			return false;
		*package = file_index_add_folder(index, end + 1, true, fingerprint);
		return *package != FILE_INDEX_NONE;
	}
	return *package != FILE_INDEX_NONE && package_member_parse(line, &member) &&
	       file_index_add(index, *package, member.path, &member.id, member.content, 0);
}

static bool load_text(struct file_index *index, char *text)
{
	int64_t package = FILE_INDEX_NONE;
	uint64_t hash = 1;
	char *end;

	for (char *line = text; (end = strchr(line, '\n')); line = end + 1) {
		char *rest;

		if (!strncmp(line, "end ", 4))
			return strtoull(line + 4, &rest, 16) == hash && *rest == '\n' && !rest[1];
		hash = hash_bytes(line, (size_t)(end + 1 - line), hash);
		*end = '\0';
		if (line == text ? strncmp(line, FORMAT_LINE, strlen(FORMAT_LINE) - 1) != 0
				 : !load_line(index, &package, line))
			return false;
	}
	return false;
}

struct file_index *package_notes_load(const char *path)
{
	struct file_index *index;
	size_t length;
	char *text = read_text(path, &length);

	if (!text)
		return NULL;
	index = file_index_new();
	if (index && (!load_text(index, text) || !file_index_seal(index))) {
		file_index_free(index);
		index = NULL;
	}
	free(text);
	return index;
}
