/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/memory_map.h"

#include <string.h>

#include "common/hex.h"
#include "node-agent/kernel/stranger_reader.h"

enum { LINE_ROOM = MEMORY_PATH_MAX + 128 };

/* A line being read: the first thing that is wrong makes everything after it wrong. */
struct cursor {
	const char *at, *end;
	bool bad;
};

static char peek(const struct cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at : '\0';
}

static void expect(struct cursor *cursor, char c)
{
	if (peek(cursor) == c && cursor->at < cursor->end)
		cursor->at++;
	else
		cursor->bad = true;
}

static uint64_t read_number(struct cursor *cursor, unsigned base)
{
	uint64_t value = 0;
	bool any = false;

	for (; cursor->at < cursor->end; cursor->at++, any = true) {
		unsigned digit = (unsigned)hex_digit(*cursor->at);

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			cursor->bad = true;
	}
	if (!any)
		cursor->bad = true;
	return value;
}

/* "r-xp": the third letter says whether code may run here. */
static bool read_permissions(struct cursor *cursor)
{
	static const char *const letters[] = {"r-", "w-", "x-", "ps"};
	bool executable = cursor->end - cursor->at >= 4 && cursor->at[2] == 'x';

	for (int i = 0; i < 4; i++) {
		char c = peek(cursor);

		if (!c || !strchr(letters[i], c))
			cursor->bad = true;
		else
			cursor->at++;
	}
	return executable;
}

/* The kernel writes a newline in a path as \012, and nothing else; a backslash stays itself. */
static void read_path(struct cursor *cursor, char path[MEMORY_PATH_MAX])
{
	size_t length = 0;

	while (peek(cursor) == ' ')
		cursor->at++;
	for (const char *at = cursor->at; at < cursor->end; at++) {
		char c = *at;

		if (cursor->end - at > 3 && !memcmp(at, "\\012", 4)) {
			c = '\n';
			at += 3;
		}
		if (!c || length == MEMORY_PATH_MAX - 1) {
			length = 0; /* not a path that could be opened */
			break;
		}
		path[length++] = c;
	}
	path[length] = '\0';
	cursor->at = cursor->end;
}

bool memory_path_cut_deleted(char *path)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(path), cut = sizeof(suffix) - 1;

	if (length <= cut || strcmp(path + length - cut, suffix) != 0)
		return false;
	path[length - cut] = '\0';
	return true;
}

bool memory_path_is_dump(const char *path, uint32_t *pid)
{
	const char *name = strrchr(path, '/'), *at;
	uint64_t value = 0;

	if (!name || strncmp(name, "/jit-", 5) != 0)
		return false;
	for (at = name + 5; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	*pid = (uint32_t)value;
	return at > name + 5 && value <= UINT32_MAX && !strcmp(at, ".dump");
}

enum memory_kind memory_kind_of(const char *path, bool has_inode)
{
	/* shared anonymous memory has an inode of the kernel's own tmpfs */
	static const char *const unnamed[] = {"/dev/zero", "/anon_hugepage", "/SYSV"};
	uint32_t pid;

	if (!strcmp(path, "[vdso]"))
		return MEMORY_VDSO;
	if (!strcmp(path, "[uprobes]"))
		return MEMORY_UPROBE;
	if (!path[0] || !strncmp(path, "//", 2)) /* perf: "//anon", but also "//toolong" */
		return has_inode ? MEMORY_FILE : MEMORY_ANONYMOUS;
	if (path[0] != '/' || memory_path_is_dump(path, &pid))
		return MEMORY_ANONYMOUS;
	for (size_t i = 0; i < sizeof(unnamed) / sizeof(unnamed[0]); i++)
		if (!strncmp(path, unnamed[i], strlen(unnamed[i])))
			return MEMORY_ANONYMOUS;
	return MEMORY_FILE;
}

static bool read_row(struct cursor *cursor, struct memory_row *row)
{
	row->start = read_number(cursor, 16);
	expect(cursor, '-');
	row->end = read_number(cursor, 16);
	expect(cursor, ' ');
	row->is_executable = read_permissions(cursor);
	expect(cursor, ' ');
	row->file_offset = read_number(cursor, 16);
	expect(cursor, ' ');
	row->device_major = (uint32_t)read_number(cursor, 16);
	expect(cursor, ':');
	row->device_minor = (uint32_t)read_number(cursor, 16);
	expect(cursor, ' ');
	row->inode = read_number(cursor, 10);
	if (cursor->at < cursor->end)
		expect(cursor, ' ');
	if (cursor->bad || row->start >= row->end)
		return false;
	read_path(cursor, row->path);
	memory_path_cut_deleted(row->path);
	row->kind = memory_kind_of(row->path, row->inode != 0);
	return true;
}

enum memory_read memory_map_next(const char **text, const char *end, struct memory_row *row)
{
	struct cursor cursor = {.at = *text};
	const char *newline;

	if (*text >= end)
		return MEMORY_END;
	newline = memchr(*text, '\n', (size_t)(end - *text));
	cursor.end = newline ? newline : end;
	*text = newline ? newline + 1 : end;
	return read_row(&cursor, row) ? MEMORY_ROW : MEMORY_BAD;
}

bool memory_map_read(struct stranger_maps *maps, struct memory_row *row)
{
	char line[LINE_ROOM];
	const char *at;

	while ((at = stranger_maps_line(maps, line, sizeof line)))
		if (memory_map_next(&at, line + strlen(line), row) == MEMORY_ROW)
			return true;
	return false;
}
