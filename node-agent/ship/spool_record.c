/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/spool_record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/crc32c.h"

enum { ALIGNMENT = 8, SEARCH_BYTES = 16 << 10 };

static const uint32_t frame_magic = 0x52534646; /* "FFSR" */
static const char header_magic[8] = "FFSPOOL";

struct disk_header {
	char magic[8];
	uint32_t version, zero;
	uint64_t number;
	uint32_t zero_too, crc;
};
_Static_assert(sizeof(struct disk_header) == SPOOL_HEADER_BYTES, "header");

struct disk_frame {
	uint32_t magic, frame_crc, crc, facts_length, body_length, flags;
	uint64_t samples, before;
	uint8_t run[16];
	uint64_t zero;
};
_Static_assert(sizeof(struct disk_frame) == SPOOL_FRAME_BYTES, "frame");

/* --- the report --- */

uint64_t *spool_report_counter(struct spool_report *report, const char *name)
{
	size_t *count = &report->host.counter_count;

	for (size_t i = 0; i < *count; i++)
		if (!strcmp(report->counters[i].name, name))
			return &report->counters[i].value;
	if (*count == SPOOL_COUNTERS_MAX)
		return NULL;
	report->counters[*count] = (struct profile_counter){.name = name};
	report->host.counters = report->counters;
	return &report->counters[(*count)++].value;
}

void spool_report_set_host(struct spool_report *report, const struct profile_host *host)
{
	size_t count = host->counter_count < SPOOL_COUNTERS_MAX ? host->counter_count
								: SPOOL_COUNTERS_MAX;

	report->host = *host;
	memcpy(report->run, host->agent_id, sizeof report->run);
	if (count)
		memcpy(report->counters, host->counters, count * sizeof *report->counters);
	report->host.counters = report->counters;
	report->host.counter_count = count;
}

/* --- numbers and texts --- */

static void put_text(struct buffer *out, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	buffer_append_varint(out, length);
	buffer_append(out, text ? text : "", length + 1);
}

static bool get_text(const uint8_t **at, const uint8_t *end, const char **text)
{
	uint64_t length;

	if (!varint_read(at, end, &length) || length >= (uint64_t)(end - *at) || (*at)[length] ||
	    memchr(*at, 0, (size_t)length))
		return false;
	*text = (const char *)*at;
	*at += length + 1;
	return true;
}

static bool get_count(const uint8_t **at, const uint8_t *end, size_t limit, size_t *count)
{
	uint64_t value;

	if (!varint_read(at, end, &value) || value > limit)
		return false;
	*count = (size_t)value;
	return true;
}

static void put_facts(struct buffer *out, const struct profile_host *host)
{
	size_t labels = host->label_count < SPOOL_LABELS_MAX ? host->label_count : SPOOL_LABELS_MAX;

	buffer_append_varint(out, host->report_seq);
	buffer_append_varint(out, host->acknowledged_seq);
	buffer_append_varint(out, host->start_ns);
	buffer_append_varint(out, host->duration_ns);
	buffer_append_varint(out, host->rate_hz);
	put_text(out, host->host);
	put_text(out, host->kernel_release);
	put_text(out, host->architecture);
	put_text(out, host->agent_version);
	buffer_append_varint(out, labels);
	for (size_t i = 0; i < labels; i++) {
		put_text(out, host->label_names[i]);
		put_text(out, host->label_values[i]);
	}
	buffer_append_varint(out, host->counter_count);
	for (size_t i = 0; i < host->counter_count; i++) {
		put_text(out, host->counters[i].name);
		buffer_append_varint(out, host->counters[i].value);
	}
}

static bool get_labels(const uint8_t **at, const uint8_t *end, struct spool_report *report)
{
	if (!get_count(at, end, SPOOL_LABELS_MAX, &report->host.label_count))
		return false;
	for (size_t i = 0; i < report->host.label_count; i++)
		if (!get_text(at, end, &report->label_names[i]) ||
		    !get_text(at, end, &report->label_values[i]))
			return false;
	report->host.label_names = report->label_names;
	report->host.label_values = report->label_values;
	return true;
}

static bool get_counters(const uint8_t **at, const uint8_t *end, struct spool_report *report)
{
	if (!get_count(at, end, SPOOL_COUNTERS_MAX, &report->host.counter_count))
		return false;
	for (size_t i = 0; i < report->host.counter_count; i++)
		if (!get_text(at, end, &report->counters[i].name) ||
		    !varint_read(at, end, &report->counters[i].value))
			return false;
	report->host.counters = report->counters;
	return true;
}

static bool get_facts(const uint8_t *at, const uint8_t *end, struct spool_report *report)
{
	struct profile_host *host = &report->host;
	uint64_t rate_hz;

	if (!varint_read(&at, end, &host->report_seq) ||
	    !varint_read(&at, end, &host->acknowledged_seq) ||
	    !varint_read(&at, end, &host->start_ns) || !varint_read(&at, end, &host->duration_ns) ||
	    !varint_read(&at, end, &rate_hz) || rate_hz > UINT32_MAX ||
	    !get_text(&at, end, &host->host) || !get_text(&at, end, &host->kernel_release) ||
	    !get_text(&at, end, &host->architecture) || !get_text(&at, end, &host->agent_version))
		return false;
	host->rate_hz = (uint32_t)rate_hz;
	/* What later versions may put behind is not looked at. */
	return get_labels(&at, end, report) && get_counters(&at, end, report);
}

/* --- records --- */

size_t spool_padding(uint64_t length)
{
	return (size_t)(-length & (ALIGNMENT - 1));
}

uint64_t spool_record_bytes(const struct spool_frame *frame)
{
	uint64_t length = (uint64_t)SPOOL_FRAME_BYTES + frame->facts_length + frame->body_length;

	return length + spool_padding(length);
}

static uint32_t frame_crc(const struct disk_frame *frame)
{
	return crc32c(0, &frame->crc, sizeof *frame - offsetof(struct disk_frame, crc));
}

bool spool_record_encode(const struct spool_report *report, struct buffer *out)
{
	struct disk_frame frame = {.magic = htole32(frame_magic)};
	size_t begin = out->length, facts;
	uint32_t crc;

	buffer_append(out, &frame, sizeof frame);
	put_facts(out, &report->host);
	facts = out->length - begin - sizeof frame;
	if (out->failed || facts > SPOOL_FACTS_MAX || report->body.length > SPOOL_BODY_MAX)
		return false;
	crc = crc32c(0, out->bytes + begin + sizeof frame, facts);
	crc = crc32c(crc, report->body.at, report->body.length);
	frame.crc = htole32(crc);
	frame.facts_length = htole32((uint32_t)facts);
	frame.body_length = htole32((uint32_t)report->body.length);
	frame.flags = htole32(report->is_remainder ? SPOOL_REMAINDER : 0);
	frame.samples = htole64(report->samples);
	frame.before = htole64(report->before);
	memcpy(frame.run, report->run, sizeof frame.run);
	frame.frame_crc = htole32(frame_crc(&frame));
	memcpy(out->bytes + begin, &frame, sizeof frame);
	return true;
}

bool spool_frame_decode(const uint8_t bytes[SPOOL_FRAME_BYTES], struct spool_frame *out)
{
	struct disk_frame frame;

	memcpy(&frame, bytes, sizeof frame);
	if (le32toh(frame.magic) != frame_magic || le32toh(frame.frame_crc) != frame_crc(&frame))
		return false;
	*out = (struct spool_frame){
		.crc = le32toh(frame.crc),
		.facts_length = le32toh(frame.facts_length),
		.body_length = le32toh(frame.body_length),
		.flags = le32toh(frame.flags),
		.samples = le64toh(frame.samples),
		.before = le64toh(frame.before),
	};
	memcpy(out->run, frame.run, sizeof out->run);
	return out->facts_length <= SPOOL_FACTS_MAX && out->body_length <= SPOOL_BODY_MAX;
}

bool spool_record_decode(const struct spool_frame *frame, const uint8_t *content,
			 struct spool_report *report)
{
	size_t length = (size_t)frame->facts_length + frame->body_length;

	if (crc32c(0, content, length) != frame->crc)
		return false;
	memset(report, 0, sizeof *report);
	memcpy(report->run, frame->run, sizeof report->run);
	memcpy(report->host.agent_id, frame->run, sizeof report->host.agent_id);
	report->samples = frame->samples;
	report->before = frame->before;
	report->is_remainder = frame->flags & SPOOL_REMAINDER;
	report->body = (struct bytes){content + frame->facts_length, frame->body_length};
	return get_facts(content, content + frame->facts_length, report);
}

/* --- segments --- */

static uint32_t header_crc(const struct disk_header *header)
{
	return crc32c(0, header, offsetof(struct disk_header, crc));
}

void spool_header_encode(uint64_t number, uint8_t bytes[SPOOL_HEADER_BYTES])
{
	struct disk_header header = {.version = htole32(SPOOL_VERSION), .number = htole64(number)};

	memcpy(header.magic, header_magic, sizeof header.magic);
	header.crc = htole32(header_crc(&header));
	memcpy(bytes, &header, sizeof header);
}

uint32_t spool_header_version(const uint8_t bytes[SPOOL_HEADER_BYTES])
{
	struct disk_header header;

	memcpy(&header, bytes, sizeof header);
	if (memcmp(header.magic, header_magic, sizeof header.magic) ||
	    le32toh(header.crc) != header_crc(&header))
		return 0;
	return le32toh(header.version);
}

/* Reads up to room bytes; fewer only at the file's end. −1: errno. */
static ssize_t read_at(int fd, void *bytes, size_t room, uint64_t at)
{
	size_t done = 0;

	while (done < room) {
		ssize_t got = pread(fd, (uint8_t *)bytes + done, room - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static bool is_whole(const uint8_t *bytes, uint64_t at, uint64_t end, struct spool_frame *frame)
{
	return spool_frame_decode(bytes, frame) && spool_record_bytes(frame) <= end - at;
}

/* Behind a damaged place: looks at every multiple of 8 bytes. */
static enum spool_found search(int fd, uint64_t *at, uint64_t end, struct spool_frame *frame)
{
	uint8_t window[SEARCH_BYTES];

	while (*at < end) {
		size_t room = end - *at < sizeof window ? (size_t)(end - *at) : sizeof window;
		ssize_t got = read_at(fd, window, room, *at);
		size_t i = 0;

		if (got < 0)
			return SPOOL_UNREADABLE;
		for (; i + SPOOL_FRAME_BYTES <= (size_t)got; i += ALIGNMENT)
			if (is_whole(window + i, *at + i, end, frame)) {
				*at += i;
				return SPOOL_FOUND;
			}
		if (!i || (size_t)got < room)
			break;
		*at += i;
	}
	*at = end;
	return SPOOL_END;
}

enum spool_found spool_frame_find(int fd, uint64_t *at, uint64_t end, struct spool_frame *frame,
				  uint64_t *skipped)
{
	uint8_t bytes[SPOOL_FRAME_BYTES];
	uint64_t from = *at;
	enum spool_found found;
	ssize_t got;

	if (from >= end)
		return SPOOL_END;
	got = read_at(fd, bytes, sizeof bytes, from);
	if (got < 0)
		return SPOOL_UNREADABLE;
	if (got == sizeof bytes && is_whole(bytes, from, end, frame))
		return SPOOL_FOUND;
	found = search(fd, at, end, frame);
	*skipped += *at - from;
	return found;
}
