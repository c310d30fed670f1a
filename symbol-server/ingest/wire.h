/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf fields read in place (protobuf.dev/programming-guides/encoding). As strict as
 * protobuf-c: a tag of more than 5 bytes, a group, or a field that does not end inside its message
 * is malformed. */
#ifndef SYMBOL_SERVER_INGEST_WIRE_H
#define SYMBOL_SERVER_INGEST_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire { /* what is left of a message; borrowed */
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;    /* VARINT, FIXED64, FIXED32 */
	struct wire bytes; /* BYTES */
};

/* At most 10 bytes; bits above 64 are dropped, as every protobuf library does. */
static inline bool wire_varint(struct wire *wire, uint64_t *value)
{
	const uint8_t *at = wire->at;
	uint64_t sum = 0;

	if (at < wire->end && *at < 0x80) {
		*value = *at;
		wire->at = at + 1;
		return true;
	}
	for (unsigned shift = 0; at < wire->end && shift < 70; shift += 7) {
		uint8_t byte = *at++;

		sum |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = sum;
			wire->at = at;
			return true;
		}
	}
	return false;
}

/* 1: field holds the next one; 0: the message has ended; -1: malformed. */
int wire_next(struct wire *wire, struct wire_field *field);

static inline int wire_next_fast(struct wire *wire, struct wire_field *field)
{
	const uint8_t *at = wire->at;

	/* The common case: one byte of tag and a value or length of one byte. */
	if (wire->end - at >= 2 && at[0] >= 8 && at[0] < 0x80 && at[1] < 0x80) {
		if ((at[0] & 7) == WIRE_VARINT) {
			field->number = at[0] >> 3;
			field->type = WIRE_VARINT;
			field->value = at[1];
			wire->at = at + 2;
			return 1;
		}
		if ((at[0] & 7) == WIRE_BYTES && wire->end - at - 2 >= at[1]) {
			field->number = at[0] >> 3;
			field->type = WIRE_BYTES;
			field->bytes = (struct wire){at + 2, at + 2 + at[1]};
			wire->at = at + 2 + at[1];
			return 1;
		}
	}
	return wire_next(wire, field);
}

/* A repeated scalar comes one by one (VARINT) or packed (BYTES); both are read the same way:
 *	if (!wire_scalars(&field, &run)) malformed;
 *	while (!wire_is_done(&run) && (ok = wire_scalar(&run, &value))) … */
struct wire_scalars {
	struct wire packed;
	uint64_t single;
	bool has_single;
};

static inline bool wire_scalars(const struct wire_field *field, struct wire_scalars *run)
{
	*run = (struct wire_scalars){.has_single = field->type == WIRE_VARINT};
	if (run->has_single)
		run->single = field->value;
	else
		run->packed = field->bytes;
	return field->type == WIRE_VARINT || field->type == WIRE_BYTES;
}

static inline bool wire_is_done(const struct wire_scalars *run)
{
	return !run->has_single && run->packed.at == run->packed.end;
}

static inline bool wire_scalar(struct wire_scalars *run, uint64_t *value)
{
	if (run->has_single) {
		run->has_single = false;
		*value = run->single;
		return true;
	}
	return wire_varint(&run->packed, value);
}

/* Messages nobody reads here, checked all the same so that what is accepted is protobuf as a whole.
 */
enum wire_message {
	WIRE_ANY_VALUE,
	WIRE_ARRAY_VALUE,
	WIRE_KEY_VALUE_LIST,
	WIRE_KEY_VALUE,
	WIRE_SCOPE,
	WIRE_LINK,
	WIRE_MESSAGE_COUNT,
};
enum { WIRE_DEPTH_MAX = 24 }; /* arrays in arrays; deeper is malformed */
bool wire_check(struct wire wire, enum wire_message message, unsigned depth);

#endif
