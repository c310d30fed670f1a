/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are one executable: copies of a golden file, as readelf shows it, and of the same
 * file changed in a place that its hash does not cover. */
#include "node-agent/processes/executables.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

#define LITTLE64 "tests/golden/elf/little64.elf"
#define GNU_HEX  "00112233445566778899aabbccddeeff01234567"

enum { FILE_BYTES = 64 << 10, UNHASHED = 20 << 10 };

static char directory[] = "/tmp/executables-test-XXXXXX";

/* The golden file with zeroes behind it, but for one byte. */
static int make_file(const char *name, mode_t mode, uid_t owner, char middle)
{
	static char bytes[FILE_BYTES];
	int from = open(LITTLE64, O_RDONLY | O_CLOEXEC), to;
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	memset(bytes, 0, sizeof bytes);
	CHECK(from >= 0 && to >= 0 && read(from, bytes, UNHASHED) > 0);
	bytes[UNHASHED] = middle;
	CHECK(write(to, bytes, sizeof bytes) == sizeof bytes);
	CHECK(!fchmod(to, mode) && (geteuid() || !fchown(to, owner, owner)));
	close(from);
	unlink(path);
	return to;
}

static struct executable_ref find(struct executables *executables, int fd)
{
	struct executable_ref ref = {0};

	CHECK_NUMBER(executables_from_file(executables, fd, "/lib/x.so", NULL, &ref),
		     EXECUTABLE_FOUND);
	return ref;
}

static uint32_t find_gnu(struct executables *executables)
{
	struct executable_ref ref = {0};
	struct build_id gnu;

	build_id_parse(&gnu, GNU_HEX, strlen(GNU_HEX));
	return executables_find_gnu(executables, &gnu, &ref) ? ref.index : 0;
}

static char middle_of(struct executables *executables, struct executable_ref ref)
{
	char byte = 0;

	CHECK(pread(executables_get(executables, ref)->fd, &byte, 1, UNHASHED) == 1);
	return byte;
}

/* The stranger's comes first, and anybody may write it. */
static void test_writable(void)
{
	struct executables *executables = executables_new(16, NULL);
	int stranger = make_file("a", 0777, 0, 's'), again = make_file("b", 0757, 0, 's');
	int own = make_file("c", 0755, 0, 'r'), copy = make_file("d", 0555, 0, 'r');
	struct executable_ref first = find(executables, stranger), other;

	CHECK_NUMBER(find(executables, again).index, first.index);
	CHECK_NUMBER(find_gnu(executables), 0);
	other = find(executables, own);
	CHECK_NUMBER(find(executables, copy).index, other.index);
	CHECK(build_id_equal(&executables_get(executables, first)->htlhash,
			     &executables_get(executables, other)->htlhash));
	CHECK_NUMBER(middle_of(executables, first), 's');
	CHECK(!executables_is_trusted(executables, first));
	if (geteuid()) {
		SKIP("needs root: a file of root's that nobody else may write");
	} else {
		CHECK(other.index != first.index);
		CHECK(executables_is_trusted(executables, other));
		CHECK_NUMBER(middle_of(executables, other), 'r');
		CHECK_NUMBER(find_gnu(executables), other.index);
		CHECK(!fchmod(copy, 0775)); /* known by its state, which is another now */
		CHECK_NUMBER(find(executables, copy).index, first.index);
	}
	close(stranger), close(again), close(own), close(copy);
	executables_free(executables);
}

static void test_owners(void)
{
	struct executables *executables = executables_new(16, NULL);
	int one = make_file("a", 0755, 1001, 'a'), other = make_file("b", 0755, 1002, 'b');
	struct executable_ref first = find(executables, one), second = find(executables, other);

	if (geteuid()) {
		SKIP("needs root: files of several users");
	} else {
		CHECK(first.index != second.index);
		CHECK_NUMBER(middle_of(executables, first), 'a');
		CHECK_NUMBER(middle_of(executables, second), 'b');
		CHECK_NUMBER(find_gnu(executables), 0);
	}
	close(one), close(other);
	executables_free(executables);
}

static void file_path(char path[128], int number)
{
	snprintf(path, 128, "%s/file%d", directory, number);
}

/* The golden file with another beginning of what follows it. */
static void make_numbered(int number)
{
	static char bytes[FILE_BYTES];
	int from = make_file("a", 0755, 0, 0), to;
	char path[128];

	file_path(path, number);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	CHECK(pread(from, bytes, sizeof bytes, 0) == sizeof bytes);
	memcpy(bytes + 3000, &number, sizeof number);
	CHECK(write(to, bytes, sizeof bytes) == sizeof bytes);
	close(from), close(to);
}

/* More files than descriptors: those used longest ago are closed, and opened again only when the
 * path still has that very file. */
static void test_reopen(void)
{
	enum { FILES = 100 };
	struct executable_ref refs[FILES] = {{0}};
	struct executables *executables;
	struct rlimit before, few;
	char path[128];

	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){150, before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	executables = executables_new(200, NULL);
	for (int i = 0; i < FILES; i++) {
		int fd;

		make_numbered(i);
		file_path(path, i);
		fd = open(path, O_PATH | O_CLOEXEC);
		executables_set_time(executables, (uint64_t)(i + 1) * 1000000000);
		CHECK_NUMBER(executables_from_file(executables, fd, path, NULL, &refs[i]),
			     EXECUTABLE_FOUND);
		close(fd);
	}
	CHECK_NUMBER(executables_by_index(executables, refs[0].index)->fd, -1);
	CHECK_NUMBER(executables_by_index(executables, refs[1].index)->fd, -1);
	file_path(path, 1);
	unlink(path);
	make_numbered(1); /* the same bytes, but who knows */
	CHECK(executables_reopen(executables, refs[0].index));
	CHECK(executables_by_index(executables, refs[0].index)->fd >= 0);
	CHECK(!executables_reopen(executables, refs[1].index));
	CHECK(!executables_reopen(executables, 10000));
	CHECK(executables_reopen(executables, refs[FILES - 1].index));
	for (int i = 0; i < FILES; i++) {
		file_path(path, i);
		unlink(path);
	}
	executables_free(executables);
	setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
	CHECK(mkdtemp(directory) != NULL);
	test_writable();
	test_owners();
	test_reopen();
	CHECK(!rmdir(directory));
	return checks_done();
}
