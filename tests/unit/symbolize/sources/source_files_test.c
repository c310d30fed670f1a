/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of sources, and which of them lie below a directory; whole servers are asked in
 * tests/system/buildid_test.py. */
#include "symbol-server/symbolize/sources/source_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static void check_tidy(const char *path, const char *want)
{
	char tidy[SOURCE_PATH_MAX] = "";

	if (CHECK(source_path_tidy(path, tidy) == (want != NULL)) && want)
		CHECK_TEXT(tidy, want);
}

static void test_paths(void)
{
	char path[SOURCE_PATH_MAX + 8];

	check_tidy("/a/b.c", "/a/b.c");
	check_tidy("//a/./b//c/../d.c", "/a/b/d.c");
	check_tidy("/a/..", "/");
	check_tidy("/", "/");
	check_tidy("/...", "/...");
	check_tidy("/.a/..b", "/.a/..b");
	check_tidy("/..", NULL);
	check_tidy("/a/../../b", NULL);
	check_tidy("a/b", NULL);
	check_tidy("", NULL);
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	check_tidy(path, NULL);
	path[SOURCE_PATH_MAX - 1] = '\0';
	check_tidy(path, path);
}

static bool opens(struct source_files *files, const char *folder, const char *name)
{
	char path[SOURCE_PATH_MAX];
	struct error err = {0};
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = source_files_open(files, path, &err);
	CHECK((fd < 0) == (err.kind == ERROR_NOT_FOUND && *err.message));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void make_file(const char *folder, const char *name, mode_t mode)
{
	char path[SOURCE_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !fchmod(fd, mode) && !close(fd));
}

static void test_folders(void)
{
	char base[] = "/tmp/source-files-XXXXXX", one[64], other[64], command[80];
	const char *const folders[] = {one};
	struct source_files *files;
	struct error err = {0};

	CHECK(mkdtemp(base) && !chmod(base, 0755));
	snprintf(one, sizeof(one), "%s/one", base);
	snprintf(other, sizeof(other), "%s/one2", base);
	CHECK(!mkdir(one, 0755) && !mkdir(other, 0755));
	make_file(one, "a.c", 0644);
	make_file(one, "secret.c", 0640);
	make_file(other, "b.c", 0644);
	files = source_files_start(SOURCES_LOCAL, folders, 1, &err);
	CHECK(files && source_files_are_served(files, &err));
	CHECK(opens(files, one, "a.c"));
	CHECK(!opens(files, one, "secret.c"));
	CHECK(!opens(files, one, "none.c"));
	CHECK(!opens(files, other, "b.c")); /* it only begins like it */
	CHECK(!opens(files, base, "one"));
	source_files_stop(files);
	files = source_files_start(SOURCES_ALL, folders, 1, &err);
	CHECK(opens(files, one, "a.c") && opens(files, other, "b.c"));
	CHECK(!opens(files, one, "secret.c") && !opens(files, "/dev", "null"));
	CHECK(!chmod(base, 0700) && !opens(files, one, "a.c") && !chmod(base, 0755));
	source_files_stop(files);
	files = source_files_start(SOURCES_OFF, folders, 1, &err);
	CHECK(!source_files_are_served(files, &err) && !opens(files, one, "a.c"));
	source_files_stop(files);
	snprintf(command, sizeof(command), "rm -r %s", base);
	CHECK(!system(command));
}

int main(void)
{
	test_paths();
	test_folders();
	return checks_done();
}
