/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that looks like /proc and /sys to the code under test. */
#ifndef TESTS_UNIT_PROCESSES_FAKE_PROC_H
#define TESTS_UNIT_PROCESSES_FAKE_PROC_H

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fake_root[64];
static char fake_proc[80]; /* fake_root/proc */

static void fake_make(void)
{
	strcpy(fake_root, "/tmp/fake-proc-XXXXXX");
	if (!mkdtemp(fake_root))
		abort();
	snprintf(fake_proc, sizeof fake_proc, "%s/proc", fake_root);
}

static void fake_path(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", fake_root, name);
	for (char *slash = path + strlen(fake_root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* name is relative, folders are made. */
static void fake_bytes(const char *name, const void *bytes, size_t length)
{
	char path[PATH_MAX];
	FILE *file;

	fake_path(path, name);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
		abort();
}

__attribute__((format(printf, 2, 3), unused)) static void fake_file(const char *name,
								    const char *format, ...)
{
	static char text[1 << 16];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fake_bytes(name, text, strlen(text));
}

/* The process is of the user that runs the test. */
__attribute__((unused)) static void fake_status(uint32_t tgid)
{
	char name[64];

	snprintf(name, sizeof name, "proc/%u/status", tgid);
	fake_file(name, "Name:\ta\nUid:\t%u\t%u\t%u\t%u\n", getuid(), getuid(), getuid(), getuid());
}

__attribute__((unused)) static void fake_link(const char *name, const char *target)
{
	char path[PATH_MAX];

	fake_path(path, name);
	unlink(path);
	if (symlink(target, path))
		abort();
}

__attribute__((unused)) static void fake_remove(const char *name)
{
	char path[PATH_MAX];

	fake_path(path, name);
	unlink(path);
}

static int fake_remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void fake_clean(void)
{
	nftw(fake_root, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
