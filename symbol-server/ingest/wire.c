/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/wire.h"

#include <endian.h>

enum { TAG_BYTES_MAX = 5 };

static bool read_fixed(struct wire *wire, size_t size, uint64_t *value)
{
	uint64_t raw = 0;

	if ((size_t)(wire->end - wire->at) < size)
		return false;
	memcpy(&raw, wire->at, size);
	wire->at += size;
	*value = le64toh(raw);
	return true;
}

static bool read_bytes(struct wire *wire, struct wire *bytes)
{
	uint64_t length;

	if (!wire_varint(wire, &length) || length > (uint64_t)(wire->end - wire->at))
		return false;
	*bytes = (struct wire){wire->at, wire->at + length};
	wire->at += length;
	return true;
}

int wire_next(struct wire *wire, struct wire_field *field)
{
	const uint8_t *start = wire->at;
	bool ok = false;
	uint64_t tag;

	if (wire->at == wire->end)
		return 0;
	if (!wire_varint(wire, &tag) || wire->at - start > TAG_BYTES_MAX)
		return -1;
	field->number = (uint32_t)tag >> 3;
	field->type = tag & 7;
	switch (tag & 7) {
	case WIRE_VARINT:
		ok = wire_varint(wire, &field->value);
		break;
	case WIRE_FIXED64:
		ok = read_fixed(wire, 8, &field->value);
		break;
	case WIRE_BYTES:
		ok = read_bytes(wire, &field->bytes);
		break;
	case WIRE_FIXED32:
		ok = read_fixed(wire, 4, &field->value);
		break;
	}
	return ok && field->number ? 1 : -1;
}

/* What a field number of a message must look like. */
struct field_rule {
	uint8_t number;
	uint8_t type;   /* enum wire_type */
	int8_t message; /* of BYTES fields that hold one; -1: bytes */
};

static const struct field_rule rules[WIRE_MESSAGE_COUNT][10] = {
	[WIRE_ANY_VALUE] = {{1, WIRE_BYTES, -1},
			    {2, WIRE_VARINT, -1},
			    {3, WIRE_VARINT, -1},
			    {4, WIRE_FIXED64, -1},
			    {5, WIRE_BYTES, WIRE_ARRAY_VALUE},
			    {6, WIRE_BYTES, WIRE_KEY_VALUE_LIST},
			    {7, WIRE_BYTES, -1},
			    {8, WIRE_VARINT, -1}},
	[WIRE_ARRAY_VALUE] = {{1, WIRE_BYTES, WIRE_ANY_VALUE}},
	[WIRE_KEY_VALUE_LIST] = {{1, WIRE_BYTES, WIRE_KEY_VALUE}},
	[WIRE_KEY_VALUE] = {{1, WIRE_BYTES, -1},
			    {2, WIRE_BYTES, WIRE_ANY_VALUE},
			    {3, WIRE_VARINT, -1}},
	[WIRE_SCOPE] = {{1, WIRE_BYTES, -1},
			{2, WIRE_BYTES, -1},
			{3, WIRE_BYTES, WIRE_KEY_VALUE},
			{4, WIRE_VARINT, -1}},
	[WIRE_LINK] = {{1, WIRE_BYTES, -1}, {2, WIRE_BYTES, -1}},
};

static const struct field_rule *rule_of(enum wire_message message, uint32_t number)
{
	for (const struct field_rule *rule = rules[message]; rule->number; rule++)
		if (rule->number == number)
			return rule;
	return NULL;
}

bool wire_check(struct wire wire, enum wire_message message, unsigned depth)
{
	struct wire_field field;
	int got;

	if (depth > WIRE_DEPTH_MAX)
		return false;
	while ((got = wire_next(&wire, &field)) > 0) {
		const struct field_rule *rule = rule_of(message, field.number);

		if (!rule)
			continue;
		if (field.type != rule->type)
			return false;
		if (rule->message >= 0 &&
		    !wire_check(field.bytes, (enum wire_message)rule->message, depth + 1))
			return false;
	}
	return got == 0;
}
