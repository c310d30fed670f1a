/* SPDX-License-Identifier: Apache-2.0 */
/* All pages of a database and its log, past SQLite. */
#include "symbol-server/store/sqlite/page_checksums.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-server/store/sqlite/page_format.h"

enum {
	READ_BYTES = 1 << 20,
	AGAIN = 5, /* times that a page is read which a server may be writing */
	AGAIN_MS = 20,
};

bool page_checksums_fit(const uint8_t *page, uint32_t bytes, uint32_t number)
{
	const uint8_t *end = page + bytes - PAGE_CHECKSUM;

	return page_format_le32(end + 4) == PAGE_MARK &&
	       page_format_le32(end) == page_format_checksum(page, bytes, number);
}

static size_t read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
	size_t at = 0;
	ssize_t got = 1;

	while (at < length && got > 0) {
		got = pread(fd, (uint8_t *)bytes + at, length - at, (off_t)(offset + at));
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			at += (size_t)got;
	}
	return at;
}

/* --- the log --- */

struct log {
	int fd;
	uint32_t page_bytes;
	bool is_big_endian; /* its checksums */
	uint8_t header[LOG_HEADER];
	uint8_t *frame;
	uint8_t *in_log; /* a bit per page that it has committed; NULL: none */
	uint32_t pages;  /* bits */
};

static uint32_t word(const struct log *log, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return log->is_big_endian ? be32toh(value) : le32toh(value);
}

/* 4.2: over pairs of words. */
static void sum_words(const struct log *log, const uint8_t *bytes, size_t length, uint32_t sum[2])
{
	for (size_t i = 0; i + 8 <= length; i += 8) {
		sum[0] += word(log, bytes + i) + sum[1];
		sum[1] += word(log, bytes + i + 4) + sum[0];
	}
}

static void sum_frame(const struct log *log, uint32_t sum[2])
{
	sum_words(log, log->frame, 8, sum);
	sum_words(log, log->frame + LOG_FRAME, log->page_bytes, sum);
}

static bool is_sum(const uint8_t *at, const uint32_t sum[2])
{
	return page_format_be32(at) == sum[0] && page_format_be32(at + 4) == sum[1];
}

static bool open_log(struct log *log, const char *path, uint32_t pages, struct page_scan *scan)
{
	uint32_t sum[2] = {0, 0};

	log->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (log->fd < 0 || read_at(log->fd, log->header, LOG_HEADER, 0) < LOG_HEADER)
		return false;
	log->page_bytes = page_format_be32(log->header + 8);
	log->is_big_endian = log->header[3] & 1;
	log->pages = pages;
	sum_words(log, log->header, 24, sum);
	if (log->page_bytes < PAGE_BYTES_MIN || log->page_bytes > PAGE_BYTES_MAX ||
	    !is_sum(log->header + 24, sum)) {
		scan->log_damaged++;
		return false;
	}
	log->frame = malloc(LOG_FRAME + log->page_bytes);
	log->in_log = calloc(pages / 8 + 1, 1);
	return log->frame && log->in_log;
}

/* False: there is none, or one left over from before the log began anew, which has other salts. */
static bool read_frame(const struct log *log, uint64_t number)
{
	size_t bytes = LOG_FRAME + log->page_bytes;

	return read_at(log->fd, log->frame, bytes, LOG_HEADER + number * bytes) == bytes &&
	       !memcmp(log->frame + 8, log->header + 16, 8);
}

/* A frame follows that fits what the wrong one says, or what it should say: no crash leaves that.
 */
static bool has_successor(const struct log *log, uint64_t number, const uint32_t should[2])
{
	uint32_t says[2] = {page_format_be32(log->frame + 16), page_format_be32(log->frame + 20)};
	uint32_t either[2] = {should[0], should[1]};

	if (!read_frame(log, number + 1))
		return false;
	sum_frame(log, says);
	sum_frame(log, either);
	return is_sum(log->frame + 16, says) || is_sum(log->frame + 16, either);
}

/* Of a transaction's frames. */
static void mark_pages(struct log *log, uint64_t from, uint64_t until)
{
	for (uint64_t i = from; i < until; i++) {
		uint64_t at = LOG_HEADER + i * (LOG_FRAME + log->page_bytes);
		uint8_t number[4];
		uint32_t page;

		if (read_at(log->fd, number, sizeof number, at) < sizeof number)
			return;
		page = page_format_be32(number);
		if (page && page <= log->pages)
			log->in_log[(page - 1) / 8] |= (uint8_t)(1 << (page - 1) % 8);
	}
}

/* Pages of transactions that were committed count as the log's; those after the last are none. */
static void scan_log(struct log *log, struct page_scan *scan)
{
	uint32_t sum[2] = {page_format_be32(log->header + 24), page_format_be32(log->header + 28)};
	uint64_t i, begun = 0;

	for (i = 0; read_frame(log, i); i++) {
		sum_frame(log, sum);
		if (!is_sum(log->frame + 16, sum)) {
			if (has_successor(log, i, sum))
				scan->log_damaged++;
			else
				scan->is_log_torn = true;
			return;
		}
		scan->log_frames++;
		if (page_format_be32(log->frame + 4)) { /* the last one of a transaction */
			mark_pages(log, begun, i + 1);
			begun = i + 1;
		}
	}
	if (read_frame(log, i + 1)) /* its salts alone are wrong: what is left over is at the end */
		scan->log_damaged++;
}

static void close_log(struct log *log)
{
	free(log->frame);
	free(log->in_log);
	if (log->fd >= 0)
		close(log->fd);
}

static void read_log(struct log *log, const char *path, uint32_t pages, struct page_scan *scan)
{
	char name[4300];

	snprintf(name, sizeof name, "%s-wal", path);
	if (open_log(log, name, pages, scan))
		scan_log(log, scan);
}

/* --- the file --- */

/* A page that a running server writes back just now is whole a moment later. */
static bool fits_at_last(int fd, uint8_t *page, uint32_t bytes, uint32_t number)
{
	for (unsigned i = 0; i < AGAIN; i++) {
		poll(NULL, 0, AGAIN_MS);
		if (read_at(fd, page, bytes, (uint64_t)(number - 1) * bytes) == bytes &&
		    page_checksums_fit(page, bytes, number))
			return true;
	}
	return false;
}

static void check_page(int fd, uint8_t *page, uint32_t bytes, uint32_t number,
		       const struct log *log, struct page_scan *scan)
{
	bool is_in_log = log->in_log && log->in_log[(number - 1) / 8] >> (number - 1) % 8 & 1;

	if (is_in_log || page_checksums_fit(page, bytes, number) ||
	    fits_at_last(fd, page, bytes, number))
		return;
	if (!scan->damaged++)
		scan->first_damaged = number;
}

static bool check_pages(int fd, uint32_t page_bytes, const struct log *log, struct page_scan *scan,
			struct error *err)
{
	uint8_t *bytes = malloc(READ_BYTES);
	uint32_t each = READ_BYTES / page_bytes;

	if (!bytes)
		return error_set(err, ERROR_MEMORY, "no memory to read pages");
	for (uint32_t i = 0; i < scan->pages; i += each) {
		size_t got = read_at(fd, bytes, READ_BYTES, (uint64_t)i * page_bytes);

		for (uint32_t k = 0; k < got / page_bytes; k++)
			check_page(fd, bytes + (size_t)k * page_bytes, page_bytes, i + k + 1, log,
				   scan);
		if (got < READ_BYTES)
			break;
	}
	free(bytes);
	return true;
}

static bool scan_file(int fd, const char *path, struct page_scan *scan, struct error *err)
{
	uint8_t header[PAGE_HEADER], end[PAGE_CHECKSUM] = {0};
	struct log log = {.fd = -1};
	struct stat status;
	uint32_t bytes;
	bool ok = true;

	if (fstat(fd, &status))
		return error_set_system(err, errno, "read '%s'", path);
	if (!status.st_size) { /* all of it is in the log, or nothing was written yet */
		read_log(&log, path, 0, scan);
		close_log(&log);
		return true;
	}
	if (read_at(fd, header, sizeof header, 0) < sizeof header ||
	    !(bytes = page_format_bytes(header)))
		return error_set(err, ERROR_FORMAT, "its first page is damaged");
	read_at(fd, end, sizeof end, bytes - sizeof end);
	scan->pages = (uint32_t)(status.st_size / bytes);
	scan->has_part = status.st_size % bytes;
	scan->has_checksums = page_format_has(header, end);
	read_log(&log, path, scan->pages, scan);
	if (scan->has_checksums)
		ok = check_pages(fd, bytes, &log, scan, err);
	close_log(&log);
	return ok;
}

bool page_checksums_scan(const char *path, struct page_scan *scan, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok;

	*scan = (struct page_scan){0};
	if (fd < 0)
		return error_set_system(err, errno, "open '%s'", path);
	ok = scan_file(fd, path, scan, err);
	close(fd);
	return ok;
}
