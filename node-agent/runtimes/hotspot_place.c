/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_place.h"

#include "node-agent/runtimes/hotspot_counters.h"
#include "node-agent/runtimes/hotspot_interpreter.h"

enum {
	LOG2_MIN = 4, /* of a segment; 128 bytes are usual */
	LOG2_MAX = 16,
};

/* ReservedCodeCacheSize may be 2 GiB at most. */
#define CACHE_BYTES_MAX (4ULL << 30)

static bool read_word(const struct python_memory *memory, uint64_t address, uint64_t *word)
{
	return memory->read(memory->context, address, word, sizeof *word);
}

static bool read_int(const struct python_memory *memory, uint64_t address, uint32_t *number)
{
	return memory->read(memory->context, address, number, sizeof *number);
}

static bool read_heap(const struct python_memory *memory, const struct hotspot_layout *layout,
		      uint64_t at, struct hotspot_heap *heap)
{
	*heap = (struct hotspot_heap){.block_header = layout->block_header};
	return read_word(memory, at + layout->heap_low, (uint64_t *)&heap->low) &&
	       read_word(memory, at + layout->heap_high, (uint64_t *)&heap->high) &&
	       read_word(memory, at + layout->heap_map, (uint64_t *)&heap->segment_map) &&
	       read_int(memory, at + layout->heap_segment_log2, &heap->segment_log2);
}

static bool is_sound(const struct hotspot_heap *heap)
{
	return heap->low && heap->low < heap->high && heap->high - heap->low <= CACHE_BYTES_MAX &&
	       heap->high >> HOTSPOT_ADDRESS_BITS == 0 && heap->segment_map &&
	       heap->segment_log2 >= LOG2_MIN && heap->segment_log2 <= LOG2_MAX;
}

static enum hotspot_found add_heap(const struct python_memory *memory,
				   const struct hotspot_layout *layout, uint64_t at,
				   struct hotspot_place *place)
{
	struct hotspot_heap heap;

	if (!at || !read_heap(memory, layout, at, &heap))
		return HOTSPOT_NOT_STARTED;
	if (!is_sound(&heap) || place->heap_count == HOTSPOT_HEAPS_MAX)
		return HOTSPOT_WRONG;
	if (!place->heap_count || heap.low < place->low)
		place->low = heap.low;
	if (heap.high > place->high)
		place->high = heap.high;
	place->heaps[place->heap_count++] = heap;
	return HOTSPOT_FOUND;
}

static enum hotspot_found add_heaps(const struct python_memory *memory,
				    const struct hotspot_layout *layout,
				    struct hotspot_place *place)
{
	uint64_t heaps, items, heap;
	uint32_t count;

	if (!read_word(memory, layout->heaps, &heaps) || !heaps)
		return HOTSPOT_NOT_STARTED;
	if (layout->flags & HOTSPOT_LAYOUT_ONE_HEAP)
		return add_heap(memory, layout, heaps, place);
	if (!read_int(memory, heaps + layout->growable_length, &count) || !count ||
	    !read_word(memory, heaps + layout->growable_data, &items))
		return HOTSPOT_NOT_STARTED;
	if (count > HOTSPOT_HEAPS_MAX)
		return HOTSPOT_WRONG;
	for (uint32_t i = 0; i < count; i++) {
		enum hotspot_found found = HOTSPOT_NOT_STARTED;

		if (read_word(memory, items + i * sizeof heap, &heap))
			found = add_heap(memory, layout, heap, place);
		if (found != HOTSPOT_FOUND)
			return found;
	}
	return HOTSPOT_FOUND;
}

/* The main thread is the first, which is added when all code of the machine's own is made. */
static bool has_thread(const struct python_memory *memory, const struct hotspot_layout *layout)
{
	uint64_t list;
	uint32_t length;

	if (!read_word(memory, layout->threads, &list) || !list)
		return false;
	return layout->flags & HOTSPOT_LAYOUT_THREADS_LINKED ||
	       (read_int(memory, list + layout->list_length, &length) && length);
}

/* Of a version that does not tell: 0. */
static uint64_t read_told(const struct python_memory *memory, uint64_t address)
{
	uint64_t word;

	return address && read_word(memory, address, &word) ? word : 0;
}

enum hotspot_found hotspot_place_read(const struct python_memory *memory,
				      const struct hotspot_layout *layout,
				      struct hotspot_place *place)
{
	enum hotspot_found found;

	*place = (struct hotspot_place){0};
	/* Of the first code that is made behind the heaps, all of them. */
	if (!read_told(memory, layout->call_stub_return))
		return HOTSPOT_NOT_STARTED;
	found = add_heaps(memory, layout, place);
	if (found != HOTSPOT_FOUND)
		return found;
	hotspot_layout_walk(layout, &place->layout);
	place->return_barrier = read_told(memory, layout->return_barrier);
	place->entry_return = read_told(memory, layout->continuation_return);
	place->unloads_at = hotspot_counter_find(memory, read_told(memory, layout->counters),
						 "java.cls.unloadedClasses");
	if (has_thread(memory, layout))
		hotspot_interpreter_read(memory, layout, place);
	return HOTSPOT_FOUND;
}
