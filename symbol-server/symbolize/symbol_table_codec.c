/* SPDX-License-Identifier: Apache-2.0 */
/* Packed bytes, all little-endian:
 *
 *	header		struct packed_header
 *	columns		one zstd frame each, in the order of enum column
 *
 * Columns of numbers are varints of the difference to the value before (zigzag where it may fall).
 */
#include "symbol-server/symbolize/symbol_table.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/table_memory.h"

enum column {
	COLUMN_START,
	COLUMN_LOCATION,
	COLUMN_NODE,
	COLUMN_FILE,
	COLUMN_LINE,
	COLUMN_NAME,
	COLUMN_PARENT,
	COLUMN_CALL_FILE,
	COLUMN_CALL_LINE,
	COLUMN_STRINGS,
	COLUMNS,
};

enum {
	VARINT_MAX = 5, /* bytes of a zigzag difference of two 32-bit numbers */
	ZSTD_LEVEL = 5, /* 3 leaves 3 % more, 19 takes 40 times the time for another tenth */
	RANGES_MAX = 50000000,
	NODES_MAX = 50000000,
	STRINGS_MAX = 1 << 30,
	BUCKET_SHIFT_MIN = 7, /* 128 bytes of code */
	BASES = ADDRESS_MODULE_TEXT + 1,
};

struct packed_header {
	char magic[8];
	uint64_t hash; /* hash_bytes() of everything behind this field */
	uint32_t format, flags, quality, functions;
	uint64_t first;
	uint64_t base_addresses[BASES];
	uint32_t bases_known; /* bit per base */
	uint32_t ranges, locations, nodes;
	uint32_t plain[COLUMNS], packed[COLUMNS]; /* bytes before and after zstd */
	uint64_t load_address; /* since format 2; whether it is known: bit BASES */
};

#define HEADER_BYTES_1 offsetof(struct packed_header, load_address)

#define HASHED_FROM offsetof(struct packed_header, format)

static const char magic[8] = "FFSYMTAB";

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the packed header is written as it lies");

/* ---- packing ---- */

static uint8_t *put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *put_difference(uint8_t *at, uint32_t value, uint32_t *previous)
{
	at = put(at, zigzag_encode((int64_t)value - (int64_t)*previous));
	*previous = value;
	return at;
}

/* Column of one field of rows that lie stride bytes apart. */
static size_t put_field(uint8_t *out, const uint32_t *field, size_t stride, uint32_t count)
{
	uint8_t *at = out;
	uint32_t previous = 0;

	for (uint32_t i = 0; i < count; i++)
		at = put_difference(at, *(const uint32_t *)((const uint8_t *)field + i * stride),
				    &previous);
	return (size_t)(at - out);
}

/* Holes as 0, a location that follows the one before as 1: most are. */
static size_t put_locations(uint8_t *out, const uint32_t *locations, uint32_t count)
{
	uint8_t *at = out;
	int64_t previous = -1;

	for (uint32_t i = 0; i < count; i++) {
		if (locations[i] == SYMBOL_NONE) {
			at = put(at, 0);
			continue;
		}
		at = put(at, zigzag_encode((int64_t)locations[i] - previous - 1) + 1);
		previous = locations[i];
	}
	return (size_t)(at - out);
}

static size_t put_parents(uint8_t *out, const struct symbol_node *nodes, uint32_t count)
{
	uint8_t *at = out;

	for (uint32_t i = 0; i < count; i++)
		at = put(at, nodes[i].parent == SYMBOL_NONE ? 0 : i - nodes[i].parent);
	return (size_t)(at - out);
}

static size_t put_column(const struct symbol_table *table, enum column column, uint8_t *out)
{
	const struct symbol_location *rows = table->location_rows;
	const struct symbol_node *nodes = table->nodes;
	uint32_t locations = table->location_count, count = table->node_count;

	switch (column) {
	case COLUMN_START:
		return put_field(out, table->starts, sizeof(uint32_t), table->range_count);
	case COLUMN_LOCATION:
		return put_locations(out, table->locations, table->range_count);
	case COLUMN_NODE:
		return put_field(out, &rows->node, sizeof(*rows), locations);
	case COLUMN_FILE:
		return put_field(out, &rows->file, sizeof(*rows), locations);
	case COLUMN_LINE:
		return put_field(out, &rows->line, sizeof(*rows), locations);
	case COLUMN_NAME:
		return put_field(out, &nodes->name, sizeof(*nodes), count);
	case COLUMN_PARENT:
		return put_parents(out, nodes, count);
	case COLUMN_CALL_FILE:
		return put_field(out, &nodes->call_file, sizeof(*nodes), count);
	case COLUMN_CALL_LINE:
		return put_field(out, &nodes->call_line, sizeof(*nodes), count);
	case COLUMN_STRINGS:
	case COLUMNS:
		break;
	}
	memcpy(out, table->strings, table->string_bytes);
	return table->string_bytes;
}

static bool append_column(const void *plain, size_t length, struct buffer *out, uint32_t *packed,
			  struct error *err)
{
	size_t bound = ZSTD_compressBound(length), size;
	uint8_t *room = buffer_reserve(out, bound);

	if (!room)
		return error_set(err, ERROR_LIMIT, "the packed table passes %zu bytes", out->limit);
	size = ZSTD_compress(room, bound, plain, length, ZSTD_LEVEL);
	if (ZSTD_isError(size))
		return error_set(err, ERROR_MEMORY, "zstd: %s", ZSTD_getErrorName(size));
	out->length += size;
	*packed = (uint32_t)size;
	return true;
}

static void fill_header(const struct symbol_table *table, struct packed_header *header)
{
	memcpy(header->magic, magic, sizeof(magic));
	header->format = SYMBOL_TABLE_FORMAT;
	header->flags = table->flags;
	header->quality = symbol_quality_numbers[table->quality];
	header->functions = table->function_count;
	header->first = table->first;
	header->ranges = table->range_count;
	header->locations = table->location_count;
	header->nodes = table->node_count;
	for (int i = 0; i < BASES; i++) {
		header->base_addresses[i] = table->bases[i].address;
		header->bases_known |= (uint32_t)table->bases[i].is_known << i;
	}
	header->load_address = table->load.address;
	header->bases_known |= (uint32_t)table->load.is_known << BASES;
}

bool symbol_table_pack(const struct symbol_table *table, struct buffer *out, struct error *err)
{
	size_t start = out->length;
	size_t room = table->range_count;
	struct packed_header header = {0};
	uint8_t *plain = NULL;
	bool ok = false;

	if (room < table->location_count)
		room = table->location_count;
	if (room < table->node_count)
		room = table->node_count;
	room = room * VARINT_MAX > table->string_bytes ? room * VARINT_MAX : table->string_bytes;
	fill_header(table, &header);
	buffer_append(out, &header, sizeof(header));
	plain = malloc(room + 1);
	if (!plain || out->failed) {
		error_set(err, ERROR_MEMORY, "no memory to pack a table");
		goto out;
	}
	for (enum column i = 0; i < COLUMNS; i++) {
		header.plain[i] = (uint32_t)put_column(table, i, plain);
		if (!append_column(plain, header.plain[i], out, &header.packed[i], err))
			goto out;
	}
	memcpy(out->bytes + start, &header, sizeof(header));
	header.hash = hash_bytes(out->bytes + start + HASHED_FROM,
				 out->length - start - HASHED_FROM, 0);
	memcpy(out->bytes + start, &header, sizeof(header));
	ok = true;
out:
	free(plain);
	return ok;
}

/* ---- unpacking ---- */

/* One column's values, taken one by one; is_bad sticks. */
struct column_reader {
	const uint8_t *at, *end;
	uint32_t previous;
	bool is_bad;
};

static uint64_t take(struct column_reader *reader)
{
	uint64_t value = 0;

	if (!varint_read(&reader->at, reader->end, &value)) {
		reader->is_bad = true;
		reader->at = reader->end;
	}
	return value;
}

static uint32_t take_difference(struct column_reader *reader)
{
	int64_t value = zigzag_decode(take(reader));

	/* Two steps, so that no sum of hostile numbers overflows. */
	if (value < -(int64_t)UINT32_MAX || value > (int64_t)UINT32_MAX)
		reader->is_bad = true;
	else
		value += reader->previous;
	if (value < 0 || value >= (int64_t)SYMBOL_NONE)
		reader->is_bad = true;
	reader->previous = (uint32_t)value;
	return reader->previous;
}

static uint32_t take_location(struct column_reader *reader)
{
	uint64_t code = take(reader);
	int64_t value;

	if (code == 0)
		return SYMBOL_NONE;
	value = zigzag_decode(code - 1);
	if (value < -(int64_t)UINT32_MAX || value > (int64_t)UINT32_MAX)
		reader->is_bad = true;
	else
		value += reader->previous; /* starts at 0: "one more than −1" */
	if (value < 0 || value >= (int64_t)SYMBOL_NONE - 1)
		reader->is_bad = true;
	reader->previous = (uint32_t)value + 1;
	return (uint32_t)value;
}

/* Reads the header of any format there is; *at: the first column. */
static bool read_header(const void *bytes, size_t length, struct packed_header *header,
			const uint8_t **at, struct error *err)
{
	size_t size = HEADER_BYTES_1;

	memset(header, 0, sizeof(*header));
	if (length < size)
		return error_set(err, ERROR_FORMAT, "symbol table of %zu bytes is cut short",
				 length);
	memcpy(header, bytes, size);
	if (memcmp(header->magic, magic, sizeof(magic)))
		return error_set(err, ERROR_FORMAT, "not a packed symbol table");
	if (header->format < SYMBOL_TABLE_OLDEST || header->format > SYMBOL_TABLE_FORMAT)
		return error_set(err, ERROR_FORMAT,
				 "symbol table of format %u, this version reads %d to %d",
				 header->format, SYMBOL_TABLE_OLDEST, SYMBOL_TABLE_FORMAT);
	if (header->format >= 2)
		size = sizeof(*header);
	if (length < size)
		return error_set(err, ERROR_FORMAT, "symbol table of %zu bytes is cut short",
				 length);
	memcpy(header, bytes, size);
	*at = (const uint8_t *)bytes + size;
	return true;
}

/* length: of the columns. */
static bool check_header(const struct packed_header *header, size_t length, struct error *err)
{
	uint64_t total = 0;

	if (header->ranges > RANGES_MAX || header->locations > RANGES_MAX ||
	    header->nodes > NODES_MAX || header->plain[COLUMN_STRINGS] > STRINGS_MAX)
		return error_set(err, ERROR_LIMIT, "symbol table of too many entries");
	if (symbol_quality_of(header->quality) == QUALITY_COUNT || !header->plain[COLUMN_STRINGS])
		return error_set(err, ERROR_FORMAT, "symbol table with a damaged header");
	for (enum column i = 0; i < COLUMNS; i++) {
		uint32_t count = i <= COLUMN_LOCATION ? header->ranges
				 : i <= COLUMN_LINE   ? header->locations
						      : header->nodes;

		total += header->packed[i];
		if (i != COLUMN_STRINGS && header->plain[i] > (uint64_t)count * VARINT_MAX)
			return error_set(err, ERROR_FORMAT, "symbol table: column %d is too long",
					 i);
	}
	if (total != length)
		return error_set(err, ERROR_FORMAT,
				 "symbol table with %zu bytes of columns, its header says %llu",
				 length, (unsigned long long)total);
	return true;
}

static unsigned bucket_shift_for(uint64_t span, uint32_t ranges)
{
	unsigned shift = BUCKET_SHIFT_MIN;

	while (span >> shift > 2 * (uint64_t)ranges + 1024)
		shift++;
	return shift;
}

/* One allocation for struct and arrays. The span is known only once the starts are: buckets get the
 * most that bucket_shift_for() leaves. */
static struct symbol_table *allocate(const struct packed_header *header, size_t limit_bytes,
				     struct error *err)
{
	size_t buckets = 2 * (size_t)header->ranges + 1024 + 3;
	size_t size = sizeof(struct symbol_table) + header->nodes * sizeof(struct symbol_node) +
		      header->locations * sizeof(struct symbol_location) +
		      (2 * (size_t)header->ranges + buckets) * sizeof(uint32_t) +
		      header->plain[COLUMN_STRINGS];
	struct symbol_table *table;
	uint8_t *at;

	if (size > limit_bytes) {
		error_set(err, ERROR_LIMIT,
			  "symbol table needs %zu MB of memory, the limit is %zu MB", size >> 20,
			  limit_bytes >> 20);
		return NULL;
	}
	table = table_memory_take(size);
	if (!table) {
		error_set(err, ERROR_MEMORY, "no memory for a symbol table of %zu MB", size >> 20);
		return NULL;
	}
	memset(table, 0, sizeof(*table));
	table->bytes = size;
	at = (uint8_t *)(table + 1);
	table->nodes = (void *)at;
	at += header->nodes * sizeof(struct symbol_node);
	table->location_rows = (void *)at;
	at += header->locations * sizeof(struct symbol_location);
	table->starts = (void *)at;
	at += header->ranges * sizeof(uint32_t);
	table->locations = (void *)at;
	at += header->ranges * sizeof(uint32_t);
	table->buckets = (void *)at;
	at += buckets * sizeof(uint32_t);
	table->strings = (void *)at;
	return table;
}

static void take_header(struct symbol_table *table, const struct packed_header *header)
{
	table->range_count = header->ranges;
	table->location_count = header->locations;
	table->node_count = header->nodes;
	table->string_bytes = header->plain[COLUMN_STRINGS];
	table->function_count = header->functions;
	table->flags = header->flags;
	table->quality = symbol_quality_of(header->quality);
	table->first = header->first;
	for (int i = 0; i < BASES; i++) {
		table->bases[i].is_known = header->bases_known >> i & 1;
		table->bases[i].address = header->base_addresses[i];
	}
	table->load.is_known = header->format >= 2 && (header->bases_known >> BASES & 1);
	table->load.address = header->load_address;
	atomic_init(&table->references, 1);
}

static bool unpack_starts(struct symbol_table *table, struct column_reader *reader)
{
	uint32_t *starts = (uint32_t *)table->starts;

	for (uint32_t i = 0; i < table->range_count; i++) {
		starts[i] = take_difference(reader);
		if (i ? starts[i] <= starts[i - 1] : starts[i] != 0)
			return false;
	}
	return true;
}

static bool unpack_locations(struct symbol_table *table, struct column_reader *reader)
{
	uint32_t *locations = (uint32_t *)table->locations;

	for (uint32_t i = 0; i < table->range_count; i++) {
		locations[i] = take_location(reader);
		if (locations[i] != SYMBOL_NONE && locations[i] >= table->location_count)
			return false;
	}
	return !table->range_count || locations[table->range_count - 1] == SYMBOL_NONE;
}

/* A field of rows stride bytes apart; every value below limit. */
static bool unpack_field(struct column_reader *reader, const uint32_t *field, size_t stride,
			 uint32_t count, uint32_t limit)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t value = take_difference(reader);

		if (value >= limit)
			return false;
		*(uint32_t *)((uint8_t *)field + i * stride) = value;
	}
	return true;
}

/* Parents come before their children, so there is no cycle; chains fit SYMBOL_CHAIN_MAX. */
static bool unpack_parents(struct symbol_table *table, struct column_reader *reader)
{
	struct symbol_node *nodes = (struct symbol_node *)table->nodes;
	uint16_t *depths = malloc((table->node_count + 1) * sizeof(*depths));
	bool ok = depths != NULL;

	for (uint32_t i = 0; ok && i < table->node_count; i++) {
		uint64_t distance = take(reader);

		nodes[i].parent = distance && distance <= i ? i - (uint32_t)distance : SYMBOL_NONE;
		depths[i] = 1;
		if (nodes[i].parent != SYMBOL_NONE)
			depths[i] += depths[nodes[i].parent];
		ok = distance <= i && depths[i] <= SYMBOL_CHAIN_MAX;
	}
	free(depths);
	return ok;
}

static bool check_strings(const struct symbol_table *table)
{
	if (table->strings[0] || table->strings[table->string_bytes - 1])
		return false;
	for (uint32_t i = 0; i < table->node_count; i++)
		if (!table->strings[table->nodes[i].name])
			return false;
	return true;
}

static bool unpack_column(struct symbol_table *table, enum column column,
			  struct column_reader *reader)
{
	const struct symbol_location *rows = table->location_rows;
	const struct symbol_node *nodes = table->nodes;
	uint32_t locations = table->location_count, count = table->node_count;

	switch (column) {
	case COLUMN_START:
		return unpack_starts(table, reader);
	case COLUMN_LOCATION:
		return unpack_locations(table, reader);
	case COLUMN_NODE:
		return unpack_field(reader, &rows->node, sizeof(*rows), locations, count);
	case COLUMN_FILE:
		return unpack_field(reader, &rows->file, sizeof(*rows), locations,
				    table->string_bytes);
	case COLUMN_LINE:
		return unpack_field(reader, &rows->line, sizeof(*rows), locations, SYMBOL_NONE);
	case COLUMN_NAME:
		return unpack_field(reader, &nodes->name, sizeof(*nodes), count,
				    table->string_bytes);
	case COLUMN_PARENT:
		return unpack_parents(table, reader);
	case COLUMN_CALL_FILE:
		return unpack_field(reader, &nodes->call_file, sizeof(*nodes), count,
				    table->string_bytes);
	case COLUMN_CALL_LINE:
		return unpack_field(reader, &nodes->call_line, sizeof(*nodes), count, SYMBOL_NONE);
	case COLUMN_STRINGS:
	case COLUMNS:
		break;
	}
	return true;
}

static bool unpack_columns(struct symbol_table *table, const struct packed_header *header,
			   const uint8_t *at, uint8_t *plain, struct error *err)
{
	for (enum column i = 0; i < COLUMNS; at += header->packed[i], i++) {
		uint8_t *to = i == COLUMN_STRINGS ? (uint8_t *)table->strings : plain;
		size_t size = ZSTD_decompress(to, header->plain[i], at, header->packed[i]);
		struct column_reader reader = {.at = plain, .end = plain + header->plain[i]};

		if (ZSTD_isError(size) || size != header->plain[i])
			return error_set(err, ERROR_FORMAT, "symbol table: column %d is damaged",
					 i);
		if (!unpack_column(table, i, &reader) || reader.is_bad ||
		    (i != COLUMN_STRINGS && reader.at != reader.end))
			return error_set(err, ERROR_FORMAT,
					 "symbol table: column %d points outside", i);
	}
	return check_strings(table) || error_set(err, ERROR_FORMAT, "symbol table: damaged texts");
}

static void make_buckets(struct symbol_table *table)
{
	uint32_t *buckets = (uint32_t *)table->buckets;
	uint64_t span = table->range_count ? table->starts[table->range_count - 1] : 0;
	uint32_t range = 0;

	table->bucket_shift = bucket_shift_for(span, table->range_count);
	for (uint64_t i = 0; i <= (span >> table->bucket_shift) + 1; i++) {
		while (range < table->range_count &&
		       table->starts[range] < i << table->bucket_shift)
			range++;
		buckets[i] = range;
	}
}

struct symbol_table *symbol_table_unpack(const void *bytes, size_t length, size_t limit_bytes,
					 struct error *err)
{
	struct packed_header header;
	struct symbol_table *table = NULL;
	const uint8_t *columns = NULL;
	uint8_t *plain = NULL;
	uint32_t longest = 0;
	bool ok = false;

	if (!read_header(bytes, length, &header, &columns, err) ||
	    !check_header(&header, length - (size_t)(columns - (const uint8_t *)bytes), err))
		return NULL;
	if (header.hash !=
	    hash_bytes((const uint8_t *)bytes + HASHED_FROM, length - HASHED_FROM, 0)) {
		error_set(err, ERROR_FORMAT, "symbol table: its checksum is wrong");
		return NULL;
	}
	for (enum column i = 0; i < COLUMN_STRINGS; i++)
		longest = header.plain[i] > longest ? header.plain[i] : longest;
	table = allocate(&header, limit_bytes, err);
	if (!table)
		goto out;
	plain = table_memory_take((size_t)longest + 1);
	if (!plain) {
		error_set(err, ERROR_MEMORY, "no memory to unpack a symbol table");
		goto out;
	}
	take_header(table, &header);
	if (!unpack_columns(table, &header, columns, plain, err))
		goto out;
	make_buckets(table);
	ok = true;
out:
	table_memory_give(plain, (size_t)longest + 1);
	if (ok)
		return table;
	table_memory_give(table, table ? table->bytes : 0);
	return NULL;
}
