/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/upkeep/folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 16384, PATH_ROOM = 4200 };

bool name_has_ending(const char *name, const char *ending)
{
	size_t length = strlen(name), wanted = strlen(ending);

	return length > wanted && !strcmp(name + length - wanted, ending);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool folder_names_each(const char *folder, const char *ending, folder_name_fn *fn, void *context,
		       struct error *err)
{
	char **names = calloc(NAMES_MAX, sizeof *names), path[PATH_ROOM];
	DIR *directory = names ? opendir(folder) : NULL;
	struct dirent *entry;
	size_t count = 0;
	bool ok = true;

	if (!directory) {
		error_set_system(err, errno, "read directory '%s'", folder);
		free(names);
		return false;
	}
	while ((entry = readdir(directory)) && count < NAMES_MAX)
		if (name_has_ending(entry->d_name, ending))
			count += (names[count] = strdup(entry->d_name)) != NULL;
	closedir(directory);
	if (count)
		qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		ok = ok && fn(context, path, names[i], err);
		free(names[i]);
	}
	free(names);
	return ok;
}
