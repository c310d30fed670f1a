/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are one executable: copies of a golden file, as readelf shows it, and of the same
 * file changed in a place that its hash does not cover. */
#include "node-agent/processes/file_identities.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/mman.h>
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

static struct executable_ref find(struct file_identities *identities, int fd)
{
	struct executable_ref ref = {0};
	uint32_t asked;

	CHECK_NUMBER(file_identities_find(identities, fd, "/lib/x.so", false, NULL, &ref, &asked),
		     FILE_FOUND);
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
	struct file_identities *identities = file_identities_new(32, executables, NULL);
	int stranger = make_file("a", 0777, 0, 's'), again = make_file("b", 0757, 0, 's');
	int own = make_file("c", 0755, 0, 'r'), copy = make_file("d", 0555, 0, 'r');
	struct executable_ref first = find(identities, stranger), other;

	CHECK_NUMBER(find(identities, again).index, first.index);
	CHECK_NUMBER(find_gnu(executables), 0);
	other = find(identities, own);
	CHECK_NUMBER(find(identities, copy).index, other.index);
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
		CHECK_NUMBER(find(identities, copy).index, first.index);
	}
	close(stranger), close(again), close(own), close(copy);
	file_identities_free(identities);
	executables_free(executables);
}

static void test_owners(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct file_identities *identities = file_identities_new(32, executables, NULL);
	int one = make_file("a", 0755, 1001, 'a'), other = make_file("b", 0755, 1002, 'b');
	struct executable_ref first = find(identities, one), second = find(identities, other);

	if (geteuid()) {
		SKIP("needs root: files of several users");
	} else {
		CHECK(first.index != second.index);
		CHECK_NUMBER(middle_of(executables, first), 'a');
		CHECK_NUMBER(middle_of(executables, second), 'b');
		CHECK_NUMBER(find_gnu(executables), 0);
	}
	close(one), close(other);
	file_identities_free(identities);
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
	struct file_identities *identities;
	struct rlimit before, few;
	char path[128];

	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){150, before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	executables = executables_new(200, NULL);
	identities = file_identities_new(400, executables, NULL);
	for (int i = 0; i < FILES; i++) {
		uint32_t asked;
		int fd;

		make_numbered(i);
		file_path(path, i);
		fd = open(path, O_PATH | O_CLOEXEC);
		executables_set_time(executables, (uint64_t)(i + 1) * 1000000000);
		CHECK_NUMBER(
			file_identities_find(identities, fd, path, false, NULL, &refs[i], &asked),
			FILE_FOUND);
		close(fd);
	}
	CHECK_NUMBER(executables_by_index(executables, refs[0].index)->fd, -1);
	CHECK_NUMBER(executables_by_index(executables, refs[1].index)->fd, -1);
	file_path(path, 1);
	unlink(path);
	make_numbered(1); /* the same bytes, but who knows */
	CHECK(file_identities_reopen(identities, "/proc", refs[0].index));
	CHECK(executables_by_index(executables, refs[0].index)->fd >= 0);
	CHECK(!file_identities_reopen(identities, "/proc", refs[1].index));
	CHECK(!file_identities_reopen(identities, "/proc", 10000));
	CHECK(file_identities_reopen(identities, "/proc", refs[FILES - 1].index));
	executables_set_time(executables, (uint64_t)(FILES + EXECUTABLE_IDLE_S) * 1000000000);
	executables_close_idle(executables);
	CHECK_NUMBER(executables_by_index(executables, refs[FILES - 2].index)->fd, -1);
	CHECK(executables_by_index(executables, refs[FILES - 1].index)->fd >= 0);
	CHECK(file_identities_reopen(identities, "/proc", refs[FILES - 2].index));
	for (int i = 0; i < FILES; i++) {
		file_path(path, i);
		unlink(path);
	}
	file_identities_free(identities);
	executables_free(executables);
	setrlimit(RLIMIT_NOFILE, &before);
}

/* --- a reader that answers later --- */

static struct {
	uint32_t number; /* the last question's; 0: none */
	unsigned count;
	bool refuses;
} asked_of;

static bool take_question(void *context, uint32_t number, int fd)
{
	struct stat st;

	(void)context;
	if (asked_of.refuses)
		return false;
	asked_of.number = number;
	asked_of.count++;
	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static struct file_identities *new_asking(struct executables *executables)
{
	static const struct file_reader reader = {.ask = take_question};
	struct file_identities *identities = file_identities_new(32, executables, NULL);

	file_identities_set_reader(identities, &reader);
	memset(&asked_of, 0, sizeof asked_of);
	return identities;
}

static enum file_found look(struct file_identities *identities, int fd, const char *path,
			    uint32_t *asked)
{
	struct executable_ref ref = {0};

	return file_identities_find(identities, fd, path, false, NULL, &ref, asked);
}

static const struct file_content *content_of(int fd)
{
	static struct file_content content;

	CHECK(file_content_read(fd, &content, NULL));
	return &content;
}

/* Nothing is waited for; equal files ask once; each question is answered once. */
static void test_asked(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct file_identities *identities = new_asking(executables);
	int fd = make_file("a", 0755, 0, 0);
	struct executable_ref ref = {0};
	struct build_id other;
	uint32_t asked = 0, again = 0;

	CHECK_NUMBER(look(identities, fd, "/lib/x.so", &asked), FILE_ASKED);
	CHECK_NUMBER(look(identities, fd, "/lib/y.so", &again), FILE_ASKED);
	CHECK(asked && asked == again && asked == asked_of.number);
	CHECK_NUMBER(asked_of.count, 1);
	CHECK_NUMBER(file_identities_outcome(identities, asked, NULL, &ref), FILE_ASKED);
	file_identities_answer(identities, asked + 1, content_of(fd), false);
	CHECK_NUMBER(file_identities_answered(identities), 0);
	file_identities_answer(identities, asked, content_of(fd), false);
	file_identities_answer(identities, asked, NULL, true);
	CHECK_NUMBER(file_identities_answered(identities), 1);
	CHECK_NUMBER(file_identities_outcome(identities, asked, NULL, &ref), FILE_FOUND);
	CHECK(executables_get(executables, ref)->fd >= 0);
	build_id_parse(&other, "0011223344", 10);
	CHECK_NUMBER(file_identities_outcome(identities, asked, &other, &ref), FILE_OTHER);
	CHECK_NUMBER(file_identities_outcome(identities, 0, NULL, &ref), FILE_FAILED);
	CHECK_NUMBER(look(identities, fd, "/lib/x.so", &again), FILE_FOUND);
	CHECK(pwrite(fd, "", 1, UNHASHED) == 1); /* it was changed: another file */
	CHECK_NUMBER(look(identities, fd, "/lib/x.so", &again), FILE_ASKED);
	CHECK_NUMBER(asked_of.count, 2);
	close(fd);
	file_identities_free(identities); /* with a question open */
	executables_free(executables);
}

static void test_not_code(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct file_identities *identities = new_asking(executables);
	int jit = memfd_create("jit", MFD_CLOEXEC), image = memfd_create("image", MFD_CLOEXEC);
	struct executable_ref ref = {0};
	uint32_t asked, again;

	CHECK(write(jit, "MZ", 2) == 2 && write(image, "MZZ", 3) == 3);
	CHECK_NUMBER(look(identities, jit, "/memfd:jit", &asked), FILE_ASKED);
	file_identities_answer(identities, asked, content_of(jit), false);
	CHECK_NUMBER(file_identities_outcome(identities, asked, NULL, &ref), FILE_NOT_CODE);
	CHECK_NUMBER(look(identities, jit, "/memfd:jit", &again), FILE_NOT_CODE);
	CHECK_NUMBER(look(identities, image, "/lib/x.dll", &asked), FILE_ASKED);
	file_identities_answer(identities, asked, content_of(image), false);
	CHECK_NUMBER(file_identities_outcome(identities, asked, NULL, &ref), FILE_FOUND);
	CHECK(executables_get(executables, ref)->is_raw &&
	      executables_get(executables, ref)->fd < 0);
	close(jit), close(image);
	file_identities_free(identities);
	executables_free(executables);
}

/* What is not to be read is left alone, longer each time; what hangs, with all of its device. */
static void test_back_off(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct file_identities *identities = new_asking(executables);
	int one = make_file("a", 0755, 0, 0), other = make_file("b", 0755, 0, 1);
	uint32_t asked, again, wait_s = 0, now_s = 100;

	asked_of.refuses = true;
	CHECK_NUMBER(look(identities, one, "/a", &asked), FILE_ASKED);
	CHECK_NUMBER(asked, 0);
	asked_of.refuses = false;
	for (int i = 0; i < 12; i++) {
		executables_set_time(executables, now_s * UINT64_C(1000000000));
		CHECK_NUMBER(look(identities, one, "/a", &asked), FILE_ASKED);
		file_identities_answer(identities, asked, NULL, false);
		wait_s = 1u << (i < 9 ? i : 9);
		executables_set_time(executables, (now_s += wait_s - 1) * UINT64_C(1000000000));
		CHECK_NUMBER(look(identities, one, "/a", &again), FILE_FAILED);
		now_s++;
	}
	executables_set_time(executables, now_s * UINT64_C(1000000000));
	CHECK_NUMBER(look(identities, one, "/a", &asked), FILE_ASKED);
	file_identities_answer(identities, asked, NULL, true);
	CHECK_NUMBER(look(identities, other, "/b", &again), FILE_FAILED);
	executables_set_time(executables, (now_s + 1) * UINT64_C(1000000000));
	CHECK_NUMBER(look(identities, other, "/b", &asked), FILE_ASKED);
	file_identities_answer(identities, asked, content_of(other), false);
	CHECK_NUMBER(look(identities, other, "/b", &again), FILE_FOUND);
	CHECK_NUMBER(file_identities_counters(identities)->hung, 1);
	CHECK_NUMBER(file_identities_counters(identities)->failed, 13);
	close(one), close(other);
	file_identities_free(identities);
	executables_free(executables);
}

int main(void)
{
	CHECK(mkdtemp(directory) != NULL);
	test_writable();
	test_owners();
	test_reopen();
	test_asked();
	test_not_code();
	test_back_off();
	CHECK(!rmdir(directory));
	return checks_done();
}
