/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are the memory of a process with HotSpot: its tables, and what they lead to. */
#include "node-agent/runtimes/hotspot_place.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/runtimes/hotspot_tables.h"

static void check_part(const struct hotspot_layout *layout, const uint8_t *bytes)
{
	for (int part = HOTSPOT_PART_CODE; part <= HOTSPOT_PART_SCOPES_PCS; part++) {
		uint64_t begin;
		uint32_t size;

		if (hotspot_layout_part(layout, bytes, TABLES_AT, part, &begin, &size) &&
		    size > HOTSPOT_PART_BYTES_MAX)
			abort();
	}
}

static void check_place(const struct hotspot_place *place)
{
	if (!place->heap_count || place->heap_count > HOTSPOT_HEAPS_MAX ||
	    place->interpreter.entry_count > HOTSPOT_ENTRIES_MAX || place->low >= place->high)
		abort();
	for (uint32_t i = 0; i < place->heap_count; i++)
		if (place->heaps[i].low < place->low || place->heaps[i].high > place->high ||
		    place->heaps[i].segment_log2 > 31)
			abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct tables_image image = {bytes, length};
	const struct python_memory memory = {tables_read, &image};
	const struct runtime_symbols symbols = tables_symbols();
	struct hotspot_structs *structs = hotspot_structs_read(&memory, &symbols, TABLES_AT, NULL);
	struct hotspot_layout layout;
	struct hotspot_place place;

	if (structs && hotspot_structs_rows(structs) > HOTSPOT_ROWS_MAX)
		abort();
	if (structs && hotspot_layout_fill(structs, &memory, &layout, NULL)) {
		if (layout.nmethod_bytes > HOTSPOT_BLOB_BYTES)
			abort();
		if (length >= HOTSPOT_BLOB_BYTES)
			check_part(&layout, bytes + length - HOTSPOT_BLOB_BYTES);
		if (hotspot_place_read(&memory, &layout, &place) == HOTSPOT_FOUND)
			check_place(&place);
	}
	hotspot_structs_free(structs);
}
