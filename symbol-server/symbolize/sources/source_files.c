/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/source_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-server/symbolize/sources/file_opener.h"

struct source_directory {
	char *path; /* tidy; "/" ends it where it is the root only */
	struct file_opener *opener;
};

struct source_files {
	enum source_files_mode mode;
	struct source_directory *directories;
	size_t count;
};

static void never_late(void *context, const struct build_id *id)
{
	(void)context, (void)id;
}

/* As debug information has paths, which is not always what links in them lead to. */
static bool add_directory(struct source_files *files, const char *path, struct error *err)
{
	struct source_directory *added = &files->directories[files->count++];
	char *whole = *path == '/' ? strdup(path) : realpath(path, NULL);
	char tidy[SOURCE_PATH_MAX];

	if (!whole || !source_path_tidy(whole, tidy)) {
		free(whole);
		return error_set(err, ERROR_NOT_FOUND, "--source-dir %.200s cannot be used", path);
	}
	free(whole);
	added->path = strdup(tidy);
	added->opener = file_opener_start(tidy, never_late, NULL, err);
	return added->path && added->opener;
}

struct source_files *source_files_start(enum source_files_mode mode, const char *const *directories,
					size_t count, struct error *err)
{
	static const char *const root[] = {"/"};
	struct source_files *files = calloc(1, sizeof(*files));
	bool ok;

	if (mode != SOURCES_LOCAL) {
		directories = root;
		count = mode == SOURCES_ALL;
	}
	if (files)
		files->directories = calloc(count + 1, sizeof(*files->directories));
	ok = files && files->directories;
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for directories of sources");
	else
		files->mode = mode;
	for (size_t i = 0; ok && i < count; i++)
		ok = add_directory(files, directories[i], err);
	if (ok)
		return files;
	source_files_stop(files);
	return NULL;
}

void source_files_stop(struct source_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->count; i++) {
		file_opener_stop(files->directories[i].opener);
		free(files->directories[i].path);
	}
	free(files->directories);
	free(files);
}

bool source_path_tidy(const char *path, char tidy[SOURCE_PATH_MAX])
{
	size_t length = 0;

	if (*path != '/')
		return false;
	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 2 && !memcmp(path, "..", 2)) {
			if (!length)
				return false;
			while (tidy[--length] != '/')
				;
		} else if (part && !(part == 1 && *path == '.')) {
			if (length + part + 2 > SOURCE_PATH_MAX)
				return false;
			tidy[length++] = '/';
			memcpy(tidy + length, path, part);
			length += part;
		}
		path += part;
	}
	if (!length)
		tidy[length++] = '/';
	tidy[length] = '\0';
	return true;
}

/* What of the path is below the directory; NULL: it is not. */
static const char *below(const struct source_directory *directory, const char *path)
{
	size_t length = strlen(directory->path);

	if (!strcmp(directory->path, "/"))
		length = 0;
	if (strncmp(path, directory->path, length) != 0 || path[length] != '/' || !path[length + 1])
		return NULL;
	return path + length + 1;
}

/* The directory's thread opens regular files only. */
static bool may_be_served(int fd, bool is_public, struct error *err)
{
	struct stat stat;

	if (!is_public || fstat(fd, &stat))
		return error_set(err, ERROR_NOT_FOUND,
				 "the source file is not one that everybody may read, by its mode "
				 "and its folders'");
	if (stat.st_size > SOURCE_BYTES_MAX)
		return error_set(err, ERROR_LIMIT, "the source file has more than %d MB",
				 SOURCE_BYTES_MAX >> 20);
	return true;
}

bool source_files_are_served(const struct source_files *files, struct error *err)
{
	return files->mode != SOURCES_OFF ||
	       error_set(err, ERROR_NOT_FOUND,
			 "source files are not served here: --sources is off");
}

int source_files_open(struct source_files *files, const char *path, struct error *err)
{
	bool is_below = false;

	for (size_t i = 0; i < files->count; i++) {
		const char *rest = below(&files->directories[i], path);
		bool is_public = false;
		int fd = -1;

		is_below |= rest != NULL;
		if (rest)
			fd = file_opener_open(files->directories[i].opener, rest, NULL, &is_public);
		if (fd < 0)
			continue;
		if (may_be_served(fd, is_public, err))
			return fd;
		close(fd);
		return -1;
	}
	if (is_below)
		error_set(err, ERROR_NOT_FOUND,
			  "there is no such source file on this machine, or its file system does "
			  "not answer");
	else
		error_set(err, ERROR_NOT_FOUND,
			  "the source file does not lie below a --source-dir or --symbol-dir");
	return -1;
}
