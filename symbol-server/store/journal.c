/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/journal.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/log.h"

enum { SPARES_MAX = 32, SEGMENTS_MAX = 4096 };

static const uint32_t frame_magic = 0x314a4646; /* "FFJ1" */
static const char header_magic[16] = "farflame-journl";

struct frame {
	uint32_t magic, length;
	uint64_t position;
	uint32_t crc, zero;
};
_Static_assert(sizeof(struct frame) == JOURNAL_FRAME_BYTES, "frame");

struct segment_header {
	char magic[16];
	uint32_t version, crc; /* of what follows */
	uint64_t number;
	uint64_t failed_from; /* groups from there to this segment failed; 0: none did */
};

struct journal {
	char *directory;
	int directory_fd;
	uint64_t limit_bytes;
	pthread_mutex_t lock; /* segments, spares, counters; the rest is the writer's */
	uint64_t *segments;   /* numbers in rising order; the last is being written */
	unsigned segment_count;
	uint32_t *file_bytes; /* of each */
	uint64_t disk_bytes;  /* of all */
	unsigned spares;      /* files spare-0 …, JOURNAL_FILE_BYTES each */
	unsigned wanted;      /* spares to keep */
	unsigned started;     /* segments since the last release */
	struct journal_counters counters;
	int fd;                  /* of the last segment; -1: none yet */
	uint32_t room;           /* bytes of its file */
	uint64_t number, offset; /* next write */
	uint64_t failed_from;    /* first group that failed since one did not; 0: none */
	uint8_t *group;          /* aligned */
	size_t group_capacity;
};

static void segment_path(const struct journal *journal, uint64_t number, char *path, size_t room)
{
	snprintf(path, room, "%s/%016" PRIx64 ".journal", journal->directory, number);
}

static void spare_path(const struct journal *journal, unsigned n, char *path, size_t room)
{
	snprintf(path, room, "%s/spare-%u", journal->directory, n);
}

/* --- opening --- */

/* What is not there counts as nothing. */
static uint32_t bytes_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint32_t)status.st_size;
}

/* Files of other sizes are of a server that was killed while it made them, or of an earlier one. */
static void check_spares(struct journal *journal, unsigned found)
{
	char from[4096], to[4096];

	for (unsigned i = 0; i < found; i++) {
		spare_path(journal, i, from, sizeof from);
		spare_path(journal, journal->spares, to, sizeof to);
		if (bytes_of(from) != JOURNAL_FILE_BYTES)
			unlink(from);
		else if (i == journal->spares || !rename(from, to))
			journal->spares++;
	}
}

static void measure_segments(struct journal *journal)
{
	char path[4096];

	for (unsigned i = 0; i < journal->segment_count; i++) {
		segment_path(journal, journal->segments[i], path, sizeof path);
		journal->file_bytes[i] = bytes_of(path);
		journal->disk_bytes += journal->file_bytes[i];
	}
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool list_segments(struct journal *journal, struct error *err)
{
	DIR *directory = opendir(journal->directory);
	struct dirent *entry;
	unsigned spares = 0;

	if (!directory)
		return error_set_system(err, errno, "read directory '%s'", journal->directory);
	while ((entry = readdir(directory))) {
		uint64_t number;
		unsigned n;
		int end = 0;

		if (sscanf(entry->d_name, "%16" SCNx64 ".journal%n", &number, &end) == 1 && end &&
		    !entry->d_name[end] && journal->segment_count < SEGMENTS_MAX)
			journal->segments[journal->segment_count++] = number;
		else if (sscanf(entry->d_name, "spare-%u%n", &n, &end) == 1 &&
			 !entry->d_name[end] && n + 1 > spares && n < SPARES_MAX)
			spares = n + 1;
	}
	closedir(directory);
	qsort(journal->segments, journal->segment_count, sizeof *journal->segments,
	      compare_numbers);
	check_spares(journal, spares);
	measure_segments(journal);
	if (journal->segment_count)
		journal->number = journal->segments[journal->segment_count - 1];
	journal->offset = JOURNAL_SEGMENT_BYTES; /* the next write starts a segment of its own */
	return true;
}

struct journal *journal_open(const char *directory, uint64_t limit_bytes, struct error *err)
{
	struct journal *journal = calloc(1, sizeof *journal);
	bool ok = false;

	if (!journal) {
		error_set(err, ERROR_MEMORY, "no memory for the journal");
		return NULL;
	}
	pthread_mutex_init(&journal->lock, NULL);
	journal->fd = journal->directory_fd = -1;
	journal->limit_bytes = limit_bytes;
	journal->wanted = 1;
	journal->directory = strdup(directory);
	journal->segments = calloc(SEGMENTS_MAX, sizeof *journal->segments);
	journal->file_bytes = calloc(SEGMENTS_MAX, sizeof *journal->file_bytes);
	if (!journal->directory || !journal->segments || !journal->file_bytes) {
		error_set(err, ERROR_MEMORY, "no memory for the journal");
		goto out;
	}
	if (mkdir(directory, 0700) && errno != EEXIST) {
		error_set_system(err, errno, "make directory '%s'", directory);
		goto out;
	}
	journal->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (journal->directory_fd < 0) {
		error_set_system(err, errno, "open directory '%s'", directory);
		goto out;
	}
	if (flock(journal->directory_fd, LOCK_EX | LOCK_NB)) {
		error_set(err, ERROR_CONFLICT, "another server uses directory '%s'", directory);
		goto out;
	}
	ok = list_segments(journal, err);
out:
	if (!ok) {
		journal_close(journal);
		return NULL;
	}
	return journal;
}

void journal_close(struct journal *journal)
{
	if (!journal)
		return;
	if (journal->fd >= 0)
		close(journal->fd);
	if (journal->directory_fd >= 0)
		close(journal->directory_fd);
	pthread_mutex_destroy(&journal->lock);
	free(journal->segments);
	free(journal->file_bytes);
	free(journal->directory);
	free(journal->group);
	free(journal);
}

/* --- reading --- */

static uint32_t frame_crc(const struct frame *frame, const uint8_t *bytes)
{
	uint32_t crc = crc32c(0, &frame->length, sizeof frame->length);

	crc = crc32c(crc, &frame->position, sizeof frame->position);
	return crc32c(crc, bytes, le32toh(frame->length));
}

/* Bytes of the whole record at offset, padding included; 0: none that is intact. */
static size_t record_at(const uint8_t *bytes, size_t length, size_t offset, uint64_t number,
			struct frame *frame)
{
	if (length - offset < sizeof *frame)
		return 0;
	memcpy(frame, bytes + offset, sizeof *frame);
	if (frame->magic != htole32(frame_magic) ||
	    le64toh(frame->position) != number * JOURNAL_SEGMENT_BYTES + offset ||
	    le32toh(frame->length) > length - offset - sizeof *frame ||
	    le32toh(frame->length) > JOURNAL_RECORD_MAX)
		return 0;
	if (le32toh(frame->crc) != frame_crc(frame, bytes + offset + sizeof *frame))
		return 0;
	return (sizeof *frame + le32toh(frame->length) + 7) & ~(size_t)7;
}

uint64_t journal_read_segment(const uint8_t *bytes, size_t length, uint64_t number,
			      journal_record_fn *fn, void *context, bool *is_stopped)
{
	struct segment_header header;
	size_t offset = JOURNAL_BLOCK, size;
	uint64_t records = 0;

	*is_stopped = false;
	if (length < JOURNAL_BLOCK || number > UINT64_MAX / JOURNAL_SEGMENT_BYTES - 1)
		return 0;
	memcpy(&header, bytes, sizeof header);
	if (memcmp(header.magic, header_magic, sizeof header.magic) ||
	    le64toh(header.number) != number)
		return 0; /* reused, but nothing was written yet */
	while (offset < length) {
		struct frame frame;

		size = record_at(bytes, length, offset, number, &frame);
		if (!size) {
			offset = (offset / JOURNAL_BLOCK + 1) * JOURNAL_BLOCK;
			continue;
		}
		if (!fn(context, number * JOURNAL_SEGMENT_BYTES + offset + size,
			bytes + offset + sizeof frame, le32toh(frame.length))) {
			*is_stopped = true;
			break;
		}
		records++;
		offset += size;
	}
	return records;
}

/* Where a frame of this segment begins, whole or not. */
static bool is_frame(const uint8_t *bytes, size_t length, size_t offset, uint64_t number)
{
	struct frame frame;

	if (length - offset < sizeof frame)
		return false;
	memcpy(&frame, bytes + offset, sizeof frame);
	return frame.magic == htole32(frame_magic) &&
	       le64toh(frame.position) == number * JOURNAL_SEGMENT_BYTES + offset;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return !length || (!bytes[0] && !memcmp(bytes, bytes + 1, length - 1));
}

unsigned journal_count_gaps(const uint8_t *bytes, size_t length, uint64_t number, bool *torn)
{
	size_t offset = JOURNAL_BLOCK;
	bool in_gap = false;
	unsigned gaps = 0;

	*torn = false;
	while (offset < length) {
		size_t next = (offset / JOURNAL_BLOCK + 1) * JOURNAL_BLOCK, size;
		struct frame frame;

		size = record_at(bytes, length, offset, number, &frame);
		if (size) {
			gaps += in_gap;
			in_gap = *torn = false;
			offset += size;
			continue;
		}
		*torn |= is_frame(bytes, length, offset, number);
		next = next < length ? next : length;
		in_gap |= offset % JOURNAL_BLOCK == 0 || !is_zero(bytes + offset, next - offset);
		offset = next;
	}
	return gaps;
}

static bool read_whole(const char *path, uint8_t *bytes, size_t room, size_t *length,
		       struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	*length = 0;
	if (fd < 0)
		return error_set_system(err, errno, "open '%s'", path);
	while (got > 0 && *length < room) {
		got = pread(fd, bytes + *length, room - *length, (off_t)*length);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			*length += (size_t)got;
	}
	if (got < 0)
		error_set_system(err, errno, "read '%s'", path);
	close(fd);
	return got >= 0;
}

static uint32_t header_crc(const struct segment_header *header)
{
	return crc32c(0, &header->number, sizeof *header - offsetof(struct segment_header, number));
}

/* Where the failed groups before this segment begin; UINT64_MAX: none. */
static uint64_t failed_before(const struct journal *journal, uint64_t number)
{
	struct segment_header header = {.number = 0};
	char path[4096];
	int fd;

	segment_path(journal, number, path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	if (pread(fd, &header, sizeof header, 0) != sizeof header ||
	    memcmp(header.magic, header_magic, sizeof header.magic) ||
	    le64toh(header.number) != number || !header.failed_from ||
	    le32toh(header.crc) != header_crc(&header))
		header.failed_from = htole64(UINT64_MAX);
	close(fd);
	return le64toh(header.failed_from);
}

/* Of each segment, how many bytes lie before groups that failed and have successors. */
static void find_lengths(const struct journal *journal, size_t *lengths)
{
	uint64_t failed = UINT64_MAX;

	for (unsigned i = journal->segment_count; i-- > 0;) {
		uint64_t start = journal->segments[i] * JOURNAL_SEGMENT_BYTES, before;

		lengths[i] = JOURNAL_SEGMENT_BYTES;
		if (failed < start + JOURNAL_SEGMENT_BYTES)
			lengths[i] = failed > start ? (size_t)(failed - start) : 0;
		before = failed_before(journal, journal->segments[i]);
		failed = before < failed ? before : failed;
	}
}

bool journal_replay(struct journal *journal, journal_record_fn *fn, void *context,
		    struct error *err)
{
	uint8_t *bytes = malloc(JOURNAL_SEGMENT_BYTES);
	size_t *lengths = calloc(journal->segment_count + 1, sizeof *lengths);
	bool is_stopped = false, ok = bytes && lengths;

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory to read the journal");
	else
		find_lengths(journal, lengths);
	for (unsigned i = 0; ok && !is_stopped && i < journal->segment_count; i++) {
		char path[4096];
		size_t length;

		segment_path(journal, journal->segments[i], path, sizeof path);
		ok = read_whole(path, bytes, lengths[i], &length, err);
		if (ok)
			journal_read_segment(bytes, length, journal->segments[i], fn, context,
					     &is_stopped);
	}
	free(bytes);
	free(lengths);
	return ok && !is_stopped;
}

/* --- writing --- */

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
	struct segment_header header = {.version = htole32(1),
					.number = htole64(number),
					.failed_from = htole64(failed_from)};

	if (!reserve_group(journal, JOURNAL_BLOCK, err))
		return false;
	memcpy(header.magic, header_magic, sizeof header.magic);
	header.crc = htole32(header_crc(&header));
	memset(journal->group, 0, JOURNAL_BLOCK);
	memcpy(journal->group, &header, sizeof header);
	return write_all(fd, journal->group, JOURNAL_BLOCK, 0, err);
}

/* Gives the next segment its file: a spare one, or a new one filled with zeros. */
static bool provide_file(struct journal *journal, const char *path, uint32_t bytes,
			 struct error *err)
{
	char spare[4096];
	bool has_room, has_spare;

	pthread_mutex_lock(&journal->lock);
	has_room = journal->segment_count < SEGMENTS_MAX &&
		   journal->disk_bytes + bytes <= journal->limit_bytes;
	has_spare = journal->spares && bytes == JOURNAL_FILE_BYTES;
	if (has_spare && has_room)
		spare_path(journal, --journal->spares, spare, sizeof spare);
	pthread_mutex_unlock(&journal->lock);
	if (!has_room)
		return error_set(err, ERROR_BUSY,
				 "the journal has reached its %" PRIu64 " MiB: folding is behind",
				 journal->limit_bytes >> 20);
	if (has_spare && !rename(spare, path))
		return true;
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
	spare_path(journal, journal->spares, spare, sizeof spare);
	if (journal->spares < SPARES_MAX && !rename(made, spare))
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

	segment_path(journal, number, path, sizeof path);
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
	struct frame frame = {.magic = htole32(frame_magic),
			      .length = htole32((uint32_t)record->length),
			      .position = htole64(position)};

	frame.crc = htole32(frame_crc(&frame, record->at));
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

/* --- releasing --- */

static void release_file(struct journal *journal, uint64_t number, uint32_t bytes)
{
	char path[4096], spare[4096];

	segment_path(journal, number, path, sizeof path);
	journal->disk_bytes -= bytes;
	if (journal->spares < journal->wanted && bytes == JOURNAL_FILE_BYTES) {
		spare_path(journal, journal->spares, spare, sizeof spare);
		if (!rename(path, spare)) {
			journal->spares++;
			return;
		}
	}
	if (unlink(path) && errno != ENOENT)
		log_warn("journal segment not removed", "path=\"%s\" error=\"%s\"", path,
			 strerror(errno));
}

/* As many files as the last while took; less and less when it takes less. */
static void follow_use(struct journal *journal)
{
	char path[4096];

	if (journal->started >= journal->wanted)
		journal->wanted = journal->started < SPARES_MAX ? journal->started : SPARES_MAX;
	else
		journal->wanted--;
	if (!journal->wanted)
		journal->wanted = 1;
	journal->started = 0;
	while (journal->spares > journal->wanted) {
		spare_path(journal, --journal->spares, path, sizeof path);
		unlink(path);
	}
}

void journal_release(struct journal *journal, uint64_t position)
{
	unsigned released = 0;

	pthread_mutex_lock(&journal->lock);
	follow_use(journal);
	while (released < journal->segment_count) {
		uint64_t number = journal->segments[released];

		if ((number + 1) * JOURNAL_SEGMENT_BYTES > position ||
		    (number == journal->number && journal->fd >= 0))
			break;
		release_file(journal, number, journal->file_bytes[released]);
		released++;
	}
	journal->segment_count -= released;
	memmove(journal->segments, journal->segments + released,
		journal->segment_count * sizeof *journal->segments);
	memmove(journal->file_bytes, journal->file_bytes + released,
		journal->segment_count * sizeof *journal->file_bytes);
	pthread_mutex_unlock(&journal->lock);
}

void journal_end_segment(struct journal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	journal->fd = -1;
	journal->offset = JOURNAL_SEGMENT_BYTES;
	journal->started = 0;
	journal->wanted = 1;
}

void journal_counters(struct journal *journal, struct journal_counters *out)
{
	pthread_mutex_lock(&journal->lock);
	*out = journal->counters;
	out->disk_bytes = journal->disk_bytes + (uint64_t)journal->spares * JOURNAL_FILE_BYTES;
	pthread_mutex_unlock(&journal->lock);
}
