/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/spool_directory.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/array.h"
#include "common/crc32c.h"
#include "common/log.h"

enum {
	SLOT_BYTES = 512,
	SLOTS = 2,
	STATE_VERSION = 1,
	NAME_DIGITS = 16,
	NAME_BYTES = 32,
	BLOCK_BYTES = 4096,
};

static const char slot_magic[8] = "FFSTATE";
static const char ending[] = ".spool", unfinished[] = "new";

struct disk_state {
	char magic[8];
	uint32_t version, crc; /* of the rest */
	uint64_t turn, file, at, handled, lost, refused, acknowledged;
	uint8_t run[16];
};

void spool_directory_init(struct spool_directory *directory, const char *path)
{
	*directory =
		(struct spool_directory){.path = path, .fd = -1, .lock_fd = -1, .state_fd = -1};
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void spool_directory_close(struct spool_directory *directory)
{
	const char *path = directory->path;

	close_if_open(&directory->state_fd);
	close_if_open(&directory->lock_fd);
	close_if_open(&directory->fd);
	free(directory->files);
	spool_directory_init(directory, path);
}

/* --- who may use it --- */

/* What the next try would meet again is the caller's mistake; what may pass is the system's. */
static bool set_open_error(const char *path, int failure, struct error *err)
{
	if (failure == ELOOP)
		return error_set(err, ERROR_OPTION, "'%s' is a symbolic link", path);
	error_set_system(err, failure, "'%s'", path);
	if (failure == ENOTDIR || failure == ENOENT || failure == EACCES || failure == EPERM)
		err->kind = ERROR_OPTION;
	return false;
}

static bool check_owner(const struct spool_directory *directory, struct error *err)
{
	struct stat status;

	if (fstat(directory->fd, &status) < 0)
		return error_set_system(err, errno, "stat '%s'", directory->path);
	if (status.st_uid != geteuid())
		return error_set(err, ERROR_OPTION,
				 "'%s' belongs to user %u, it must be of the agent's user %u",
				 directory->path, (unsigned)status.st_uid, (unsigned)geteuid());
	if (status.st_mode & 077)
		return error_set(err, ERROR_OPTION,
				 "'%s' has mode %04o: nobody else may enter it (chmod 700)",
				 directory->path, (unsigned)status.st_mode & 07777);
	return true;
}

static bool open_directory(struct spool_directory *directory, struct error *err)
{
	int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat status;

	if (lstat(directory->path, &status) == 0 && S_ISLNK(status.st_mode))
		return set_open_error(directory->path, ELOOP, err);
	directory->fd = open(directory->path, how);
	if (directory->fd < 0 && errno == ENOENT) {
		if (mkdir(directory->path, 0700) < 0 && errno != EEXIST)
			return set_open_error(directory->path, errno, err);
		directory->fd = open(directory->path, how);
	}
	if (directory->fd < 0)
		return set_open_error(directory->path, errno, err);
	return check_owner(directory, err);
}

static bool lock(struct spool_directory *directory, struct error *err)
{
	directory->lock_fd = openat(directory->fd, "lock",
				    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (directory->lock_fd < 0)
		return error_set_system(err, errno, "'%s/lock'", directory->path);
	if (flock(directory->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return error_set_system(err, errno, "lock '%s/lock'", directory->path);
	return error_set(err, ERROR_CONFLICT, "'%s' is used by another agent", directory->path);
}

/* --- how far --- */

static uint32_t state_crc(const struct disk_state *slot)
{
	return crc32c(0, &slot->turn, sizeof *slot - offsetof(struct disk_state, turn));
}

static void take_slot(struct spool_directory *directory, const struct disk_state *slot,
		      struct spool_state *state)
{
	if (memcmp(slot->magic, slot_magic, sizeof slot->magic) ||
	    le32toh(slot->version) != STATE_VERSION || le32toh(slot->crc) != state_crc(slot) ||
	    le64toh(slot->turn) <= directory->turn)
		return;
	directory->turn = le64toh(slot->turn);
	*state = (struct spool_state){
		.is_known = true,
		.file = le64toh(slot->file),
		.at = le64toh(slot->at),
		.handled = le64toh(slot->handled),
		.lost = le64toh(slot->lost),
		.refused = le64toh(slot->refused),
		.acknowledged = le64toh(slot->acknowledged),
	};
	memcpy(state->run, slot->run, sizeof state->run);
}

static bool open_state(struct spool_directory *directory, struct spool_state *state,
		       struct error *err)
{
	uint8_t bytes[SLOTS * SLOT_BYTES] = {0};
	ssize_t got;

	directory->state_fd = openat(directory->fd, "state",
				     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (directory->state_fd < 0)
		return error_set_system(err, errno, "'%s/state'", directory->path);
	got = pread(directory->state_fd, bytes, sizeof bytes, 0);
	if (got < 0)
		return error_set_system(err, errno, "read '%s/state'", directory->path);
	*state = (struct spool_state){0};
	for (int i = 0; i < SLOTS; i++)
		take_slot(directory, (const struct disk_state *)(bytes + i * SLOT_BYTES), state);
	if (got && !state->is_known)
		log_warn("spool", "file=\"%s/state\" is=damaged what_was_sent_may_be=sent_again",
			 directory->path);
	/* All of it has its place on the disk before the disk is full. */
	if (got < (ssize_t)sizeof bytes &&
	    pwrite(directory->state_fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return error_set_system(err, errno ? errno : ENOSPC, "write '%s/state'",
					directory->path);
	return true;
}

bool spool_directory_put_state(struct spool_directory *directory, const struct spool_state *state,
			       bool is_synced)
{
	struct disk_state slot = {
		.version = htole32(STATE_VERSION),
		.turn = htole64(directory->turn + 1),
		.file = htole64(state->file),
		.at = htole64(state->at),
		.handled = htole64(state->handled),
		.lost = htole64(state->lost),
		.refused = htole64(state->refused),
		.acknowledged = htole64(state->acknowledged),
	};
	off_t at = (off_t)(directory->turn % SLOTS) * SLOT_BYTES;

	memcpy(slot.magic, slot_magic, sizeof slot.magic);
	memcpy(slot.run, state->run, sizeof slot.run);
	slot.crc = htole32(state_crc(&slot));
	if (pwrite(directory->state_fd, &slot, sizeof slot, at) != (ssize_t)sizeof slot)
		return false;
	directory->turn++;
	return !is_synced || fdatasync(directory->state_fd) == 0;
}

/* --- files --- */

static void make_name(uint64_t number, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%016" PRIx64 "%s", number, ending);
}

/* The highest numbers are nobody's: one can always be put behind the last. */
static bool parse_name(const char *name, uint64_t *number)
{
	char again[NAME_BYTES];

	if (strlen(name) != NAME_DIGITS + sizeof ending - 1)
		return false;
	*number = strtoull(name, NULL, 16);
	make_name(*number, again);
	return !strcmp(name, again) && *number < UINT64_MAX >> 8;
}

uint64_t spool_directory_cost(uint64_t length)
{
	return (length + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static bool has_room(struct spool_directory *directory)
{
	if (ARRAY_GROW(directory->files, directory->count, directory->capacity))
		return true;
	errno = ENOMEM;
	return false;
}

static void add_file(struct spool_directory *directory, uint64_t number, uint64_t bytes)
{
	directory->files[directory->count++] = (struct spool_file){number, bytes};
	directory->bytes += spool_directory_cost(bytes);
}

static int by_number(const void *a, const void *b)
{
	const struct spool_file *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool list_files(struct spool_directory *directory, struct error *err)
{
	int fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat status;
	uint64_t number;

	if (!listing) {
		if (fd >= 0)
			close(fd);
		return error_set_system(err, errno, "list '%s'", directory->path);
	}
	rewinddir(listing);
	while (directory->count < 2 * SPOOL_FILES_MAX && (entry = readdir(listing)))
		if (parse_name(entry->d_name, &number) &&
		    fstatat(directory->fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(status.st_mode) && has_room(directory))
			add_file(directory, number, (uint64_t)status.st_size);
	closedir(listing);
	if (directory->count)
		qsort(directory->files, directory->count, sizeof *directory->files, by_number);
	return true;
}

bool spool_directory_open(struct spool_directory *directory, struct spool_state *state,
			  struct error *err)
{
	if (!open_directory(directory, err) || !lock(directory, err) ||
	    !open_state(directory, state, err) || !list_files(directory, err)) {
		spool_directory_close(directory);
		return false;
	}
	unlinkat(directory->fd, unfinished, 0);
	return true;
}

bool spool_directory_is_gone(const struct spool_directory *directory)
{
	struct stat status;

	return fstat(directory->fd, &status) < 0 || !status.st_nlink ||
	       fstat(directory->lock_fd, &status) < 0 || !status.st_nlink;
}

/* False: errno. */
static bool write_file(int fd, struct bytes head, struct bytes body)
{
	const struct iovec parts[] = {{(void *)head.at, head.length},
				      {(void *)body.at, body.length}};
	ssize_t written = writev(fd, parts, 2);

	if (written >= 0 && written < (ssize_t)(head.length + body.length))
		errno = ENOSPC;
	return written == (ssize_t)(head.length + body.length);
}

bool spool_directory_put(struct spool_directory *directory, uint64_t number, struct bytes head,
			 struct bytes body)
{
	char name[NAME_BYTES];
	int fd, failure;
	bool ok;

	if (!has_room(directory))
		return false;
	make_name(number, name);
	fd = openat(directory->fd, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	ok = fd >= 0 && write_file(fd, head, body);
	failure = errno;
	if (fd >= 0 && close(fd) < 0 && ok) { /* some quotas are told of here */
		ok = false;
		failure = errno;
	}
	if (ok && renameat(directory->fd, unfinished, directory->fd, name) == 0) {
		add_file(directory, number, head.length + body.length);
		return true;
	}
	failure = ok ? errno : failure;
	unlinkat(directory->fd, unfinished, 0);
	errno = failure;
	return false;
}

static int open_file(const struct spool_directory *directory, const struct spool_file *file)
{
	char name[NAME_BYTES];

	make_name(file->number, name);
	return openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

bool spool_directory_sync(const struct spool_directory *directory, size_t newest)
{
	bool ok = true;

	for (size_t i = directory->count - newest; i < directory->count; i++) {
		int fd = open_file(directory, &directory->files[i]);

		ok &= fd < 0 ? errno == ENOENT : fdatasync(fd) == 0;
		if (fd >= 0)
			close(fd);
	}
	return (!newest || fsync(directory->fd) == 0) && ok;
}

const struct spool_file *spool_directory_first(const struct spool_directory *directory)
{
	return directory->passed < directory->count ? &directory->files[directory->passed] : NULL;
}

bool spool_directory_read(const struct spool_directory *directory, const struct spool_file *file,
			  struct buffer *content)
{
	int fd = open_file(directory, file), failure;
	uint8_t *room;
	ssize_t got;

	if (fd < 0)
		return false;
	buffer_clear(content);
	room = buffer_reserve(content, file->bytes);
	got = room ? read(fd, room, file->bytes) : -1;
	failure = room ? errno : file->bytes > content->limit ? EFBIG : ENOMEM;
	content->length = got > 0 ? (size_t)got : 0;
	close(fd);
	errno = failure;
	return got >= 0;
}

void spool_directory_pass_first(struct spool_directory *directory)
{
	uint64_t bytes = spool_directory_cost(directory->files[directory->passed++].bytes);

	directory->bytes -= bytes;
	directory->passed_bytes += bytes;
}

void spool_directory_remove_passed(struct spool_directory *directory)
{
	char name[NAME_BYTES];

	for (size_t i = 0; i < directory->passed; i++) {
		make_name(directory->files[i].number, name);
		unlinkat(directory->fd, name, 0);
	}
	directory->count -= directory->passed;
	if (directory->count)
		memmove(directory->files, directory->files + directory->passed,
			directory->count * sizeof *directory->files);
	directory->passed = directory->passed_bytes = 0;
}
