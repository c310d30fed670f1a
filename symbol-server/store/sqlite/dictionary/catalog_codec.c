/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions as bytes, LEB128 throughout; texts and ids as length and bytes. Stacks: both halves
 * of the hash (8 bytes each, little-endian), depth, then differences of location numbers, zigzag.
 * A runtime's own location is one of kind NATIVE whose kind has a byte too many: servers that know
 * no such kind read it as native, which it is. */
#include "symbol-server/store/sqlite/dictionary/catalog_items.h"

#include <string.h>

static void put_bytes(struct buffer *out, const void *bytes, size_t length)
{
	buffer_append_varint(out, length);
	buffer_append(out, bytes, length);
}

static void put_hash(struct buffer *out, uint64_t hash)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(hash >> (8 * i));
	buffer_append(out, bytes, sizeof bytes);
}

static void encode_module(const struct catalog_module *module, struct buffer *out)
{
	put_bytes(out, module->id.bytes, module->id.length);
	put_bytes(out, module->htlhash.bytes, module->htlhash.length);
	buffer_append_varint(out, module->go_id);
	buffer_append_varint(out, module->name);
	buffer_append_varint(out, module->base);
}

static const uint8_t runtime_kind[] = {0x80 | LOCATION_NATIVE, 0};

static void encode_location(const struct catalog_location *location, struct buffer *out)
{
	if (location->kind == LOCATION_RUNTIME)
		buffer_append(out, runtime_kind, sizeof runtime_kind);
	else
		buffer_append_varint(out, location->kind);
	buffer_append_varint(out, location->module);
	if (location_has_address(location->kind)) {
		buffer_append_varint(out, location->address);
		return;
	}
	buffer_append_varint(out, location->function);
	buffer_append_varint(out, location->file);
	buffer_append_varint(out, location->type);
	buffer_append_varint(out, location->line);
}

static void encode_stack(const struct catalog *catalog, const struct catalog_stack *stack,
			 struct buffer *out)
{
	uint32_t locations[SAMPLES_DEPTH_MAX], previous = 0;

	put_hash(out, stack->hash[0]);
	put_hash(out, stack->hash[1]);
	buffer_append_varint(out, stack->depth);
	catalog_stack_locations(catalog, stack, locations);
	for (uint32_t i = 0; i < stack->depth; i++) {
		buffer_append_varint(out, zigzag_encode((int64_t)locations[i] - previous));
		previous = locations[i];
	}
}

static void encode_series(const struct catalog_series *series, struct buffer *out)
{
	buffer_append_varint(out, series->tenant);
	buffer_append_varint(out, series->label_count);
	for (uint32_t i = 0; i < 2 * series->label_count; i++)
		buffer_append_varint(out, series->labels[i]);
}

void catalog_encode(const struct catalog *catalog, enum catalog_kind kind, uint32_t first,
		    uint32_t count, struct buffer *out)
{
	for (uint32_t n = first; n < first + count; n++) {
		const struct catalog_string *string;

		switch (kind) {
		case CATALOG_STRINGS:
			string = catalog_string(catalog, n);
			put_bytes(out, string->text, string->length);
			break;
		case CATALOG_MODULES:
			encode_module(catalog_module(catalog, n), out);
			break;
		case CATALOG_LOCATIONS:
			encode_location(catalog_location(catalog, n), out);
			break;
		case CATALOG_STACKS:
			encode_stack(catalog, catalog_stack(catalog, n), out);
			break;
		case CATALOG_SERIES:
			encode_series(catalog_series(catalog, n), out);
			break;
		case CATALOG_KINDS:
			break;
		}
	}
}

/* --- reading --- */

struct decoder {
	struct catalog *catalog;
	const uint8_t *at, *end;
	bool is_known; /* the item is defined already: read over it */
};

static bool get_number(struct decoder *decoder, uint64_t limit, uint32_t *number)
{
	uint64_t value;

	if (!varint_read(&decoder->at, decoder->end, &value) || value >= limit)
		return false;
	*number = (uint32_t)value;
	return true;
}

/* --- what is missing --- */

enum { MENDED_AT_ONCE = 1 << 20 };

static uint32_t put_mended(struct catalog *catalog, enum catalog_kind kind)
{
	static const char text[] = CATALOG_DAMAGED_TEXT;
	const struct catalog_module module = {0};
	const struct catalog_location location = {.kind = LOCATION_ANONYMOUS};
	const uint32_t overflow = 1; /* its location */

	switch (kind) {
	case CATALOG_STRINGS:
		return catalog_put_string(catalog, text, sizeof text - 1);
	case CATALOG_MODULES:
		return catalog_put_module(catalog, &module);
	case CATALOG_LOCATIONS:
		return catalog_put_location(catalog, &location);
	case CATALOG_STACKS:
		return catalog_put_stack(catalog,
					 catalog_stack(catalog, CATALOG_OVERFLOW_STACK)->hash,
					 &overflow, 1);
	case CATALOG_SERIES:
		return catalog_put_series(catalog, 0, NULL, 0);
	case CATALOG_KINDS:
		break;
	}
	return 0;
}

bool catalog_mend(struct catalog *catalog, enum catalog_kind kind, uint32_t until)
{
	const struct blocks *items = &catalog->items[kind];

	if (!until || (until > items->count && until - items->count > MENDED_AT_ONCE))
		return false;
	while (items->count < until) {
		if (!put_mended(catalog, kind))
			return false;
		catalog->mended++;
	}
	return true;
}

static bool is_defined(struct decoder *decoder, enum catalog_kind kind, uint32_t number)
{
	return number < decoder->catalog->items[kind].count ||
	       (decoder->catalog->mends && catalog_mend(decoder->catalog, kind, number + 1));
}

/* A reference: 0 or something defined. */
static bool get_reference(struct decoder *decoder, enum catalog_kind kind, uint32_t *number)
{
	return get_number(decoder, UINT32_MAX, number) && is_defined(decoder, kind, *number);
}

static bool get_bytes(struct decoder *decoder, struct bytes *bytes)
{
	uint64_t length;

	if (!varint_read(&decoder->at, decoder->end, &length) ||
	    length > (uint64_t)(decoder->end - decoder->at))
		return false;
	*bytes = (struct bytes){decoder->at, length};
	decoder->at += length;
	return true;
}

static bool get_id(struct decoder *decoder, struct build_id *id)
{
	struct bytes bytes;

	if (!get_bytes(decoder, &bytes))
		return false;
	id->length = 0;
	return !bytes.length || build_id_set(id, bytes.at, bytes.length);
}

static bool get_hash(struct decoder *decoder, uint64_t *hash)
{
	if (decoder->end - decoder->at < 8)
		return false;
	*hash = 0;
	for (int i = 0; i < 8; i++)
		*hash |= (uint64_t)decoder->at[i] << (8 * i);
	decoder->at += 8;
	return true;
}

static bool decode_string(struct decoder *decoder)
{
	struct bytes bytes;

	if (!get_bytes(decoder, &bytes) || bytes.length > UINT32_MAX ||
	    memchr(bytes.at, 0, bytes.length))
		return false;
	return decoder->is_known ||
	       catalog_put_string(decoder->catalog, (const char *)bytes.at, (uint32_t)bytes.length);
}

static bool decode_module(struct decoder *decoder)
{
	struct catalog_module module = {0};
	uint32_t base;

	if (!get_id(decoder, &module.id) || !get_id(decoder, &module.htlhash) ||
	    !get_reference(decoder, CATALOG_STRINGS, &module.go_id) ||
	    !get_reference(decoder, CATALOG_STRINGS, &module.name) ||
	    !get_number(decoder, ADDRESS_MODULE_TEXT + 1, &base))
		return false;
	module.base = base;
	return decoder->is_known || catalog_put_module(decoder->catalog, &module);
}

static bool decode_location(struct decoder *decoder)
{
	struct catalog_location location = {0};
	bool is_runtime = decoder->end - decoder->at >= (ptrdiff_t)sizeof runtime_kind &&
			  !memcmp(decoder->at, runtime_kind, sizeof runtime_kind);
	uint32_t kind;

	if (!get_number(decoder, LOCATION_INCOMPLETE + 1, &kind) ||
	    !get_reference(decoder, CATALOG_MODULES, &location.module))
		return false;
	location.kind = is_runtime ? LOCATION_RUNTIME : (enum location_kind)kind;
	if (location_has_address(location.kind)) {
		if (!varint_read(&decoder->at, decoder->end, &location.address))
			return false;
	} else if (!get_reference(decoder, CATALOG_STRINGS, &location.function) ||
		   !get_reference(decoder, CATALOG_STRINGS, &location.file) ||
		   !get_reference(decoder, CATALOG_STRINGS, &location.type) ||
		   !get_number(decoder, UINT32_MAX, &location.line)) {
		return false;
	}
	return decoder->is_known || catalog_put_location(decoder->catalog, &location);
}

static bool decode_stack(struct decoder *decoder)
{
	uint32_t locations[SAMPLES_DEPTH_MAX], depth;
	uint64_t hash[2], delta;
	int64_t previous = 0;

	if (!get_hash(decoder, &hash[0]) || !get_hash(decoder, &hash[1]) ||
	    !get_number(decoder, SAMPLES_DEPTH_MAX + 1, &depth))
		return false;
	for (uint32_t i = 0; i < depth; i++) {
		if (!varint_read(&decoder->at, decoder->end, &delta) || delta > UINT32_MAX)
			return false;
		previous += zigzag_decode(delta);
		if (previous <= 0 || previous > UINT32_MAX - 1 ||
		    !is_defined(decoder, CATALOG_LOCATIONS, (uint32_t)previous))
			return false;
		locations[i] = (uint32_t)previous;
	}
	return decoder->is_known || catalog_put_stack(decoder->catalog, hash, locations, depth);
}

static bool decode_series(struct decoder *decoder)
{
	uint32_t labels[2 * SAMPLES_LABELS_MAX], tenant, count;

	if (!get_number(decoder, UINT32_MAX, &tenant) ||
	    !get_number(decoder, SAMPLES_LABELS_MAX + 1, &count))
		return false;
	for (uint32_t i = 0; i < 2 * count; i++)
		if (!get_reference(decoder, CATALOG_STRINGS, &labels[i]))
			return false;
	return decoder->is_known || catalog_put_series(decoder->catalog, tenant, labels, count);
}

bool catalog_decode(struct catalog *catalog, enum catalog_kind kind, uint32_t first, uint32_t count,
		    const uint8_t **at, const uint8_t *end, struct error *err)
{
	static bool (*const decode[CATALOG_KINDS])(struct decoder *) = {
		decode_string, decode_module, decode_location, decode_stack, decode_series};
	struct decoder decoder = {catalog, *at, end, false};

	if (kind >= CATALOG_KINDS || !first || first > BLOCK_ITEMS * BLOCKS_MAX)
		return error_set(err, ERROR_FORMAT, "a definition of an unknown kind");
	if (catalog->mends)
		catalog_mend(catalog, kind, first);
	for (uint32_t i = 0; i < count; i++) {
		decoder.is_known = first + i < catalog->items[kind].count;
		if (first + i > catalog->items[kind].count)
			return error_set(err, ERROR_FORMAT,
					 "definition %u is there, the one before it is missing",
					 first + i);
		if (!decode[kind](&decoder))
			return error_set(err, ERROR_FORMAT, "definition %u cannot be read",
					 first + i);
	}
	*at = decoder.at;
	return true;
}
