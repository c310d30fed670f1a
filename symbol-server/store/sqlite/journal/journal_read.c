/* SPDX-License-Identifier: Apache-2.0 */
/* Records out of segments, whatever a crash left of them. */
#include "symbol-server/store/sqlite/journal/journal_files.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/crc32c.h"

/* A frame of this segment, whose record may be there, at offset. */
static bool is_of_place(const struct journal_frame *frame, size_t length, size_t offset,
			uint64_t number)
{
	return frame->magic == htole32(JOURNAL_FRAME_MAGIC) &&
	       le64toh(frame->position) == number * JOURNAL_SEGMENT_BYTES + offset &&
	       le32toh(frame->length) <= length - offset - sizeof *frame &&
	       le32toh(frame->length) <= JOURNAL_RECORD_MAX;
}

/* Bytes of the whole record at offset, padding included; 0: none that is intact. */
static size_t record_at(const uint8_t *bytes, size_t length, size_t offset, uint64_t number,
			struct journal_frame *frame)
{
	if (length - offset < sizeof *frame)
		return 0;
	memcpy(frame, bytes + offset, sizeof *frame);
	if (!is_of_place(frame, length, offset, number) ||
	    le32toh(frame->crc) != journal_frame_crc(frame, bytes + offset + sizeof *frame))
		return 0;
	return (sizeof *frame + le32toh(frame->length) + 7) & ~(size_t)7;
}

/* Where a frame of this segment begins, whole or not. */
static bool is_frame(const uint8_t *bytes, size_t length, size_t offset, uint64_t number)
{
	struct journal_frame frame;

	if (length - offset < sizeof frame)
		return false;
	memcpy(&frame, bytes + offset, sizeof frame);
	return frame.magic == htole32(JOURNAL_FRAME_MAGIC) &&
	       le64toh(frame.position) == number * JOURNAL_SEGMENT_BYTES + offset;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return !length || (!bytes[0] && !memcmp(bytes, bytes + 1, length - 1));
}

/* Past a record that is not intact: to the next one of its group, where its length says so and that
 * one is, else to the next group. */
static size_t pass_over(const uint8_t *bytes, size_t length, size_t offset, uint64_t number)
{
	size_t block = (offset / JOURNAL_BLOCK + 1) * JOURNAL_BLOCK, next;
	struct journal_frame frame;

	if (!is_frame(bytes, length, offset, number))
		return block;
	memcpy(&frame, bytes + offset, sizeof frame);
	if (!is_of_place(&frame, length, offset, number))
		return block;
	next = offset + ((sizeof frame + le32toh(frame.length) + 7) & ~(size_t)7);
	return next < length && record_at(bytes, length, next, number, &frame) ? next : block;
}

static uint64_t read_segment(const uint8_t *bytes, size_t length, uint64_t number,
			     journal_record_fn *fn, void *context, bool *is_stopped, unsigned *gaps)
{
	struct journal_header header;
	size_t offset = JOURNAL_BLOCK, size;
	uint64_t records = 0;
	bool in_gap = false;

	*is_stopped = false;
	if (length < JOURNAL_BLOCK || number > UINT64_MAX / JOURNAL_SEGMENT_BYTES - 1)
		return 0;
	memcpy(&header, bytes, sizeof header);
	if (memcmp(header.magic, journal_header_magic, sizeof header.magic) ||
	    le64toh(header.number) != number)
		return 0; /* reused, but nothing was written yet */
	while (offset < length) {
		struct journal_frame frame;

		size = record_at(bytes, length, offset, number, &frame);
		if (!size) {
			size_t next = pass_over(bytes, length, offset, number);

			next = next < length ? next : length;
			in_gap |= !is_zero(bytes + offset, next - offset);
			offset = next;
			continue;
		}
		*gaps += in_gap;
		in_gap = false;
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

uint64_t journal_read_segment(const uint8_t *bytes, size_t length, uint64_t number,
			      journal_record_fn *fn, void *context, bool *is_stopped)
{
	unsigned gaps = 0;

	return read_segment(bytes, length, number, fn, context, is_stopped, &gaps);
}

unsigned journal_count_gaps(const uint8_t *bytes, size_t length, uint64_t number, bool *torn)
{
	size_t offset = JOURNAL_BLOCK;
	bool in_gap = false;
	unsigned gaps = 0;

	*torn = false;
	while (offset < length) {
		size_t next = (offset / JOURNAL_BLOCK + 1) * JOURNAL_BLOCK, size;
		struct journal_frame frame;

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

/* --- damage that no crash leaves --- */

/* CRC-32C is linear: which bit of the record would explain its difference. */
static bool is_body_one_bit_off(const struct journal_frame *frame, const uint8_t *body)
{
	uint32_t wanted = le32toh(frame->crc) ^ journal_frame_crc(frame, body), by_bit[8];
	static const uint8_t zero;

	for (unsigned bit = 0; bit < 8; bit++) {
		uint8_t byte = (uint8_t)(1 << bit);

		by_bit[bit] = ~crc32c(~0u, &byte, 1);
	}
	for (uint32_t i = 0; i < le32toh(frame->length); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			if (by_bit[bit] == wanted)
				return true;
			by_bit[bit] = ~crc32c(~by_bit[bit], &zero, 1);
		}
	return false;
}

/* One wrong bit there, and there would be a record: damage, where a write that a crash cut off has
 * many. */
static bool is_one_bit_off(const uint8_t *bytes, size_t length, size_t offset, uint64_t number)
{
	uint8_t copy[JOURNAL_FRAME_BYTES];
	struct journal_frame frame;

	if (length - offset < sizeof frame)
		return false;
	memcpy(copy, bytes + offset, sizeof copy);
	for (unsigned bit = 0; bit < 8 * sizeof copy; bit++) {
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		memcpy(&frame, copy, sizeof frame);
		if (is_of_place(&frame, length, offset, number) &&
		    le32toh(frame.crc) == journal_frame_crc(&frame, bytes + offset + sizeof frame))
			return true;
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	memcpy(&frame, copy, sizeof frame);
	return is_of_place(&frame, length, offset, number) &&
	       is_body_one_bit_off(&frame, bytes + offset + sizeof frame);
}

static bool is_header_intact(const uint8_t *bytes, uint64_t *number)
{
	struct journal_header header;

	memcpy(&header, bytes, sizeof header);
	*number = le64toh(header.number);
	return !memcmp(header.magic, journal_header_magic, sizeof header.magic) &&
	       le32toh(header.version) == JOURNAL_VERSION &&
	       le32toh(header.crc) == journal_header_crc(&header) &&
	       is_zero(bytes + sizeof header, JOURNAL_BLOCK - sizeof header);
}

/* What follows the record within its padding and, where no other begins, its block. */
static const char *find_rest_damage(const uint8_t *bytes, size_t length, size_t offset, size_t end,
				    uint64_t number)
{
	size_t block = (end + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
	struct journal_frame frame;

	memcpy(&frame, bytes + offset, sizeof frame);
	offset += sizeof frame + le32toh(frame.length);
	if (frame.zero || !is_zero(bytes + offset, end - offset))
		return "bytes beside a record are wrong";
	block = block < length ? block : length;
	if (record_at(bytes, length, end, number, &frame) || is_zero(bytes + end, block - end))
		return NULL;
	if (is_one_bit_off(bytes, length, end, number))
		return "a bit of a record is wrong";
	/* Of a record that is not whole a crash leaves blocks, so its frame, or a part of it. */
	return is_frame(bytes, length, end, number) || block - end < sizeof frame
		       ? NULL
		       : "bytes behind a record are wrong";
}

const char *journal_find_damage(const uint8_t *bytes, size_t length, uint64_t number)
{
	uint64_t records = 0, said = 0;
	size_t offset = JOURNAL_BLOCK;
	const char *damage = NULL;

	if (length < JOURNAL_BLOCK || length % JOURNAL_BLOCK)
		return "it ends within a block";
	while (offset < length && !damage) {
		struct journal_frame frame;
		size_t size = record_at(bytes, length, offset, number, &frame);

		if (size) {
			damage = find_rest_damage(bytes, length, offset, offset + size, number);
			records++;
			offset += size;
			continue;
		}
		if (offset % JOURNAL_BLOCK == 0 && is_one_bit_off(bytes, length, offset, number))
			damage = "a bit of a record is wrong";
		offset = (offset / JOURNAL_BLOCK + 1) * JOURNAL_BLOCK;
	}
	/* Used again, but nothing was written yet: of another number, or never written at all. */
	if (!damage && is_header_intact(bytes, &said))
		return said == number || !records ? NULL : "its header is another segment's";
	return damage                                      ? damage
	       : records || !is_zero(bytes, JOURNAL_BLOCK) ? "its header is damaged"
							   : NULL;
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

/* Where the failed groups before this segment begin; UINT64_MAX: none. */
static uint64_t failed_before(const struct journal *journal, uint64_t number)
{
	struct journal_header header = {.number = 0};
	char path[4096];
	int fd;

	journal_segment_path(journal, number, path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	if (pread(fd, &header, sizeof header, 0) != sizeof header ||
	    memcmp(header.magic, journal_header_magic, sizeof header.magic) ||
	    le64toh(header.number) != number || !header.failed_from ||
	    le32toh(header.crc) != journal_header_crc(&header))
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

		journal_segment_path(journal, journal->segments[i], path, sizeof path);
		ok = read_whole(path, bytes, lengths[i], &length, err);
		if (ok)
			read_segment(bytes, length, journal->segments[i], fn, context, &is_stopped,
				     &journal->gaps);
	}
	free(bytes);
	free(lengths);
	return ok && !is_stopped;
}

unsigned journal_gaps(const struct journal *journal)
{
	return journal->gaps;
}
