/* SPDX-License-Identifier: Apache-2.0 */
/* Which files there are: opening, releasing, counters. */
#include "symbol-server/store/sqlite/journal/journal_files.h"

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

const char journal_header_magic[16] = "farflame-journl";

void journal_segment_path(const struct journal *journal, uint64_t number, char *path, size_t room)
{
	snprintf(path, room, "%s/%016" PRIx64 ".journal", journal->directory, number);
}

void journal_spare_path(const struct journal *journal, unsigned n, char *path, size_t room)
{
	snprintf(path, room, "%s/spare-%u", journal->directory, n);
}

uint32_t journal_frame_crc(const struct journal_frame *frame, const uint8_t *bytes)
{
	uint32_t crc = crc32c(0, &frame->length, sizeof frame->length);

	crc = crc32c(crc, &frame->position, sizeof frame->position);
	return crc32c(crc, bytes, le32toh(frame->length));
}

uint32_t journal_header_crc(const struct journal_header *header)
{
	return crc32c(0, &header->number, sizeof *header - offsetof(struct journal_header, number));
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
		journal_spare_path(journal, i, from, sizeof from);
		journal_spare_path(journal, journal->spares, to, sizeof to);
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
		journal_segment_path(journal, journal->segments[i], path, sizeof path);
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
		    !entry->d_name[end] && journal->segment_count < JOURNAL_SEGMENTS_MAX)
			journal->segments[journal->segment_count++] = number;
		else if (sscanf(entry->d_name, "spare-%u%n", &n, &end) == 1 &&
			 !entry->d_name[end] && n + 1 > spares && n < JOURNAL_SPARES_MAX)
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
	journal->segments = calloc(JOURNAL_SEGMENTS_MAX, sizeof *journal->segments);
	journal->file_bytes = calloc(JOURNAL_SEGMENTS_MAX, sizeof *journal->file_bytes);
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

/* --- releasing --- */

static void release_file(struct journal *journal, uint64_t number, uint32_t bytes)
{
	char path[4096], spare[4096];

	journal_segment_path(journal, number, path, sizeof path);
	journal->disk_bytes -= bytes;
	if (journal->spares < journal->wanted && bytes == JOURNAL_FILE_BYTES) {
		journal_spare_path(journal, journal->spares, spare, sizeof spare);
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
		journal->wanted = journal->started < JOURNAL_SPARES_MAX ? journal->started
									: JOURNAL_SPARES_MAX;
	else
		journal->wanted--;
	if (!journal->wanted)
		journal->wanted = 1;
	journal->started = 0;
	while (journal->spares > journal->wanted) {
		journal_spare_path(journal, --journal->spares, path, sizeof path);
		unlink(path);
	}
}

void journal_set_short(struct journal *journal, bool is_short)
{
	char path[4096];

	pthread_mutex_lock(&journal->lock);
	journal->is_short = is_short;
	while (is_short && journal->spares) {
		journal_spare_path(journal, --journal->spares, path, sizeof path);
		unlink(path);
	}
	pthread_mutex_unlock(&journal->lock);
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
