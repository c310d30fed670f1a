/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/aggregate/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/aggregate/stack_tables.h"

enum {
	TEXT_SHARE = 4,      /* a quarter of the limit is for texts */
	BYTES_PER_TEXT = 32, /* of that share, for the text's place and hash slot */
	STACK_DEPTH_MAX = 4096,
	ATTRIBUTES_MAX = 256, /* of one process or sample */
};

/* Entry 0 of these means "none". */
static bool add_zero_rows(struct stack_counts *counts)
{
	struct counted_table *const tables[] = {&counts->mappings, &counts->frames, &counts->links,
						&counts->attribute_sets};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (!counted_table_reserve(tables[i], 1))
			return false;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		counted_table_append(tables[i]);
	return true;
}

static void init_parts(struct stack_counts *counts, size_t limit_bytes)
{
	struct budget *budget = &counts->budget;
	size_t texts = limit_bytes / TEXT_SHARE;

	budget->limit = limit_bytes - texts;
	/* Samples may fill three quarters; files' names have to fit when the report is made. */
	counts->text_limit = texts / 4 * 3 / 2;
	string_table_init(&counts->strings.table, texts / 2,
			  (uint32_t)(texts / 2 / BYTES_PER_TEXT + 1));
	counted_table_init(&counts->processes, budget, sizeof(struct process_row),
			   sizeof(struct profile_process) + LABEL_INDICES * sizeof(uint32_t), true);
	counted_table_init(&counts->mappings, budget, sizeof(struct mapping_row),
			   sizeof(struct profile_mapping), true);
	counted_table_init(&counts->frames, budget, sizeof(struct profile_frame), 0, true);
	counted_table_init(&counts->stacks, budget, sizeof(struct stack_row),
			   sizeof(struct profile_stack), true);
	counted_table_init(&counts->samples, budget, sizeof(struct profile_sample), 0, true);
	counted_table_init(&counts->frame_indices, budget, sizeof(uint32_t), 0, false);
	counted_table_init(&counts->times, budget, sizeof(struct profile_time), 0, false);
	counted_table_init(&counts->links, budget, sizeof(struct profile_link), 0, true);
	counted_table_init(&counts->attributes, budget, sizeof(struct profile_attribute), 0, true);
	counted_table_init(&counts->attribute_sets, budget, sizeof(struct profile_attribute_set), 0,
			   true);
	counted_table_init(&counts->attribute_indices, budget, sizeof(uint32_t), 0, false);
}

struct stack_counts *stack_counts_new(size_t limit_bytes, struct error *err)
{
	struct stack_counts *counts = calloc(1, sizeof(*counts));

	if (!counts) {
		error_set(err, ERROR_MEMORY, "no memory to count stacks");
		return NULL;
	}
	init_parts(counts, limit_bytes);
	if (!add_zero_rows(counts)) {
		error_set(err, ERROR_LIMIT, "%zu bytes are too few to count stacks", limit_bytes);
		stack_counts_free(counts);
		return NULL;
	}
	return counts;
}

void stack_counts_free(struct stack_counts *counts)
{
	if (!counts)
		return;
	stack_counts_drop_profile(counts);
	counted_table_release(&counts->processes);
	counted_table_release(&counts->mappings);
	counted_table_release(&counts->frames);
	counted_table_release(&counts->stacks);
	counted_table_release(&counts->samples);
	counted_table_release(&counts->frame_indices);
	counted_table_release(&counts->times);
	counted_table_release(&counts->links);
	counted_table_release(&counts->attributes);
	counted_table_release(&counts->attribute_sets);
	counted_table_release(&counts->attribute_indices);
	string_table_release(&counts->strings.table);
	free(counts);
}

void stack_counts_clear(struct stack_counts *counts)
{
	stack_counts_drop_profile(counts);
	counted_table_clear(&counts->processes);
	counted_table_clear(&counts->mappings);
	counted_table_clear(&counts->frames);
	counted_table_clear(&counts->stacks);
	counted_table_clear(&counts->samples);
	counted_table_clear(&counts->frame_indices);
	counted_table_clear(&counts->times);
	counted_table_clear(&counts->links);
	counted_table_clear(&counts->attributes);
	counted_table_clear(&counts->attribute_sets);
	counted_table_clear(&counts->attribute_indices);
	string_table_clear(&counts->strings.table);
	counts->sample_total = 0;
	counts->is_taken = false;
	add_zero_rows(counts); /* fails only without memory; adding then fails too */
}

uint64_t stack_counts_samples(const struct stack_counts *counts)
{
	return counts->sample_total;
}

uint32_t stack_counts_text(struct stack_counts_strings *strings, const char *text)
{
	return text ? string_table_add(&strings->table, text) : 0;
}

/* --- finding a row or adding it --- */

#define NOT_FOUND UINT32_MAX

/* False: a new text that does not fit. Two texts that both became "" would look equal. */
static bool intern_text(struct stack_counts *counts, const char *text, uint32_t *number)
{
	struct string_table *table = &counts->strings.table;

	*number = 0;
	if (!text || !*text)
		return true;
	*number = string_table_find(table, text, strlen(text));
	if (*number != UINT32_MAX)
		return true;
	if (table->arena.used < counts->text_limit)
		*number = string_table_add(table, text);
	return *number && *number != UINT32_MAX;
}

/* A row of plain words is equal when its bytes are: rows are zeroed before they are filled. */
static uint32_t find_or_add(struct counted_table *table, const void *row, uint64_t hash)
{
	void *added;

	HASH_TABLE_EACH(i, &table->hashes, hash)
		if (!memcmp((const char *)table->rows + i * table->row_bytes, row,
			    table->row_bytes))
			return i;
	if (!counted_table_reserve(table, 1) || !(added = counted_table_add(table, hash)))
		return NOT_FOUND;
	memcpy(added, row, table->row_bytes);
	return table->count - 1;
}

/* --- what programs say --- */

/* The indices stand behind the last set's, where a new set keeps them. */
static uint32_t intern_set(struct stack_counts *counts, uint32_t count)
{
	struct counted_table *sets = &counts->attribute_sets;
	const uint32_t first = counts->attribute_indices.count;
	const uint32_t *all = counts->attribute_indices.rows;
	const uint64_t hash = hash_bytes(all + first, count * sizeof *all, count);
	struct profile_attribute_set *added;

	HASH_TABLE_EACH(i, &sets->hashes, hash) {
		const struct profile_attribute_set *set =
			(const struct profile_attribute_set *)sets->rows + i;

		if (set->count == count &&
		    !memcmp(all + set->first_index, all + first, count * sizeof *all))
			return i;
	}
	if (!counted_table_reserve(sets, 1) || !(added = counted_table_add(sets, hash)))
		return NOT_FOUND;
	*added = (struct profile_attribute_set){first, count};
	counts->attribute_indices.count += count;
	return sets->count - 1;
}

static uint32_t intern_attribute(struct stack_counts *counts,
				 const struct counted_attribute *attribute)
{
	struct profile_attribute row;

	if (counts->strings.table.arena.used >= counts->text_limit / 2 ||
	    !intern_text(counts, attribute->key, &row.key) ||
	    !intern_text(counts, attribute->value, &row.value))
		return NOT_FOUND;
	return find_or_add(&counts->attributes, &row, hash_word(row.key, row.value));
}

/* 0: none. They may not push out the samples themselves: what has no room is left out. */
static uint32_t intern_attributes(struct stack_counts *counts,
				  const struct counted_attribute *attributes, size_t count)
{
	uint32_t set = NOT_FOUND;

	if (!count)
		return 0;
	if (count <= ATTRIBUTES_MAX &&
	    counted_table_reserve(&counts->attribute_indices, (uint32_t)count)) {
		uint32_t *indices = (uint32_t *)counts->attribute_indices.rows +
				    counts->attribute_indices.count;
		size_t done = 0;

		while (done < count &&
		       (indices[done] = intern_attribute(counts, &attributes[done])) != NOT_FOUND)
			done++;
		if (done == count)
			set = intern_set(counts, (uint32_t)count);
	}
	if (set != NOT_FOUND)
		return set;
	counts->lost_attributes++;
	return 0;
}

static uint32_t intern_link(struct stack_counts *counts, const struct profile_link *link)
{
	static const struct profile_link none;

	return memcmp(link, &none, sizeof none)
		       ? find_or_add(&counts->links, link, hash_bytes(link, sizeof *link, 0))
		       : 0;
}

/* --- where --- */

static uint32_t intern_process(struct stack_counts *counts, const struct counted_process *process)
{
	struct process_row row = {0};

	if (!intern_text(counts, process->name, &row.name) ||
	    !intern_text(counts, process->executable, &row.executable) ||
	    !intern_text(counts, process->container_id, &row.container_id) ||
	    !intern_text(counts, process->service, &row.service) ||
	    !intern_text(counts, process->pod, &row.pod) ||
	    !intern_text(counts, process->namespace_, &row.namespace_) ||
	    !intern_text(counts, process->waker, &row.waker) ||
	    !intern_text(counts, process->wait, &row.wait) ||
	    !intern_text(counts, process->fault, &row.fault))
		return NOT_FOUND;
	row.attributes = intern_attributes(counts, process->attributes, process->attribute_count);
	return find_or_add(&counts->processes, &row, hash_bytes(&row, sizeof(row), 0));
}

static uint32_t intern_mapping(struct stack_counts *counts, uint32_t number)
{
	struct mapping_row row = {.number = number};

	return number ? find_or_add(&counts->mappings, &row, hash_word(1, number)) : 0;
}

static uint32_t intern_frame(struct stack_counts *counts, const struct counted_frame *frame)
{
	struct profile_frame row;

	memset(&row, 0, sizeof(row)); /* padding too: it is compared */
	row.kind = frame->kind;
	if (frame->kind == PROFILE_FRAME_NATIVE || frame->kind == PROFILE_FRAME_KERNEL ||
	    frame->kind == PROFILE_FRAME_RUNTIME) {
		row.address = frame->address;
		row.mapping = intern_mapping(counts, frame->mapping);
		if (row.mapping == NOT_FOUND)
			return NOT_FOUND;
	} else if (frame->kind == PROFILE_FRAME_NAMED) {
		row.line = frame->line;
		if (!intern_text(counts, frame->function, &row.function) ||
		    !intern_text(counts, frame->file, &row.file) ||
		    !intern_text(counts, frame->type, &row.type))
			return NOT_FOUND;
	}
	return find_or_add(&counts->frames, &row,
			   hash_word(hash_word(row.address, (uint64_t)row.mapping << 8 | row.kind),
				     hash_word(row.function, (uint64_t)row.file << 32 | row.line)));
}

static bool is_stack(const struct stack_counts *counts, const struct stack_row *stack,
		     const uint32_t *indices, size_t depth, uint32_t incomplete)
{
	const uint32_t *all = counts->frame_indices.rows;

	return stack->depth == depth && stack->incomplete == incomplete &&
	       (!depth || !memcmp(&all[stack->first_index], indices, depth * sizeof(*indices)));
}

/* The frames stand behind the last stack's, where a new stack keeps them. */
static uint32_t intern_stack(struct stack_counts *counts, uint32_t depth, uint32_t incomplete)
{
	struct counted_table *stacks = &counts->stacks;
	uint32_t first = counts->frame_indices.count;
	const uint32_t *indices = (const uint32_t *)counts->frame_indices.rows + first;
	uint64_t hash = hash_bytes(indices, depth * sizeof(*indices), incomplete);
	struct stack_row *added;

	HASH_TABLE_EACH(i, &stacks->hashes, hash)
		if (is_stack(counts, (const struct stack_row *)stacks->rows + i, indices, depth,
			     incomplete))
			return i;
	if (!counted_table_reserve(stacks, 1) || !(added = counted_table_add(stacks, hash)))
		return NOT_FOUND;
	*added = (struct stack_row){first, depth, incomplete};
	counts->frame_indices.count += depth;
	return stacks->count - 1;
}

static uint32_t intern_frames(struct stack_counts *counts, const struct counted_frame *frames,
			      size_t depth, uint32_t incomplete)
{
	uint32_t *indices;

	if (depth > STACK_DEPTH_MAX ||
	    !counted_table_reserve(&counts->frame_indices, (uint32_t)depth))
		return NOT_FOUND;
	indices = (uint32_t *)counts->frame_indices.rows + counts->frame_indices.count;
	for (size_t i = 0; i < depth; i++) {
		indices[i] = intern_frame(counts, &frames[i]);
		if (indices[i] == NOT_FOUND)
			return NOT_FOUND;
	}
	return intern_stack(counts, (uint32_t)depth, incomplete);
}

/* What makes a sample one of its own: as wanted has it, without counts. */
static struct profile_sample *find_sample(struct stack_counts *counts,
					  const struct profile_sample *wanted)
{
	struct counted_table *samples = &counts->samples;
	uint64_t hash = hash_word(hash_word(wanted->process, wanted->thread),
				  (uint64_t)wanted->type << 32 | wanted->stack);
	struct profile_sample *added;

	hash = hash_word(hash_word(hash, wanted->thread_id),
			 (uint64_t)wanted->link << 32 | wanted->attributes);
	HASH_TABLE_EACH(i, &samples->hashes, hash) {
		struct profile_sample *sample = (struct profile_sample *)samples->rows + i;

		if (sample->process == wanted->process && sample->thread == wanted->thread &&
		    sample->stack == wanted->stack && sample->type == wanted->type &&
		    sample->thread_id == wanted->thread_id && sample->link == wanted->link &&
		    sample->attributes == wanted->attributes)
			return sample;
	}
	if (!counted_table_reserve(samples, 1) || !(added = counted_table_add(samples, hash)))
		return NULL;
	*added = *wanted;
	return added;
}

/* False: no room. */
static bool intern_thread(struct stack_counts *counts, const struct counted_thread *thread,
			  struct profile_sample *sample)
{
	if (!intern_text(counts, thread->name, &sample->thread))
		return false;
	sample->thread_id = thread->id;
	sample->attributes = intern_attributes(counts, thread->attributes, thread->attribute_count);
	sample->link = intern_link(counts, &thread->link);
	return sample->link != NOT_FOUND;
}

bool stack_counts_add_type(struct stack_counts *counts, uint32_t type,
			   const struct counted_process *process,
			   const struct counted_thread *thread, const struct counted_frame *frames,
			   size_t depth, const char *incomplete, uint64_t count, uint64_t value)
{
	struct profile_sample wanted = {.type = type}, *sample;
	uint32_t incomplete_text;

	if (counts->is_taken || (!counts->frames.count && !add_zero_rows(counts)))
		return false;
	wanted.process = intern_process(counts, process);
	if (wanted.process == NOT_FOUND || !intern_thread(counts, thread, &wanted) ||
	    !intern_text(counts, incomplete, &incomplete_text))
		return false;
	wanted.stack = intern_frames(counts, frames, depth, incomplete_text);
	if (wanted.stack == NOT_FOUND)
		return false;
	sample = find_sample(counts, &wanted);
	if (!sample)
		return false;
	sample->count += count;
	sample->value += value;
	if (!type)
		counts->sample_total += count;
	counts->newest = (uint32_t)(sample - (struct profile_sample *)counts->samples.rows);
	return true;
}

bool stack_counts_add(struct stack_counts *counts, const struct counted_process *process,
		      const struct counted_thread *thread, const struct counted_frame *frames,
		      size_t depth, const char *incomplete, uint64_t count, uint64_t value)
{
	return stack_counts_add_type(counts, 0, process, thread, frames, depth, incomplete, count,
				     value);
}

void stack_counts_add_time(struct stack_counts *counts, uint64_t time_ns)
{
	struct counted_table *times = &counts->times;
	struct profile_sample *sample;
	struct profile_time *time;

	if (counts->newest >= counts->samples.count ||
	    !counted_table_reserve(times, times->count ? 1 : 2)) {
		counts->lost_times++;
		return;
	}
	if (!times->count)
		*(struct profile_time *)counted_table_append(times) = (struct profile_time){0};
	sample = (struct profile_sample *)counts->samples.rows + counts->newest;
	time = counted_table_append(times);
	*time = (struct profile_time){.time_ns = time_ns, .next = sample->first_time};
	sample->first_time = times->count - 1;
	sample->time_count++;
}

uint64_t stack_counts_lost_times(const struct stack_counts *counts)
{
	return counts->lost_times;
}

uint64_t stack_counts_lost_attributes(const struct stack_counts *counts)
{
	return counts->lost_attributes;
}
