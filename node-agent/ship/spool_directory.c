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
#include <unistd.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "node-agent/ship/spool_record.h"

enum { SLOT_BYTES = 512, SLOTS = 2, NAME_DIGITS = 16, NAME_BYTES = 32 };

static const char slot_magic[8] = "FFSTATE";
static const char ending[] = ".spool";

struct disk_state {
	char magic[8];
	uint32_t version, crc; /* of the rest */
	uint64_t turn, segment, at, handled, lost, refused, acknowledged;
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
	free(directory->segments);
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
	    le32toh(slot->version) != SPOOL_VERSION || le32toh(slot->crc) != state_crc(slot) ||
	    le64toh(slot->turn) <= directory->turn)
		return;
	directory->turn = le64toh(slot->turn);
	*state = (struct spool_state){
		.is_known = true,
		.segment = le64toh(slot->segment),
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
		.version = htole32(SPOOL_VERSION),
		.turn = htole64(directory->turn + 1),
		.segment = htole64(state->segment),
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

/* --- segments --- */

static void make_name(uint64_t number, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%016" PRIx64 "%s", number, ending);
}

static bool parse_name(const char *name, uint64_t *number)
{
	char again[NAME_BYTES];

	if (strlen(name) != NAME_DIGITS + sizeof ending - 1)
		return false;
	*number = strtoull(name, NULL, 16);
	make_name(*number, again);
	return !strcmp(name, again);
}

static bool add_segment(struct spool_directory *directory, uint64_t number, uint64_t bytes)
{
	if (directory->count == directory->capacity) {
		size_t capacity = directory->capacity ? directory->capacity * 2 : 64;
		struct spool_segment *segments = realloc(directory->segments,
							 capacity * sizeof *segments);

		if (!segments)
			return false;
		directory->segments = segments;
		directory->capacity = capacity;
	}
	directory->segments[directory->count++] = (struct spool_segment){number, bytes};
	directory->bytes += bytes;
	return true;
}

int spool_directory_open_segment(const struct spool_directory *directory, uint64_t number)
{
	char name[NAME_BYTES];

	make_name(number, name);
	return openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Files of other kinds, and of versions to come, stay as they are. */
static bool meet_segment(struct spool_directory *directory, uint64_t number)
{
	uint8_t header[SPOOL_HEADER_BYTES] = {0};
	int fd = spool_directory_open_segment(directory, number);
	struct stat status;
	bool ok = true;

	if (fd < 0)
		return true;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		goto out;
	if (pread(fd, header, sizeof header, 0) < 0)
		goto out;
	if (spool_header_version(header) > SPOOL_VERSION) {
		directory->newer_bytes += (uint64_t)status.st_size;
		log_warn("spool", "file=\"%s/%016" PRIx64 "%s\" is_of=a_newer_version it_is=left",
			 directory->path, number, ending);
		goto out;
	}
	ok = add_segment(directory, number, (uint64_t)status.st_size);
out:
	close(fd);
	return ok;
}

static int by_number(const void *a, const void *b)
{
	const struct spool_segment *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool list_segments(struct spool_directory *directory, struct error *err)
{
	int fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t number;
	bool ok = true;

	if (!listing) {
		if (fd >= 0)
			close(fd);
		return error_set_system(err, errno, "list '%s'", directory->path);
	}
	rewinddir(listing);
	while (ok && (entry = readdir(listing)))
		if (parse_name(entry->d_name, &number) && directory->count < 2 * SPOOL_SEGMENTS_MAX)
			ok = meet_segment(directory, number);
	closedir(listing);
	if (!ok)
		return error_set(err, ERROR_MEMORY, "no memory for the spool's list of segments");
	if (directory->count)
		qsort(directory->segments, directory->count, sizeof *directory->segments,
		      by_number);
	return true;
}

bool spool_directory_open(struct spool_directory *directory, struct spool_state *state,
			  struct error *err)
{
	struct spool_state found = {0};

	if (!open_directory(directory, err) || !lock(directory, err) ||
	    !open_state(directory, &found, err) || !list_segments(directory, err)) {
		spool_directory_close(directory);
		return false;
	}
	*state = found;
	return true;
}

bool spool_directory_is_gone(const struct spool_directory *directory, int segment_fd)
{
	struct stat status;

	return fstat(directory->fd, &status) < 0 || !status.st_nlink ||
	       fstat(directory->lock_fd, &status) < 0 || !status.st_nlink ||
	       (segment_fd >= 0 && (fstat(segment_fd, &status) < 0 || !status.st_nlink));
}

int spool_directory_new_segment(struct spool_directory *directory, uint64_t number)
{
	uint8_t header[SPOOL_HEADER_BYTES];
	char name[NAME_BYTES];
	ssize_t written;
	int fd, failure;

	make_name(number, name);
	fd = openat(directory->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	spool_header_encode(number, header);
	errno = 0;
	written = pwrite(fd, header, sizeof header, 0);
	if (written == (ssize_t)sizeof header && add_segment(directory, number, SPOOL_HEADER_BYTES))
		return fd;
	failure = written < 0 ? errno : written < (ssize_t)sizeof header ? ENOSPC : ENOMEM;
	close(fd);
	unlinkat(directory->fd, name, 0);
	errno = failure;
	return -1;
}

void spool_directory_remove_first(struct spool_directory *directory)
{
	char name[NAME_BYTES];

	if (!directory->count)
		return;
	make_name(directory->segments[0].number, name);
	unlinkat(directory->fd, name, 0);
	directory->bytes -= directory->segments[0].bytes;
	directory->count--;
	memmove(directory->segments, directory->segments + 1,
		directory->count * sizeof *directory->segments);
}
