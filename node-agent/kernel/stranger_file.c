/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/stranger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 16 };

/* --- one file --- */

bool stranger_file_stat_at(int folder, const char *name, int flags, struct stat *st)
{
	struct statx found;

	memset(st, 0, sizeof *st);
	if (statx(folder, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
		  &found))
		return false;
	st->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
	st->st_ino = found.stx_ino;
	st->st_mode = found.stx_mode;
	st->st_uid = found.stx_uid;
	st->st_size = (off_t)found.stx_size;
	st->st_mtim = (struct timespec){found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec};
	st->st_ctim = (struct timespec){found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec};
	return true;
}

bool stranger_file_stat(int fd, struct stat *st)
{
	return stranger_file_stat_at(fd, "", AT_EMPTY_PATH, st);
}

/* Whose file system in user space it is: the user that serves it; virtiofs, which has the same
 * magic, is served by the virtual machine's host. False: it is not among ours. */
static bool server_of(dev_t device, uid_t *uid)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned major_number, minor_number;
	const char *at;
	char *line = NULL;
	size_t room = 0;
	bool is_found = false, is_of_host;
	int options;

	while (!is_found && mounts && getline(&line, &room, mounts) > 0) {
		at = strstr(line, " - fuse");
		is_of_host = !at && strstr(line, " - virtiofs ");
		if ((!at && !is_of_host) ||
		    sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2 ||
		    makedev(major_number, minor_number) != device)
			continue;
		if (is_of_host) {
			*uid = 0;
			is_found = true;
			continue;
		}
		options = 0;
		sscanf(at, " - %*s %*s %n", &options); /* the source is called as its user likes */
		at = options ? strstr(at + options, "user_id=") : NULL;
		is_found = at && sscanf(at, "user_id=%u", uid) == 1;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return is_found;
}

/* Its user decides whether and when a close(2) returns, and so whether the agent can end. */
static bool is_of_users_server(int path_fd, dev_t device)
{
	struct statfs system;
	uid_t uid;

	return (fstatfs(path_fd, &system) || system.f_type == FUSE_SUPER_MAGIC) &&
	       !(server_of(device, &uid) && !uid);
}

int stranger_file_reopen(int path_fd)
{
	char link[64];
	struct stat st;

	if (!stranger_file_stat(path_fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	if (is_of_users_server(path_fd, st.st_dev)) {
		errno = ENODEV;
		return -1;
	}
	snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
	return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool stranger_file_may_send(const struct stat *st)
{
	return S_ISREG(st->st_mode) &&
	       !((st->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) << 2 & ~st->st_mode);
}

/* --- who --- */

static bool is_ours(uid_t uid)
{
	return !uid || uid == geteuid();
}

/* bits: as for others, S_IROTH or S_IXOTH. Group's too: a group may be shut out of what all others
 * have, and the mask of an access control list stands in their place. */
static bool may(uid_t reader, const struct stat *st, mode_t bits)
{
	if (!reader)
		return true;
	if (reader == st->st_uid)
		return st->st_mode & bits << 6;
	return (st->st_mode & bits) && (st->st_mode & bits << 3);
}

static bool others_may_write(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

bool stranger_file_beside(const struct stat *running, const struct stat *folder,
			  struct file_search *search)
{
	*search = (struct file_search){
		.reader = running->st_uid, .owner = running->st_uid, .one_mount = true};
	if (others_may_write(running) || others_may_write(folder))
		search->reader = READER_ANYBODY;
	return is_ours(folder->st_uid) || folder->st_uid == running->st_uid;
}

/* --- the walk --- */

struct walk {
	const struct file_search *search;
	int at;              /* O_PATH; the caller's while it is the folder begun with */
	int begin;           /* that folder */
	char rest[PATH_MAX]; /* names still to go */
	unsigned links;
};

static int refuse(int why)
{
	errno = why;
	return -1;
}

static void move_to(struct walk *walk, int fd)
{
	if (walk->at != walk->begin)
		close(walk->at);
	walk->at = fd;
}

/* 0, or why the folder, link or file may not be used. */
static int refusal(const struct file_search *search, const struct stat *st)
{
	const bool is_folder = S_ISDIR(st->st_mode), is_link = S_ISLNK(st->st_mode);

	if (is_link && !search->follows_links)
		return ELOOP;
	if (!is_folder && !is_link && !S_ISREG(st->st_mode))
		return EINVAL;
	if (search->follows_links ? !is_ours(st->st_uid)
				  : search->owner != OWNER_ANYBODY && !is_ours(st->st_uid) &&
					    st->st_uid != search->owner)
		return EPERM;
	if (is_link)
		return 0;
	if (search->follows_links && others_may_write(st) && !(is_folder && st->st_mode & S_ISVTX))
		return EPERM;
	return may(search->reader, st, is_folder ? S_IXOTH : S_IROTH) ? 0 : EACCES;
}

/* The next name of the rest; NULL: there is none, or it is too long. */
static const char *take_name(struct walk *walk, char name[NAME_MAX + 1])
{
	char *begin = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(begin, "/");

	if (!length || length > NAME_MAX)
		return NULL;
	memcpy(name, begin, length);
	name[length] = '\0';
	memmove(walk->rest, begin + length, strlen(begin + length) + 1);
	return name;
}

static int open_name(const struct walk *walk, const char *name)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	if (walk->search->one_mount)
		how.resolve |= RESOLVE_NO_XDEV;
	if (strcmp(name, "..") != 0)
		return (int)syscall(SYS_openat2, walk->at, name, &how, sizeof how);
	return walk->links ? openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
			   : refuse(EXDEV);
}

/* The link's text takes its place in the path. */
static bool follow(struct walk *walk, int link)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(link, "", text, sizeof text);
	size_t rest = strlen(walk->rest);
	int root;

	if (length <= 0 || ++walk->links > LINKS_MAX ||
	    (size_t)length + rest >= sizeof walk->rest) {
		errno = ELOOP;
		return false;
	}
	if (text[0] == '/') {
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return false;
		move_to(walk, root);
	}
	memmove(walk->rest + length, walk->rest, rest + 1);
	memcpy(walk->rest, text, (size_t)length);
	return true;
}

/* One name further: 0, or why not. *found: the file, once it is there; the caller's. */
static int step(struct walk *walk, int *found)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int fd, why;

	if (!take_name(walk, name))
		return EINVAL; /* the path ends at a folder */
	fd = open_name(walk, name);
	if (fd < 0)
		return errno;
	why = stranger_file_stat(fd, &st) ? refusal(walk->search, &st) : errno;
	if (!why && S_ISDIR(st.st_mode)) {
		move_to(walk, fd);
		return 0;
	}
	if (!why && S_ISREG(st.st_mode) && walk->rest[0])
		why = ENOTDIR;
	if (!why && S_ISREG(st.st_mode)) {
		*found = fd;
		return 0;
	}
	if (!why && !follow(walk, fd))
		why = errno;
	close(fd);
	return why;
}

int stranger_file_find(int folder, const char *path, const struct file_search *search)
{
	struct walk walk = {.search = search, .at = folder, .begin = folder};
	int found = -1, why = 0;
	struct stat st;

	if (strlen(path) >= sizeof walk.rest)
		return refuse(ENAMETOOLONG);
	if (!stranger_file_stat(folder, &st))
		return -1;
	why = S_ISDIR(st.st_mode) ? refusal(search, &st) : ENOTDIR;
	if (why)
		return refuse(why);
	strcpy(walk.rest, path);
	while (found < 0 && !why)
		why = step(&walk, &found);
	move_to(&walk, folder);
	errno = why;
	return found;
}

int stranger_file_open(int folder, const char *path, const struct file_search *search)
{
	int path_fd = stranger_file_find(folder, path, search), fd, why;

	if (path_fd < 0)
		return -1;
	fd = stranger_file_reopen(path_fd);
	why = errno;
	close(path_fd);
	errno = why;
	return fd;
}

int stranger_file_folder(int fd, char path[PATH_MAX])
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	char link[40], name[NAME_MAX + 1];
	struct stat open_one, named;
	ssize_t length;
	char *slash;
	int folder;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, PATH_MAX - 1);
	path[length > 0 && path[0] == '/' ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash || strlen(slash + 1) > NAME_MAX) {
		path[0] = '\0';
		return refuse(ENOENT);
	}
	strcpy(name, slash + 1);
	*slash = '\0';
	folder = (int)syscall(SYS_openat2, AT_FDCWD, *path ? path : "/", &how, sizeof how);
	if (folder < 0)
		return -1;
	if (stranger_file_stat(fd, &open_one) &&
	    stranger_file_stat_at(folder, name, AT_SYMLINK_NOFOLLOW, &named) &&
	    open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino)
		return folder;
	close(folder);
	return refuse(ENOENT);
}

const char *stranger_file_why(int error)
{
	switch (error) {
	case ELOOP:
		return "a symbolic link leads there";
	case EXDEV:
		return "it leads out of its folder";
	case EACCES:
		return "its reader could not read it";
	case EPERM:
		return "it is another user's, or others may write it";
	case EINVAL:
		return "it is no regular file";
	case ENODEV:
		return "a user's process serves its file system";
	default:
		return strerror(error);
	}
}
