/* SPDX-License-Identifier: Apache-2.0 */
/* A tree with everything that a stranger may put where a file is looked for. As root its files are
 * other users' too; else they are all the user's own and those rows are skipped. */
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_file.h"
#include "tests/unit/shell.h"

enum { NOBODY = 65534, OTHER = 65533 };

static char directory[] = "/tmp/farflame_stranger_XXXXXX";

static const char make[] =
	"set -e; cd '%s'; chmod 755 .\n"
	"mkdir open closed tree shared; echo text > open/file; echo text > closed/file; chmod 700 "
	"closed\n"
	"echo text > open/mine; chmod 600 open/mine; echo text > open/odd; chmod 604 open/odd\n"
	"ln -s file open/link; ln -s ../closed open/way; mkfifo open/pipe; mkdir open/folder\n"
	"ln -s ../open/file tree/up; ln -s $PWD/tree/up tree/far; ln -s loop tree/loop\n"
	"ln -s ../shared/file tree/shared; echo text > shared/file; chmod 777 shared\n"
	"ln -s ../open/mine tree/mine; echo text > tree/soft; chmod 666 tree/soft\n";

static const char chown_some[] = "set -e; cd '%s'; mkdir theirs; echo text > theirs/file\n"
				 "echo text > theirs/secret; chmod 600 theirs/secret\n"
				 "ln -s ../theirs/file tree/theirs; ln -s file open/hers\n"
				 "mknod open/device c 1 3; chmod 600 open/device\n"
				 "chown -h 65534 theirs theirs/* open/hers\n";

struct row {
	const char *folder, *path;
	uid_t reader, owner;
	bool follows_links;
	int want; /* errno */
};

static const struct row rows[] = {
	{"open", "file", READER_ANYBODY, OWNER_ANYBODY, false, 0},
	{".", "/open//./file", READER_ANYBODY, OWNER_ANYBODY, false, 0},
	{"open", "none", READER_ANYBODY, OWNER_ANYBODY, false, ENOENT},
	{"open", "file/more", READER_ANYBODY, OWNER_ANYBODY, false, ENOTDIR},
	{"open/file", "file", READER_ANYBODY, OWNER_ANYBODY, false, ENOTDIR},
	{"open", "link", READER_ANYBODY, OWNER_ANYBODY, false, ELOOP},
	{"open", "way/file", READER_ANYBODY, OWNER_ANYBODY, false, ELOOP},
	{"open", "../open/file", READER_ANYBODY, OWNER_ANYBODY, false, EXDEV},
	{"open", "pipe", READER_ANYBODY, OWNER_ANYBODY, false, EINVAL},
	{"open", "folder", READER_ANYBODY, OWNER_ANYBODY, false, EINVAL},
	{"open", "mine", READER_ANYBODY, OWNER_ANYBODY, false, EACCES},
	{"open", "odd", READER_ANYBODY, OWNER_ANYBODY, false, EACCES},
	{"open", "mine", 0, OWNER_ANYBODY, false, 0},
	{".", "closed/file", READER_ANYBODY, OWNER_ANYBODY, false, EACCES},
	{"closed", "file", READER_ANYBODY, OWNER_ANYBODY, false, EACCES},
	{"closed", "file", 0, OWNER_ANYBODY, false, 0},
	{"tree", "up", READER_ANYBODY, OWNER_ANYBODY, true, 0},
	{"tree", "far", READER_ANYBODY, OWNER_ANYBODY, true, 0},
	{"tree", "loop", READER_ANYBODY, OWNER_ANYBODY, true, ELOOP},
	{"tree", "shared", READER_ANYBODY, OWNER_ANYBODY, true, EPERM},
	{"tree", "soft", READER_ANYBODY, OWNER_ANYBODY, true, EPERM},
	{"tree", "mine", READER_ANYBODY, OWNER_ANYBODY, true, EACCES},
	{"tree", "mine", 0, OWNER_ANYBODY, true, 0},
};

static const struct row root_rows[] = {
	{"open", "device", 0, OWNER_ANYBODY, false, EINVAL},
	{"open", "mine", NOBODY, NOBODY, false, EACCES},
	{"theirs", "file", NOBODY, NOBODY, false, 0},
	{"theirs", "secret", NOBODY, NOBODY, false, 0},
	{"theirs", "secret", READER_ANYBODY, NOBODY, false, EACCES},
	{"theirs", "file", READER_ANYBODY, OTHER, false, EPERM},
	{".", "theirs/file", READER_ANYBODY, 0, false, EPERM},
	{".", "theirs/file", READER_ANYBODY, OWNER_ANYBODY, false, 0},
	{"tree", "theirs", READER_ANYBODY, OWNER_ANYBODY, true, EPERM},
	{"open", "hers", READER_ANYBODY, OWNER_ANYBODY, true, EPERM},
};

static void check_rows(const struct row *row, size_t count)
{
	char path[256], text[5];

	for (; count--; row++) {
		const struct file_search search = {row->reader, row->owner, row->follows_links,
						   false};
		int folder, fd, why;

		snprintf(path, sizeof path, "%s/%s", directory, row->folder);
		folder = open(path, O_PATH);
		errno = 0;
		fd = stranger_file_open(folder, row->path, &search);
		why = fd < 0 ? errno : 0;
		if (why != row->want)
			printf("# %s %s: %s\n", row->folder, row->path, stranger_file_why(why));
		CHECK_NUMBER(why, row->want);
		if (fd >= 0)
			CHECK(pread(fd, text, 5, 0) == 5 && !memcmp(text, "text\n", 5));
		if (fd >= 0)
			close(fd);
		close(folder);
	}
}

static bool may_send(mode_t mode)
{
	return stranger_file_may_send(&(struct stat){.st_mode = mode});
}

static void check_sending(void)
{
	CHECK(may_send(S_IFREG | 0755) && may_send(S_IFREG | 0644) && may_send(S_IFREG | 0700));
	CHECK(may_send(S_IFREG | 0750) && may_send(S_IFREG | 0600) && may_send(S_IFREG | 04755));
	CHECK(!may_send(S_IFREG | 04711) && !may_send(S_IFREG | 0711) && !may_send(S_IFREG | 0751));
	CHECK(!may_send(S_IFREG | 0111) && !may_send(S_IFREG | 0710) && !may_send(S_IFIFO | 0755));
}

static uid_t reader_of(mode_t file_mode, uid_t folder_uid, mode_t folder_mode, bool *is_taken)
{
	const struct stat file = {.st_uid = NOBODY, .st_mode = S_IFREG | file_mode};
	const struct stat folder = {.st_uid = folder_uid, .st_mode = S_IFDIR | folder_mode};
	struct file_search search;

	*is_taken = stranger_file_beside(&file, &folder, &search);
	CHECK(search.owner == NOBODY && !search.follows_links);
	return search.reader;
}

static void check_beside(void)
{
	bool is_taken;

	CHECK(reader_of(0755, NOBODY, 0755, &is_taken) == NOBODY && is_taken);
	CHECK(reader_of(0755, 0, 0755, &is_taken) == NOBODY && is_taken);
	CHECK(reader_of(0755, 0, 01777, &is_taken) == READER_ANYBODY && is_taken);
	CHECK(reader_of(0775, NOBODY, 0755, &is_taken) == READER_ANYBODY && is_taken);
	reader_of(0755, OTHER, 0755, &is_taken);
	CHECK(!is_taken);
}

/* What is mounted below the folder is another file system's. */
static void check_mount(void)
{
	struct file_search search = {READER_ANYBODY, OWNER_ANYBODY, false, false};
	char path[256];
	int folder, fd;

	if (!shell("set -e; cd '%s/open/folder'; mount -t tmpfs -o mode=755 none . 2>/dev/null\n"
		   "cd ../folder; echo text > file",
		   directory)) {
		SKIP("nothing can be mounted here");
		return;
	}
	snprintf(path, sizeof path, "%s/open", directory);
	folder = open(path, O_PATH);
	fd = stranger_file_open(folder, "folder/file", &search);
	CHECK(fd >= 0);
	close(fd);
	search.one_mount = true;
	errno = 0;
	CHECK(stranger_file_open(folder, "folder/file", &search) < 0 && errno == EXDEV);
	fd = stranger_file_open(folder, "file", &search);
	CHECK(fd >= 0);
	close(fd);
	close(folder);
	CHECK(shell("umount '%s/open/folder'", directory));
}

static void check_folder(void)
{
	char path[PATH_MAX], want[128];
	struct stat st;
	int fd, folder;

	snprintf(path, sizeof path, "%s/open/file", directory);
	snprintf(want, sizeof want, "%s/open", directory);
	fd = open(path, O_RDONLY);
	folder = stranger_file_folder(fd, path);
	CHECK(folder >= 0 && stranger_file_stat(folder, &st) && S_ISDIR(st.st_mode));
	CHECK_TEXT(path, want);
	close(folder);
	CHECK(shell("cd '%s'; mv open/file open/moved; cp open/moved open/file", directory));
	CHECK((folder = stranger_file_folder(fd, path)) >= 0);
	close(folder);
	CHECK(shell("cd '%s'; rm open/moved; echo text > 'open/moved (deleted)'", directory));
	CHECK(stranger_file_folder(fd, path) < 0);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	CHECK(stranger_file_reopen(fd) < 0 && errno == EINVAL);
	close(fd);
}

int main(void)
{
	umask(022);
	if (!mkdtemp(directory) || !shell(make, directory))
		return 1;
	check_rows(rows, sizeof rows / sizeof *rows);
	if (geteuid() == 0 && shell(chown_some, directory))
		check_rows(root_rows, sizeof root_rows / sizeof *root_rows);
	else
		SKIP("files of other users: needs root");
	check_mount();
	check_sending();
	check_beside();
	check_folder();
	CHECK(shell("rm -r '%s'", directory));
	return checks_done();
}
