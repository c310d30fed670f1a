/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/jit_code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_BITS = 12,
	PAGES_MAX = 64, /* a function of more is looked for everywhere */
	HEADS_BITS = 12,
	HEADS = 1 << HEADS_BITS,
	WIDE = HEADS, /* the head of those */
	LOOKS_MAX = 4096,
	NONE = 0, /* index 0 of ranges and links is nobody's */
};

struct range {
	uint64_t start;
	uint64_t from_ns, seen_ns, until_ns; /* until 0: nothing says that it is over */
	uint32_t size, name, file, line, first_line;
	uint16_t line_count;
	uint8_t language;
};

struct link { /* newest first */
	uint32_t range, next;
};

/* One growing array. */
struct list {
	void *items;
	uint32_t count, room;
};

struct jit_code {
	size_t limit, bytes; /* of the lists */
	bool is_full;
	struct list ranges, links, lines, text;
	uint32_t heads[HEADS + 1];
	uint32_t files[64]; /* texts of files that were kept last, by hash */
};

/* --- lists --- */

static void *list_add(struct jit_code *code, struct list *list, uint32_t count, size_t size)
{
	uint32_t room = list->room ? list->room : 64;
	void *items;

	while (room < list->count + count)
		room += room / 2;
	if (room != list->room) {
		if (code->bytes + (room - list->room) * size > code->limit)
			return NULL;
		items = realloc(list->items, room * size);
		if (!items)
			return NULL;
		code->bytes += (room - list->room) * size;
		list->items = items;
		list->room = room;
	}
	list->count += count;
	return (uint8_t *)list->items + (list->count - count) * size;
}

static struct range *range_at(const struct jit_code *code, uint32_t at)
{
	return (struct range *)code->ranges.items + at;
}

static const char *text_at(const struct jit_code *code, uint32_t at)
{
	return (const char *)code->text.items + at;
}

static void release(struct jit_code *code)
{
	free(code->ranges.items);
	free(code->links.items);
	free(code->lines.items);
	free(code->text.items);
}

static bool init(struct jit_code *code, size_t limit)
{
	char *text;

	memset(code, 0, sizeof *code);
	code->limit = limit;
	text = list_add(code, &code->text, 1, 1);
	if (!text || !list_add(code, &code->ranges, 1, sizeof(struct range)) ||
	    !list_add(code, &code->links, 1, sizeof(struct link)))
		return false;
	*text = '\0';
	return true;
}

struct jit_code *jit_code_new(size_t limit_bytes)
{
	struct jit_code *code = malloc(sizeof *code);

	if (code && init(code, limit_bytes))
		return code;
	jit_code_free(code);
	return NULL;
}

void jit_code_free(struct jit_code *code)
{
	if (!code)
		return;
	release(code);
	free(code);
}

/* --- finding --- */

static uint32_t head_of(uint64_t page)
{
	return (uint32_t)(page * 0x9e3779b97f4a7c15u >> (64 - HEADS_BITS));
}

static bool has(const struct range *range, uint64_t address)
{
	return address - range->start < range->size;
}

/* What is met on the way from the newest to the oldest that had the address. */
struct search {
	uint64_t address, time_ns;
	const struct range *found;     /* was there for certain */
	const struct range *coming[2]; /* may have come just before, or just after; the newest */
	const struct range *later;     /* came later, and nothing else is known */
	uint32_t looks;
};

/* True: no need to look further. */
static bool judge(struct search *search, const struct range *range)
{
	if (!has(range, search->address) || (range->until_ns && search->time_ns >= range->until_ns))
		return false;
	if (search->time_ns >= range->seen_ns)
		search->found = range;
	else if (search->time_ns < range->from_ns)
		search->later = range;
	else
		search->coming[search->coming[0] != NULL] = range;
	return search->found;
}

static void look(const struct jit_code *code, uint32_t head, struct search *search)
{
	const struct link *links = code->links.items;

	for (uint32_t at = code->heads[head]; at != NONE && search->looks++ < LOOKS_MAX;
	     at = links[at].next)
		if (judge(search, range_at(code, links[at].range)))
			return;
}

static void tell(const struct jit_code *code, const struct range *range, uint64_t address,
		 struct jit_name *name)
{
	uint32_t first = 0, last = range->line_count;
	const struct jit_line *lines;

	*name = (struct jit_name){text_at(code, range->name), text_at(code, range->file),
				  range->line, (enum jit_language)range->language};
	if (!last)
		return;
	lines = (const struct jit_line *)code->lines.items + range->first_line;
	while (first < last) {
		uint32_t middle = first + (last - first) / 2;

		if (lines[middle].offset <= address - range->start)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first)
		return;
	name->line = lines[first - 1].line;
	if (lines[first - 1].file)
		name->file = text_at(code, lines[first - 1].file);
}

static bool is_called_the_same(const struct jit_code *code, const struct range *a,
			       const struct range *b)
{
	return !strcmp(text_at(code, a->name), text_at(code, b->name)) &&
	       !strcmp(text_at(code, a->file), text_at(code, b->file));
}

enum jit_find jit_code_find(const struct jit_code *code, uint64_t address, uint64_t time_ns,
			    struct jit_name *name)
{
	struct search search = {.address = address, .time_ns = time_ns};
	const struct range *range;

	look(code, head_of(address >> PAGE_BITS), &search);
	if (!search.found)
		look(code, WIDE, &search);
	range = search.found ? search.found : search.coming[1];
	if (search.coming[0] && range && !is_called_the_same(code, search.coming[0], range))
		return JIT_UNSURE;
	if (!range)
		range = search.coming[0] ? search.coming[0] : search.later;
	if (!range)
		return JIT_NOT_FOUND;
	tell(code, range, address, name);
	return JIT_FOUND;
}

/* --- adding --- */

static bool add_link(struct jit_code *code, uint32_t head, uint32_t range)
{
	struct link *link = list_add(code, &code->links, 1, sizeof *link);

	if (!link)
		return false;
	*link = (struct link){range, code->heads[head]};
	code->heads[head] = code->links.count - 1;
	return true;
}

/* It is found from now on, in part where memory is short. */
static bool add_range(struct jit_code *code, const struct range *range)
{
	const uint64_t first = range->start >> PAGE_BITS;
	const uint64_t last = (range->start + range->size - 1) >> PAGE_BITS;
	struct range *to = list_add(code, &code->ranges, 1, sizeof *to);
	const uint32_t number = code->ranges.count - 1;

	if (!to)
		return false;
	*to = *range;
	if (last - first >= PAGES_MAX)
		return add_link(code, WIDE, number);
	for (uint64_t page = first; page <= last; page++)
		if (!add_link(code, head_of(page), number))
			return false;
	return true;
}

static bool add_text(struct jit_code *code, const char *text, uint32_t *at)
{
	const uint32_t bytes = (uint32_t)strlen(text) + 1;
	char *to;

	*at = 0;
	if (bytes == 1)
		return true;
	to = list_add(code, &code->text, bytes, 1);
	if (!to)
		return false;
	memcpy(to, text, bytes);
	*at = code->text.count - bytes;
	return true;
}

/* Many functions are of one file. */
static bool add_file(struct jit_code *code, const char *file, uint32_t *at)
{
	uint32_t hash = 5381, *kept;

	for (const char *c = file; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	kept = &code->files[hash % 64];
	if (*kept && !strcmp(text_at(code, *kept), file)) {
		*at = *kept;
		return true;
	}
	if (!add_text(code, file, at))
		return false;
	*kept = *at;
	return true;
}

static bool add_lines(struct jit_code *code, const struct jit_line *lines, uint32_t count,
		      const char *text, struct range *range)
{
	struct jit_line *to = count ? list_add(code, &code->lines, count, sizeof *to) : NULL;

	if (count > UINT16_MAX || (count && !to))
		return false;
	range->first_line = code->lines.count - count;
	range->line_count = (uint16_t)count;
	for (uint32_t i = 0; i < count; i++) {
		to[i] = lines[i];
		if (!add_file(code, text + lines[i].file, &to[i].file))
			return false;
	}
	return true;
}

/* The newest one that begins there. */
static struct range *beginning_at(const struct jit_code *code, uint64_t start)
{
	const struct link *links = code->links.items;
	const uint32_t heads[] = {head_of(start >> PAGE_BITS), WIDE};
	uint32_t looks = 0;

	for (int i = 0; i < 2; i++)
		for (uint32_t at = code->heads[heads[i]]; at != NONE && looks++ < LOOKS_MAX;
		     at = links[at].next)
			if (range_at(code, links[at].range)->start == start)
				return range_at(code, links[at].range);
	return NULL;
}

/* False: there is no room. What moves without having been there is nobody. */
static bool move(struct jit_code *code, const struct jit_entry *entry, const struct range *to)
{
	struct range *from = beginning_at(code, entry->old_start), moved;

	if (!from)
		return true;
	from->until_ns = to->seen_ns;
	moved = *from;
	moved.start = to->start;
	moved.size = to->size;
	moved.from_ns = to->from_ns;
	moved.seen_ns = to->seen_ns;
	moved.until_ns = 0;
	return add_range(code, &moved);
}

static bool add_entry(struct jit_code *code, const struct jit_entry *entry, const char *text,
		      const struct jit_line *lines, const struct range *when)
{
	struct range range = {.start = entry->start,
			      .from_ns = entry->time_ns ? entry->time_ns : when->from_ns,
			      .seen_ns = entry->time_ns ? entry->time_ns : when->seen_ns,
			      .size = entry->size,
			      .line = entry->line,
			      .language = (uint8_t)entry->language};

	if (entry->old_start)
		return move(code, entry, &range);
	return add_text(code, text + entry->name, &range.name) &&
	       add_file(code, text + entry->file, &range.file) &&
	       add_lines(code, lines + entry->first_line, entry->line_count, text, &range) &&
	       add_range(code, &range);
}

/* --- room --- */

/* Whether nothing newer has taken its first and its last byte. */
static bool is_in_place(const struct jit_code *code, const struct range *range)
{
	const uint64_t ends[] = {range->start, range->start + range->size - 1};

	for (int i = 0; i < 2; i++) {
		struct search search = {.address = ends[i], .time_ns = UINT64_MAX};

		look(code, head_of(ends[i] >> PAGE_BITS), &search);
		if (!search.found)
			look(code, WIDE, &search);
		if (search.found == range)
			return true;
	}
	return false;
}

static bool copy_range(struct jit_code *to, const struct jit_code *from, const struct range *range)
{
	struct range copy = *range;

	return add_text(to, text_at(from, range->name), &copy.name) &&
	       add_file(to, text_at(from, range->file), &copy.file) &&
	       add_lines(to, (const struct jit_line *)from->lines.items + range->first_line,
			 range->line_count, from->text.items, &copy) &&
	       add_range(to, &copy);
}

/* Leaves out what is not there any more. */
static void make_room(struct jit_code *code)
{
	struct jit_code *next = jit_code_new(code->limit);
	struct jit_code old;

	for (uint32_t i = 1; next && i < code->ranges.count; i++)
		if (is_in_place(code, range_at(code, i)) &&
		    !copy_range(next, code, range_at(code, i)))
			break;
	if (!next)
		return;
	old = *code;
	*code = *next;
	*next = old;
	code->is_full = code->bytes > code->limit / 4 * 3;
	jit_code_free(next);
}

uint32_t jit_code_add(struct jit_code *code, const struct jit_chunk *chunk, uint64_t from_ns,
		      uint64_t seen_ns)
{
	const struct range when = {.from_ns = from_ns, .seen_ns = seen_ns};
	uint32_t refused = 0;

	for (uint32_t i = 0; i < chunk->head.count; i++) {
		const struct jit_entry *entry = &chunk->entries[i];

		if (!code->is_full && add_entry(code, entry, chunk->text, chunk->lines, &when))
			continue;
		if (!code->is_full)
			make_room(code);
		refused += code->is_full ||
			   !add_entry(code, entry, chunk->text, chunk->lines, &when);
	}
	return refused;
}

size_t jit_code_bytes(const struct jit_code *code)
{
	return sizeof *code + code->bytes;
}

uint32_t jit_code_count(const struct jit_code *code)
{
	return code->ranges.count - 1;
}
