/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers: opentelemetry-proto 1.11, profiles/v1development (schema/wire/profiles.proto). */
#include "tests/tools/fleet/body.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/tools/fleet/dictionary.h"

enum { WINDOW_MAX = 64, SEGMENTS_MAX = 2 * (WINDOW_MAX + 1) };

enum { WINDOW_HOST, WINDOW_TAIL, WINDOW_FRESH, WINDOW_LINKS };

struct window { /* bytes of the message that differ from report to report */
	int kind;
	uint32_t at, length;
};

struct segment {
	bool is_stored;
	uint32_t at, length; /* of raw, stored ones; of packed, others */
	uint32_t crc;
	z_off_t raw_length;
	uLong combine; /* crc32_combine_gen() of raw_length */
};

struct body_template {
	struct buffer raw, packed;
	struct window windows[WINDOW_MAX];
	unsigned window_count;
	struct segment segments[SEGMENTS_MAX];
	unsigned segment_count;
};

static void put_fixed64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* A KeyValue in field 1 of a resource: text, or a number when that is NULL. */
static void put_attribute(struct buffer *out, const char *key, const char *text, uint64_t number)
{
	struct buffer pair = message(), value = message();

	if (text)
		put_text(&value, 1, text);
	else
		put_number(&value, 3, number);
	put_text(&pair, 1, key);
	put_message(&pair, 2, &value);
	put_message(out, 1, &pair);
	buffer_release(&pair);
	buffer_release(&value);
}

static void put_scope_name(struct buffer *out)
{
	struct buffer scope = message();

	put_text(&scope, 1, "farflame-agent");
	put_text(&scope, 2, "0.1.0");
	put_message(out, 1, &scope);
	buffer_release(&scope);
}

/* --- the message --- */

static void add_window(struct body_template *body, int kind, size_t at, size_t length)
{
	if (body->window_count == WINDOW_MAX)
		errx(2, "a report has more than %d profiles", WINDOW_MAX / 2);
	body->windows[body->window_count++] = (struct window){kind, (uint32_t)at, (uint32_t)length};
}

void body_host(uint32_t host, char name[HOST_TEXT + 1], char region[3])
{
	snprintf(name, HOST_TEXT + 1, "host%06u", host % 1000000);
	snprintf(region, 3, "r%u", host % REGIONS);
}

/* What goes to the start of every resource; of the same length for every host. */
static void put_host(struct buffer *out, uint32_t host)
{
	char name[HOST_TEXT + 1], region[3];

	body_host(host, name, region);
	put_attribute(out, "host.name", name, 0);
	put_attribute(out, "farflame.label.region", region, 0);
}

static void put_resource(struct buffer *out, const struct world *world, uint32_t app,
			 uint32_t process)
{
	static const char *const keys[][2] = {
		{"service", "service.name"},
		{"container", "container.id"},
		{"pod", "k8s.pod.name"},
		{"namespace", "k8s.namespace.name"},
		{"version", "farflame.label.version"},
	};
	char path[64];

	put_host(out, 0);
	put_attribute(out, "farflame.process", world_process(world, app, process), 0);
	snprintf(path, sizeof path, "/usr/bin/%s", world_process(world, app, process));
	put_attribute(out, "process.executable.path", path, 0);
	put_attribute(out, "process.executable.name", path + 9, 0);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *value = world_label(world, app, process, keys[i][0]);

		if (value)
			put_attribute(out, keys[i][1], value, 0);
	}
}

static void put_samples(struct buffer *out, struct tables *tables,
			const struct world_template *from, const struct world_profile *profile)
{
	const struct world_options *options = &tables->world->options;
	struct buffer sample = message(), values = message();

	for (uint32_t i = profile->first; i < profile->first + profile->count; i++) {
		const struct world_sample *counted = &from->samples[i];
		uint32_t incomplete = tables->app->stacks[counted->stack].incomplete;
		uint32_t indices[5] = {tables->thread_of[counted->thread]}, count = 1;

		put_number(&sample, 1, tables_stack(tables, counted->stack, i == 0));
		if (incomplete)
			indices[count++] = tables->sentence_of[incomplete - 1];
		if (options->thread_ids)
			indices[count++] = tables->id_of[counted->thread * options->thread_ids +
							 counted->stack % options->thread_ids];
		if (options->lifetimes) {
			uint32_t lifetime = counted->stack % options->lifetimes;

			indices[count++] = tables->lifetime_of[lifetime];
			if (i - profile->first < options->lifetimes)
				indices[count++] = tables->command_of[lifetime];
		}
		put_indices(&sample, 2, indices, count);
		if (options->links)
			put_number(&sample, 3, 1 + i % options->links);
		if (!options->is_plain)
			buffer_append_varint(&values, counted->count);
		buffer_append_varint(&values, counted->value);
		put_message(&sample, 4, &values);
		put_message(out, 2, &sample);
	}
	buffer_release(&sample);
	buffer_release(&values);
}

enum { TAIL_TIME = 1, TAIL_ID = 16 }; /* offsets: of the time from the start, of the id's end */

/* Time, duration, period and id: the same length in every report. */
static void put_tail(struct buffer *out, uint32_t period_type, uint32_t period_unit,
		     uint64_t period)
{
	uint8_t zero[16] = {0};
	struct buffer type = message();

	buffer_append_varint(out, 3 << 3 | 1);
	buffer_append(out, zero, 8);
	put_number(out, 4, UINT64_C(10000000000));
	if (period) {
		put_number(&type, 1, period_type);
		put_number(&type, 2, period_unit);
		put_message(out, 5, &type);
		put_number(out, 6, period);
	}
	put_bytes(out, 7, zero, 16);
	buffer_release(&type);
}

static void put_profile(struct body_template *body, struct tables *tables,
			const struct world_template *from, const struct world_profile *profile)
{
	const char *name = tables->world->options.types[profile->type];
	uint64_t period = strcmp(name, "on-cpu") ? 0 : 10101010;
	struct buffer resource = message(), inner = message(), tail = message(), out = message();
	uint32_t unit = tables_add_string(tables, world_unit(name));
	size_t host_length, resource_length, host_at;

	put_host(&resource, 0);
	host_length = resource.length;
	buffer_clear(&resource);
	put_resource(&resource, tables->world, from->app, profile->process);

	put_number(&out, 1,
		   tables_add_string(tables, tables->world->options.is_plain ? "cpu" : name));
	put_number(&out, 2, unit);
	put_message(&inner, 1, &out);
	put_samples(&inner, tables, from, profile);
	put_tail(&tail, tables_add_string(tables, "cpu"), unit, period);
	buffer_append(&inner, tail.bytes, tail.length);

	put_scope_name(&out);
	put_message(&out, 2, &inner);
	/* The message begins with the resource, and that with the host. */
	resource_length = resource.length;
	put_message(&inner, 1, &resource);
	host_at = inner.length - resource_length;
	put_message(&inner, 2, &out);
	buffer_append_varint(&body->raw, 1 << 3 | 2);
	buffer_append_varint(&body->raw, inner.length);
	add_window(body, WINDOW_HOST, body->raw.length + host_at, host_length);
	buffer_append(&body->raw, inner.bytes, inner.length);
	add_window(body, WINDOW_TAIL, body->raw.length - tail.length, tail.length);
	buffer_release(&resource);
	buffer_release(&inner);
	buffer_release(&tail);
	buffer_release(&out);
}

enum { LINK_BYTES = 30, LINK_TRACE = 4, LINK_SPAN = 22 }; /* offsets of the ids */

static void put_links(struct buffer *out, uint32_t count)
{
	struct buffer link = message();
	uint8_t zero[16] = {0};

	put_bytes(out, 4, "", 0);
	for (uint32_t i = 0; i < count; i++) {
		put_bytes(&link, 1, zero, 16);
		put_bytes(&link, 2, zero, 8);
		put_message(out, 4, &link);
	}
	buffer_release(&link);
}

static void put_dictionary(struct body_template *body, struct tables *tables)
{
	uint32_t links = tables->world->options.links;
	struct buffer all = message();
	size_t fresh_at, links_at;

	buffer_append(&all, tables->mappings.bytes, tables->mappings.length);
	fresh_at = all.length + tables->fresh_at;
	buffer_append(&all, tables->locations.bytes, tables->locations.length);
	buffer_append(&all, tables->functions.bytes, tables->functions.length);
	links_at = all.length + 2;
	put_links(&all, links);
	buffer_append(&all, tables->strings.bytes, tables->strings.length);
	buffer_append(&all, tables->attributes.bytes, tables->attributes.length);
	buffer_append(&all, tables->stacks.bytes, tables->stacks.length);
	buffer_append_varint(&body->raw, 2 << 3 | 2);
	buffer_append_varint(&body->raw, all.length);
	add_window(body, WINDOW_FRESH, body->raw.length + fresh_at, 5);
	if (links)
		add_window(body, WINDOW_LINKS, body->raw.length + links_at,
			   (size_t)links * LINK_BYTES);
	buffer_append(&body->raw, all.bytes, all.length);
	if (all.failed || body->raw.failed)
		errx(2, "a report of the made-up fleet is over %d MiB", RAW_MAX >> 20);
	buffer_release(&all);
}

/* --- compression --- */

static void add_stored(struct body_template *body, uint32_t at, uint32_t length)
{
	body->segments[body->segment_count++] = (struct segment){
		.is_stored = true,
		.at = at,
		.length = length,
		.raw_length = length,
		.combine = crc32_combine_gen(length),
	};
}

/* Whole deflate blocks that end on a byte and refer to nothing before them. */
static void add_packed(struct body_template *body, z_stream *stream, uint32_t at, uint32_t length)
{
	uLong bound = deflateBound(stream, length) + 64;
	uint8_t *to = buffer_reserve(&body->packed, bound);
	struct segment *segment = &body->segments[body->segment_count++];

	if (!to)
		errx(2, "no memory for the made-up fleet");
	stream->next_in = body->raw.bytes + at;
	stream->avail_in = length;
	stream->next_out = to;
	stream->avail_out = (uInt)bound;
	if (deflate(stream, Z_FULL_FLUSH) != Z_OK || stream->avail_in || !stream->avail_out)
		errx(2, "zlib does not compress");
	*segment = (struct segment){
		.at = (uint32_t)body->packed.length,
		.length = (uint32_t)(bound - stream->avail_out),
		.crc = (uint32_t)crc32(0, body->raw.bytes + at, length),
		.raw_length = length,
		.combine = crc32_combine_gen(length),
	};
	body->packed.length += segment->length;
}

/* Windows less than this apart are one stored block: headers would cost more. */
enum { GAP = 48 };

static void compress_body(struct body_template *body)
{
	z_stream stream = {0};
	uint32_t done = 0;

	if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		errx(2, "zlib does not start");
	for (unsigned i = 0; i < body->window_count;) {
		uint32_t at = body->windows[i].at, end = at + body->windows[i].length;

		for (i++; i < body->window_count && body->windows[i].at < end + GAP; i++)
			end = body->windows[i].at + body->windows[i].length;
		if (at > done)
			add_packed(body, &stream, done, at - done);
		add_stored(body, at, end - at);
		done = end;
	}
	if (body->raw.length > done)
		add_packed(body, &stream, done, (uint32_t)body->raw.length - done);
	deflateEnd(&stream);
}

struct body_template *body_template_new(const struct world *world,
					const struct world_template *from)
{
	struct body_template *body = calloc(1, sizeof *body);
	struct tables tables;
	uint8_t *kept;

	if (!body)
		errx(2, "no memory for the made-up fleet");
	body->raw = body->packed = message();
	tables_start(&tables, world, &world->apps[from->app]);
	for (uint32_t i = 0; i < from->profile_count; i++)
		put_profile(body, &tables, from, &from->profiles[i]);
	put_dictionary(body, &tables);
	tables_release(&tables);
	compress_body(body);
	kept = realloc(body->packed.bytes, body->packed.length + 1);
	if (kept)
		body->packed.bytes = kept;
	return body;
}

size_t body_raw_length(const struct body_template *body)
{
	return body->raw.length;
}

/* --- one report --- */

static void nth_id(uint8_t to[16], const uint8_t id[16], uint32_t number)
{
	uint32_t last;

	memcpy(to, id, 16);
	last = ((uint32_t)id[12] << 24 | (uint32_t)id[13] << 16 | (uint32_t)id[14] << 8 | id[15]) +
	       number;
	for (int i = 0; i < 4; i++)
		to[15 - i] = (uint8_t)(last >> (8 * i));
}

/* The same report has the same ones. */
static void fill_links(uint8_t *at, size_t length, const uint8_t id[16])
{
	uint64_t half[2], state;

	memcpy(half, id, sizeof half);
	state = half[0] ^ random_next(&half[1]);
	for (; length >= LINK_BYTES; at += LINK_BYTES, length -= LINK_BYTES)
		for (unsigned i = 0; i < 3; i++) {
			uint64_t number = random_next(&state);

			memcpy(at + (i < 2 ? LINK_TRACE + 8 * i : LINK_SPAN), &number, 8);
		}
}

/* Into the template's own bytes: a report is written before the next one begins. */
static void fill_windows(const struct body_template *body, const struct body_report *report)
{
	struct buffer host = message();
	uint32_t number = 0;

	put_host(&host, report->host);
	for (unsigned i = 0; i < body->window_count; i++) {
		const struct window *window = &body->windows[i];
		uint8_t *at = body->raw.bytes + window->at;

		if (window->kind == WINDOW_HOST) {
			memcpy(at, host.bytes, window->length);
		} else if (window->kind == WINDOW_TAIL) {
			put_fixed64(at + TAIL_TIME, report->time_ns);
			nth_id(at + window->length - TAIL_ID, report->id, number++);
		} else if (window->kind == WINDOW_LINKS) {
			fill_links(at, window->length, report->id);
		} else {
			for (int j = 0; j < 5; j++)
				at[j] = (uint8_t)(report->fresh >> (7 * j) & 0x7f) |
					(j < 4 ? 0x80 : 0);
		}
	}
	buffer_release(&host);
}

/* The agent's own resource: a second message, which protobuf joins with the first. */
static void put_counters(struct buffer *out, const struct body_report *report)
{
	struct buffer resource = message(), inner = message(), all = message();
	char text[33];

	put_host(&resource, report->host);
	for (int i = 0; i < 16; i++)
		sprintf(text + 2 * i, "%02x", report->agent_id[i]);
	put_attribute(&resource, "farflame.agent.id", text, 0);
	put_attribute(&resource, "host.arch", "x86_64", 0);
	put_attribute(&resource, "os.version", "6.1.0-fleet", 0);
	put_attribute(&resource, "service.version", "0.1.0", 0);
	put_attribute(&resource, "farflame.report.seq", NULL, report->seq);
	put_attribute(&resource, "farflame.report.acknowledged", NULL, report->acknowledged);
	put_attribute(&resource, "farflame.rate_hz", NULL, report->rate_hz);
	put_attribute(&resource, "farflame.taken", NULL, report->taken);
	put_attribute(&resource, "farflame.idle", NULL, report->idle);
	if (report->lost)
		put_attribute(&resource, "farflame.lost.ring_full", NULL, report->lost);
	put_attribute(&resource, "farflame.stacks.complete", NULL, report->taken - report->lost);
	put_tail(&inner, 0, 0, 0);
	put_fixed64(inner.bytes + TAIL_TIME, report->time_ns);
	memcpy(inner.bytes + inner.length - TAIL_ID, report->agent_id, 16);
	for (int i = 0; i < 8; i++)
		inner.bytes[inner.length - 8 + (size_t)i] ^= (uint8_t)(report->seq >> (8 * i));
	put_scope_name(&all);
	put_message(&all, 2, &inner);
	put_message(&inner, 1, &resource);
	put_message(&inner, 2, &all);
	put_message(out, 1, &inner);
	buffer_release(&resource);
	buffer_release(&inner);
	buffer_release(&all);
}

static void put_stored(struct buffer *out, const uint8_t *bytes, size_t length)
{
	const uint8_t header[5] = {0, (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)~length,
				   (uint8_t)(~length >> 8)};

	buffer_append(out, header, sizeof header);
	buffer_append(out, bytes, length);
}

static void put_word(struct buffer *out, uint32_t word)
{
	const uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
				  (uint8_t)(word >> 24)};

	buffer_append(out, bytes, sizeof bytes);
}

void body_write(const struct body_template *body, const struct body_report *report,
		struct buffer *out)
{
	static const uint8_t start[10] = {0x1f, 0x8b, 8, [9] = 255}, end[5] = {1, 0, 0, 0xff, 0xff};
	struct buffer counters = message();
	uLong crc = 0;

	fill_windows(body, report);
	buffer_append(out, start, sizeof start);
	for (unsigned i = 0; i < body->segment_count; i++) {
		const struct segment *segment = &body->segments[i];
		const uint8_t *raw = body->raw.bytes + segment->at;

		if (segment->is_stored)
			put_stored(out, raw, segment->length);
		else
			buffer_append(out, body->packed.bytes + segment->at, segment->length);
		crc = crc32_combine_op(
			crc, segment->is_stored ? crc32(0, raw, segment->length) : segment->crc,
			segment->combine);
	}
	put_counters(&counters, report);
	put_stored(out, counters.bytes, counters.length);
	crc = crc32(crc, counters.bytes, (uInt)counters.length);
	buffer_append(out, end, sizeof end);
	put_word(out, (uint32_t)crc);
	put_word(out, (uint32_t)(body->raw.length + counters.length));
	buffer_release(&counters);
}
