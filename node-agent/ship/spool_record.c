/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/spool_record.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "common/crc32c.h"

enum { ALIGNMENT = 8, REMAINDER = 1 };

static const uint32_t frame_magic = 0x52534646; /* "FFSR" */
/* Earlier agents look at the version, and at the CRC-32C of what is before it. */
static const uint8_t header[SPOOL_HEADER_BYTES] = {'F', 'F', 'S',         'P',  'O',  'O', 'L',
						   0,   1,   [28] = 0xe1, 0xb8, 0x05, 0x66};

struct disk_frame {
	uint32_t magic, frame_crc, crc, facts_length, body_length, flags;
	uint64_t samples, before;
	uint8_t run[16];
	uint64_t zero;
};
_Static_assert(SPOOL_HEAD_MAX == sizeof header + sizeof(struct disk_frame) + SPOOL_FACTS_MAX, "");

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
	const uint64_t numbers[] = {host->report_seq, host->acknowledged_seq, host->start_ns,
				    host->duration_ns, host->rate_hz};
	const char *const texts[] = {host->host, host->kernel_release, host->architecture,
				     host->agent_version};
	size_t labels = host->label_count < SPOOL_LABELS_MAX ? host->label_count : SPOOL_LABELS_MAX;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		buffer_append_varint(out, numbers[i]);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		put_text(out, texts[i]);
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

static uint32_t frame_crc(const struct disk_frame *frame)
{
	return crc32c(0, &frame->crc, sizeof *frame - offsetof(struct disk_frame, crc));
}

bool spool_record_encode(const struct spool_report *report, struct buffer *out)
{
	struct disk_frame frame = {.magic = htole32(frame_magic)};
	size_t facts;
	uint32_t crc;

	buffer_clear(out);
	buffer_append(out, header, sizeof header);
	buffer_append(out, &frame, sizeof frame);
	put_facts(out, &report->host);
	while ((out->length + report->body.length) % ALIGNMENT && !out->failed)
		buffer_append_char(out, 0);
	if (out->failed || report->body.length > SPOOL_BODY_MAX)
		return false;
	facts = out->length - sizeof header - sizeof frame;
	crc = crc32c(0, out->bytes + sizeof header + sizeof frame, facts);
	crc = crc32c(crc, report->body.at, report->body.length);
	frame.crc = htole32(crc);
	frame.facts_length = htole32((uint32_t)facts);
	frame.body_length = htole32((uint32_t)report->body.length);
	frame.flags = htole32(report->is_remainder ? REMAINDER : 0);
	frame.samples = htole64(report->samples);
	frame.before = htole64(report->before);
	memcpy(frame.run, report->run, sizeof frame.run);
	frame.frame_crc = htole32(frame_crc(&frame));
	memcpy(out->bytes + sizeof header, &frame, sizeof frame);
	return facts <= SPOOL_FACTS_MAX;
}

bool spool_record_decode(struct bytes bytes, struct spool_report *report, uint64_t *length)
{
	struct disk_frame frame;
	const uint8_t *content = bytes.at + sizeof frame;
	uint64_t facts, body;

	*length = 0;
	if (bytes.length < sizeof frame)
		return false;
	memcpy(&frame, bytes.at, sizeof frame);
	facts = le32toh(frame.facts_length);
	body = le32toh(frame.body_length);
	if (le32toh(frame.magic) != frame_magic || le32toh(frame.frame_crc) != frame_crc(&frame) ||
	    facts + body > bytes.length - sizeof frame)
		return false;
	*length = (sizeof frame + facts + body + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (crc32c(0, content, facts + body) != le32toh(frame.crc))
		return false;
	memset(report, 0, sizeof *report);
	memcpy(report->run, frame.run, sizeof report->run);
	memcpy(report->host.agent_id, frame.run, sizeof report->host.agent_id);
	report->samples = le64toh(frame.samples);
	report->before = le64toh(frame.before);
	report->is_remainder = le32toh(frame.flags) & REMAINDER;
	report->body = (struct bytes){content + facts, body};
	return get_facts(content, content + facts, report);
}
