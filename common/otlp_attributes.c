/* SPDX-License-Identifier: Apache-2.0 */
#include "common/otlp_attributes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"

enum {
	/* of messages: */
	RESOURCE_ATTRIBUTES = 1,
	PAIR_KEY = 1,
	PAIR_VALUE = 2,
	VALUE_TEXT = 1,
	VALUE_TRUTH = 2,
	VALUE_INTEGER = 3,
	VALUE_DOUBLE = 4,
	VALUE_LIST = 5,
	LIST_VALUES = 1,
	/* protobuf's wire types: */
	WIRE_VARINT = 0,
	WIRE_EIGHT = 1,
	WIRE_BYTES = 2,
	WIRE_FOUR = 5,
	/* Some such texts for each byte of the message would be too many. */
	ARENA_LIMIT = 2 << 20,
	NUMBER_TEXT = 32,
};

struct message {
	const uint8_t *at, *end;
};

struct field {
	uint32_t number, type;
	uint64_t value; /* WIRE_VARINT, WIRE_EIGHT */
	struct message bytes;
};

static bool take_varint(struct message *message, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && message->at < message->end; shift += 7) {
		const uint8_t byte = *message->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_bytes(struct message *message, uint64_t length, struct message *bytes)
{
	if (length > (uint64_t)(message->end - message->at))
		return false;
	*bytes = (struct message){message->at, message->at + length};
	message->at += length;
	return true;
}

/* False: the end, or *is_bad. */
static bool next_field(struct message *message, struct field *field, bool *is_bad)
{
	uint64_t tag, length = 0;
	bool ok;

	if (*is_bad || message->at == message->end)
		return false;
	ok = take_varint(message, &tag) && tag >> 3 && tag >> 3 < 1 << 29;
	field->number = (uint32_t)(tag >> 3);
	field->type = (uint32_t)(tag & 7);
	switch (ok ? field->type : UINT32_MAX) {
	case WIRE_VARINT:
		ok = take_varint(message, &field->value);
		break;
	case WIRE_BYTES:
		ok = take_varint(message, &length) && take_bytes(message, length, &field->bytes);
		break;
	case WIRE_EIGHT:
		ok = take_bytes(message, 8, &field->bytes);
		if (ok)
			memcpy(&field->value, field->bytes.at, 8);
		break;
	case WIRE_FOUR:
		ok = take_bytes(message, 4, &field->bytes);
		break;
	default:
		ok = false;
	}
	*is_bad = !ok;
	return ok;
}

static const char *text_of(struct arena *arena, struct message bytes)
{
	return arena_text(arena, (const char *)bytes.at, (size_t)(bytes.end - bytes.at));
}

static const char *number_text(struct arena *arena, const struct field *field)
{
	char text[NUMBER_TEXT];
	double number;

	memcpy(&number, &field->value, sizeof number);
	if (field->number == VALUE_DOUBLE)
		snprintf(text, sizeof text, "%.17g", number);
	else
		snprintf(text, sizeof text, "%" PRId64, (int64_t)field->value);
	return arena_text(arena, text, strlen(text));
}

/* The last field counts, as protobuf has it. NULL: not a simple value; *list: it is a list. */
static const char *read_value(struct arena *arena, struct message value, struct message *list,
			      bool *is_bad)
{
	const char *text = NULL;
	struct field field;

	while (next_field(&value, &field, is_bad)) {
		if (field.number == VALUE_TEXT && field.type == WIRE_BYTES)
			text = text_of(arena, field.bytes);
		else if (field.number == VALUE_TRUTH && field.type == WIRE_VARINT)
			text = field.value ? "true" : "false";
		else if ((field.number == VALUE_INTEGER && field.type == WIRE_VARINT) ||
			 (field.number == VALUE_DOUBLE && field.type == WIRE_EIGHT))
			text = number_text(arena, &field);
		else if (field.number == VALUE_LIST && field.type == WIRE_BYTES && list)
			*list = field.bytes;
	}
	return text;
}

static void read_list(struct arena *arena, struct message list, struct otlp_attribute *attribute,
		      bool *is_bad)
{
	struct message counted = list;
	struct field field;
	const char **texts;
	size_t count = 0;

	while (next_field(&counted, &field, is_bad))
		count += field.number == LIST_VALUES && field.type == WIRE_BYTES;
	texts = arena_array(arena, count, sizeof *texts);
	for (count = 0; texts && next_field(&list, &field, is_bad);) {
		if (field.number != LIST_VALUES || field.type != WIRE_BYTES)
			continue;
		texts[count] = read_value(arena, field.bytes, NULL, is_bad);
		if (!texts[count])
			texts[count] = "";
		count++;
	}
	attribute->list = texts;
	attribute->list_count = count;
}

static bool read_pair(struct arena *arena, struct message pair, struct otlp_attribute *attribute)
{
	struct message value = {0}, list = {0};
	struct field field;
	bool is_bad = false;

	*attribute = (struct otlp_attribute){0};
	while (next_field(&pair, &field, &is_bad)) {
		if (field.type != WIRE_BYTES)
			continue;
		if (field.number == PAIR_KEY)
			attribute->key = text_of(arena, field.bytes);
		else if (field.number == PAIR_VALUE)
			value = field.bytes;
	}
	attribute->value = read_value(arena, value, &list, &is_bad);
	if (!attribute->value && list.at)
		read_list(arena, list, attribute, &is_bad);
	return !is_bad && !arena->failed;
}

bool otlp_resource_attributes(const uint8_t *bytes, size_t length,
			      void (*found)(void *context, const struct otlp_attribute *attribute),
			      void *context)
{
	struct message resource = {bytes, bytes + length};
	struct arena arena;
	struct field field;
	bool is_bad = length > OTLP_ATTRIBUTES_BYTES_MAX;

	arena_init(&arena, ARENA_LIMIT);
	while (next_field(&resource, &field, &is_bad)) {
		struct otlp_attribute attribute;

		if (field.number != RESOURCE_ATTRIBUTES || field.type != WIRE_BYTES)
			continue;
		is_bad = !read_pair(&arena, field.bytes, &attribute);
		if (!is_bad && attribute.key && *attribute.key &&
		    (attribute.value || attribute.list))
			found(context, &attribute);
	}
	arena_release(&arena);
	return !is_bad;
}
