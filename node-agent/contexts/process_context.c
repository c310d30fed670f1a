/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/process_context.h"

#include <stdlib.h>
#include <string.h>

#include "common/otlp_attributes.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/memory_map.h"

enum {
	VERSION = 2,
	MAPS_ROOM = 32 << 10,
	ARENA_LIMIT = 256 << 10,
};

static const char signature[8] = "OTEL_CTX";

struct context_header {
	char signature[8];
	uint32_t version, payload_size;
	uint64_t published_at_ns;
	uint64_t payload;
};

/* --- where --- */

static bool name_is_context(const char *name)
{
	static const char *const names[] = {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]",
					    "[anon:OTEL_CTX]"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool line_is_context(const char *line, const char *end, uint64_t *address)
{
	struct memory_row row;

	if (memory_map_next(&line, end, &row) != MEMORY_ROW || !name_is_context(row.path))
		return false;
	*address = row.start;
	return true;
}

/* Most texts have no such name: only around one a line is looked at. */
static bool text_has_context(const char *text, size_t length, uint64_t *address)
{
	const char *at = text, *end = text + length;

	while ((at = memmem(at, (size_t)(end - at), signature, sizeof signature))) {
		const char *start = memrchr(text, '\n', (size_t)(at - text));
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			return false;
		start = start ? start + 1 : text;
		if (line_is_context(start, stop, address))
			return true;
		at = stop;
	}
	return false;
}

static bool read_maps(struct stranger_maps *maps, char *text, uint64_t *address)
{
	size_t length = 0;

	for (;;) {
		size_t got = stranger_maps_read(maps, text + length, MAPS_ROOM - length);
		const char *newline;

		if (!got)
			return false;
		length += got;
		if (text_has_context(text, length, address))
			return true;
		newline = memrchr(text, '\n', length);
		newline = newline ? newline + 1 : text + length;
		length -= (size_t)(newline - text);
		if (length > MAPS_ROOM / 2) /* a name longer than any of ours */
			length = 0;
		memmove(text, newline, length);
	}
}

bool process_context_find(int directory, uint64_t *address)
{
	struct stranger_maps maps;
	char text[MAPS_ROOM];
	bool found;

	stranger_maps_begin(&maps, directory);
	found = read_maps(&maps, text, address);
	stranger_maps_end(&maps);
	return found;
}

/* --- what --- */

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void take_keys(struct process_context *context, const struct otlp_attribute *attribute)
{
	for (size_t i = 0; i < attribute->list_count && i < PROCESS_CONTEXT_KEYS_MAX; i++) {
		const char *key = attribute->list[i];
		bool is_key = *key && strlen(key) <= PROCESS_CONTEXT_KEY_MAX;

		context->cut += !is_key;
		context->keys[i] = is_key ? arena_text(&context->arena, key, strlen(key)) : NULL;
		context->key_count = i + 1;
	}
}

static void take_attribute(void *into, const struct otlp_attribute *attribute)
{
	struct process_context *context = into;
	struct context_attribute *to = &context->attributes[context->attribute_count];

	if (!strcmp(attribute->key, "threadlocal.schema_version") && attribute->value) {
		context->has_threads = starts_with(attribute->value, "tlsdesc_v1") ||
				       starts_with(attribute->value, "tls_v1");
	} else if (!strcmp(attribute->key, "threadlocal.attribute_key_map") && attribute->list) {
		take_keys(context, attribute);
	} else if (!starts_with(attribute->key, "threadlocal.") && attribute->value &&
		   *attribute->value) {
		if (context->attribute_count == PROCESS_CONTEXT_ATTRIBUTES_MAX ||
		    strlen(attribute->key) > PROCESS_CONTEXT_KEY_MAX) {
			context->cut++;
			return;
		}
		to->key = arena_text(&context->arena, attribute->key, strlen(attribute->key));
		to->value = arena_text(&context->arena, attribute->value,
				       strnlen(attribute->value, PROCESS_CONTEXT_VALUE_MAX));
		context->attribute_count += to->key && to->value;
	}
}

static void forget(struct process_context *context)
{
	arena_release(&context->arena);
	*context = (struct process_context){.address = context->address};
}

bool process_context_decode(struct process_context *context, const uint8_t *payload, size_t length)
{
	forget(context);
	arena_init(&context->arena, ARENA_LIMIT);
	if (otlp_resource_attributes(payload, length, take_attribute, context) &&
	    !context->arena.failed)
		return true;
	forget(context);
	return false;
}

static bool read_header(int directory, uint64_t address, struct context_header *header)
{
	return stranger_memory_read(directory, address, header, sizeof *header) &&
	       !memcmp(header->signature, signature, sizeof signature) &&
	       header->version == VERSION && header->payload_size <= OTLP_ATTRIBUTES_BYTES_MAX;
}

/* The payload counts if the header says the same after it was read. */
static enum process_context_state read_payload(int directory, struct process_context *context,
					       const struct context_header *header)
{
	struct context_header after;
	uint8_t *payload = malloc(header->payload_size + 1);
	enum process_context_state state = PROCESS_CONTEXT_LATER;

	if (payload &&
	    stranger_memory_read(directory, header->payload, payload, header->payload_size) &&
	    read_header(directory, context->address, &after) &&
	    !memcmp(&after, header, sizeof after)) {
		state = process_context_decode(context, payload, header->payload_size)
				? PROCESS_CONTEXT_NEW
				: PROCESS_CONTEXT_GONE;
		context->published_at_ns = header->published_at_ns;
	}
	free(payload);
	return state;
}

enum process_context_state process_context_read(int directory, struct process_context *context,
						bool force)
{
	enum process_context_state state = PROCESS_CONTEXT_GONE;
	struct context_header header;

	if (read_header(directory, context->address, &header)) {
		if (!header.published_at_ns)
			state = PROCESS_CONTEXT_LATER;
		else if (header.published_at_ns == context->published_at_ns && !force)
			state = PROCESS_CONTEXT_SAME;
		else
			state = read_payload(directory, context, &header);
	}
	if (state == PROCESS_CONTEXT_GONE)
		forget(context);
	return state;
}

void process_context_release(struct process_context *context)
{
	forget(context);
}
