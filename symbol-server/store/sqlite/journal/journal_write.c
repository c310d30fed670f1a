/* SPDX-License-Identifier: Apache-2.0 */
/* Groups into segments, past the page cache; files made ahead. */
#include "symbol-server/store/sqlite/journal/journal_files.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Zeros, so that later writes change no metadata and fdatasync is one disk write. */
static bool fill(int fd, uint32_t bytes, struct error *err)
{
	static const uint8_t zeros[1 << 16];

	for (off_t at = 0; at < (off_t)bytes; at += (off_t)sizeof zeros)
		if (pwrite(fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
			return error_set_system(err, errno ? errno : ENOSPC,
						"make room for a journal segment of %u MiB",
						bytes >> 20);
	if (fsync(fd))
		return error_set_system(err, errno, "write a journal segment");
	return true;
}

static bool make_file(const char *path, uint32_t bytes, struct error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool ok;

	if (fd < 0)
		return error_set_system(err, errno, "make '%s'", path);
	ok = fill(fd, bytes, err);
	close(fd);
	if (!ok)
		unlink(path);
	return ok;
}

/* tmpfs and some network file systems refuse O_DIRECT. */
static int open_direct(const char *path)
{
	int fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);

	return fd >= 0 || errno != EINVAL ? fd : open(path, O_WRONLY | O_CLOEXEC);
}

static bool write_all(int fd, const uint8_t *bytes, size_t length, uint64_t offset,
		      struct error *err)
{
	while (length) {
		ssize_t wrote = pwrite(fd, bytes, length, (off_t)offset);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EINVAL && fcntl(fd, F_GETFL) & O_DIRECT) {
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
			continue;
		}
		if (wrote <= 0)
			return error_set_system(err, wrote ? errno : ENOSPC, "write the journal");
		bytes += wrote;
		length -= (size_t)wrote;
		offset += (uint64_t)wrote;
	}
	return true;
}

static bool reserve_group(struct journal *journal, size_t bytes, struct error *err)
{
	size_t capacity = (bytes + 65535) & ~(size_t)65535;

	if (bytes <= journal->group_capacity)
		return true;
	free(journal->group);
	journal->group_capacity = 0;
	journal->group = aligned_alloc(JOURNAL_BLOCK, capacity);
	if (!journal->group)
		return error_set(err, ERROR_MEMORY, "no memory for a journal group of %zu bytes",
				 bytes);
	journal->group_capacity = capacity;
	return true;
}

static bool write_header(struct journal *journal, int fd, uint64_t number, uint64_t failed_from,
			 struct error *err)
{
	struct journal_header header = {.version = htole32(JOURNAL_VERSION),
					.number = htole64(number),
					.failed_from = htole64(failed_from)};

	if (!reserve_group(journal, JOURNAL_BLOCK, err))
		return false;
	memcpy(header.magic, journal_header_magic, sizeof header.magic);
	header.crc = htole32(journal_header_crc(&header));
	memset(journal->group, 0, JOURNAL_BLOCK);
	memcpy(journal->group, &header, sizeof header);
	return write_all(fd, journal->group, JOURNAL_BLOCK, 0, err);
}

/* Gives the next segment its file: a spare one, or a new one filled with zeros. */
static bool provide_file(struct journal *journal, const char *path, uint32_t bytes,
			 struct error *err)
{
	char spare[4096];
	bool has_room, has_spare, is_short;

	pthread_mutex_lock(&journal->lock);
	has_room = journal->segment_count < JOURNAL_SEGMENTS_MAX &&
		   journal->disk_bytes + bytes <= journal->limit_bytes;
	is_short = journal->is_short;
	has_spare = journal->spares && bytes == JOURNAL_FILE_BYTES;
	if (has_spare && has_room)
		journal_spare_path(journal, --journal->spares, spare, sizeof spare);
	pthread_mutex_unlock(&journal->lock);
	if (!has_room)
		return error_set(err, ERROR_BUSY,
				 "the journal has reached its %" PRIu64 " MiB: folding is behind",
				 journal->limit_bytes >> 20);
	if (has_spare && !rename(spare, path))
		return true;
	if (is_short)
		return error_set_system(err, ENOSPC, "make a journal segment");
	return make_file(path, bytes, err);
}

bool journal_lacks_spare(struct journal *journal)
{
	bool lacks;

	pthread_mutex_lock(&journal->lock);
	lacks = !journal->spares &&
		journal->disk_bytes + JOURNAL_FILE_BYTES <= journal->limit_bytes;
	pthread_mutex_unlock(&journal->lock);
	return lacks;
}

bool journal_make_spare(struct journal *journal, struct error *err)
{
	char made[4096], spare[4096];

	if (!journal_lacks_spare(journal))
		return true;
	snprintf(made, sizeof made, "%s/new", journal->directory);
	if (!make_file(made, JOURNAL_FILE_BYTES, err))
		return false;
	pthread_mutex_lock(&journal->lock);
	journal_spare_path(journal, journal->spares, spare, sizeof spare);
	if (journal->spares < JOURNAL_SPARES_MAX && !rename(made, spare))
		journal->spares++;
	else
		unlink(made);
	pthread_mutex_unlock(&journal->lock);
	return true;
}

static bool sync_directory(const struct journal *journal, struct error *err)
{
	return !fsync(journal->directory_fd) ||
	       error_set_system(err, errno, "write directory '%s'", journal->directory);
}

static bool start_segment(struct journal *journal, uint32_t bytes, uint64_t failed_from,
			  struct error *err)
{
	uint64_t number = journal->number + 1;
	char path[4096];
	int fd;

	journal_segment_path(journal, number, path, sizeof path);
	if (!provide_file(journal, path, bytes, err))
		return false;
	fd = open_direct(path);
	if (fd < 0)
		return error_set_system(err, errno, "open '%s'", path);
	if (!write_header(journal, fd, number, failed_from, err) || !sync_directory(journal, err)) {
		close(fd);
		unlink(path);
		return false;
	}
	if (journal->fd >= 0)
		close(journal->fd);
	journal->fd = fd;
	pthread_mutex_lock(&journal->lock);
	journal->file_bytes[journal->segment_count] = bytes;
	journal->segments[journal->segment_count++] = number;
	journal->disk_bytes += bytes;
	journal->started++;
	journal->room = bytes;
	journal->number = number;
	journal->offset = JOURNAL_BLOCK;
	pthread_mutex_unlock(&journal->lock);
	return true;
}

static size_t record_size(const struct bytes *record)
{
	return (JOURNAL_FRAME_BYTES + record->length + 7) & ~(size_t)7;
}

static void put_record(uint8_t *to, const struct bytes *record, uint64_t position)
{
	struct journal_frame frame = {.magic = htole32(JOURNAL_FRAME_MAGIC),
				      .length = htole32((uint32_t)record->length),
				      .position = htole64(position)};

	frame.crc = htole32(journal_frame_crc(&frame, record->at));
	memset(to, 0, record_size(record));
	memcpy(to, &frame, sizeof frame);
	memcpy(to + sizeof frame, record->at, record->length);
}

/* Writes as many of the records as the segment has room for; 0: an error. */
static size_t write_part(struct journal *journal, const struct bytes *records, size_t count,
			 uint64_t *ends, struct error *err)
{
	uint64_t start = journal->number * JOURNAL_SEGMENT_BYTES + journal->offset;
	size_t used = 0, n, padded;

	for (n = 0; n < count; n++) {
		if (journal->offset + used + record_size(&records[n]) > journal->room)
			break;
		used += record_size(&records[n]);
	}
	padded = (used + JOURNAL_BLOCK - 1) & ~(size_t)(JOURNAL_BLOCK - 1);
	if (!n || !reserve_group(journal, padded, err))
		return 0;
	used = 0;
	for (size_t i = 0; i < n; i++) {
		put_record(journal->group + used, &records[i], start + used);
		used += record_size(&records[i]);
		ends[i] = start + used;
	}
	memset(journal->group + used, 0, padded - used);
	if (!write_all(journal->fd, journal->group, padded, journal->offset, err))
		return 0;
	if (fdatasync(journal->fd)) {
		error_set_system(err, errno, "write the journal");
		return 0;
	}
	pthread_mutex_lock(&journal->lock);
	journal->offset += padded;
	journal->counters.bytes += padded;
	journal->counters.syncs++;
	pthread_mutex_unlock(&journal->lock);
	return n;
}

static bool lacks_room(const struct journal *journal, const struct bytes *record)
{
	return journal->fd < 0 || journal->offset + record_size(record) > journal->room;
}

static uint32_t file_bytes_for(const struct bytes *record)
{
	return JOURNAL_BLOCK + record_size(record) > JOURNAL_FILE_BYTES ? JOURNAL_SEGMENT_BYTES
									: JOURNAL_FILE_BYTES;
}

/* What reached the disk is unknown: never write behind it, and let the next segment say so. Without
 * one nothing was written since, and a replay may read it. */
static void note_failure(struct journal *journal, uint64_t start)
{
	pthread_mutex_lock(&journal->lock);
	journal->offset = JOURNAL_SEGMENT_BYTES;
	pthread_mutex_unlock(&journal->lock);
	if (!journal->failed_from)
		journal->failed_from = start;
}

static bool write_records(struct journal *journal, const struct bytes *records, size_t count,
			  uint64_t *ends, struct error *err)
{
	uint64_t start = journal_position(journal);

	for (size_t done = 0, n = 0; done < count; done += n) {
		bool ok = records[done].length <= JOURNAL_RECORD_MAX ||
			  error_set(err, ERROR_LIMIT, "a journal record of %zu bytes",
				    records[done].length);

		/* Once a part of this group is written, it is not what failed before. */
		if (ok && lacks_room(journal, &records[done]))
			ok = start_segment(journal, file_bytes_for(&records[done]),
					   done ? 0 : journal->failed_from, err);
		n = ok ? write_part(journal, records + done, count - done, ends + done, err) : 0;
		if (!n && (ok || done))
			note_failure(journal, start);
		if (!n)
			return false;
	}
	journal->failed_from = 0;
	return true;
}

bool journal_write(struct journal *journal, const struct bytes *records, size_t count,
		   uint64_t *ends, struct error *err)
{
	struct error why = {0};
	bool ok = write_records(journal, records, count, ends, &why);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&journal->lock);
	journal->counters.failed = why;
	journal->counters.failed_ms = now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
	pthread_mutex_unlock(&journal->lock);
	if (!ok && err)
		*err = why;
	return ok;
}

void journal_start_after(struct journal *journal, uint64_t position)
{
	uint64_t number = position / JOURNAL_SEGMENT_BYTES;

	if (journal->number < number)
		journal->number = number;
	journal->offset = JOURNAL_SEGMENT_BYTES;
}

uint64_t journal_position(const struct journal *journal)
{
	return journal->number * JOURNAL_SEGMENT_BYTES + journal->offset;
}
