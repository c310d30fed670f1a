/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/aggregate/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "common/string_table.h"
#include "node-agent/aggregate/counted_table.h"

enum {
	TEXT_SHARE = 4,      /* a quarter of the limit is for texts */
	BYTES_PER_TEXT = 32, /* of that share, for the text's place and hash slot */
	STACK_DEPTH_MAX = 4096,
	LABEL_INDICES = 6, /* of one process: pairs of strings */
};

struct process_row {
	uint32_t name, executable, container_id, service, pod, namespace_, waker; /* strings */
};

struct mapping_row {
	uint32_t number; /* the caller's */
};

struct stack_row {
	uint32_t first_index, depth, incomplete;
};

struct stack_counts_strings {
	struct string_table table;
};

struct stack_counts {
	struct budget budget;
	size_t text_limit; /* bytes of text that samples may bring */
	bool is_taken;     /* sorted since, no longer found by hash */
	struct stack_counts_strings strings;
	struct counted_table processes, mappings, frames, stacks, samples;
	struct counted_table frame_indices; /* of all stacks, one behind the other */
	struct counted_table times;         /* row 0 is none */
	uint32_t newest;                    /* row of the sample added last */
	uint64_t sample_total, lost_times;
	/* made by take */
	struct profile_mapping *profile_mappings;
	struct profile_process *profile_processes;
	struct profile_stack *profile_stacks;
	uint32_t *labels;
};

/* Entry 0 of mappings and frames means "none". */
static bool add_zero_rows(struct stack_counts *counts)
{
	if (!counted_table_reserve(&counts->mappings, 1) ||
	    !counted_table_reserve(&counts->frames, 1))
		return false;
	counted_table_append(&counts->mappings);
	counted_table_append(&counts->frames);
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

static void free_profile(struct stack_counts *counts)
{
	free(counts->profile_mappings);
	free(counts->profile_processes);
	free(counts->profile_stacks);
	free(counts->labels);
	counts->profile_mappings = NULL;
	counts->profile_processes = NULL;
	counts->profile_stacks = NULL;
	counts->labels = NULL;
}

void stack_counts_free(struct stack_counts *counts)
{
	if (!counts)
		return;
	free_profile(counts);
	counted_table_release(&counts->processes);
	counted_table_release(&counts->mappings);
	counted_table_release(&counts->frames);
	counted_table_release(&counts->stacks);
	counted_table_release(&counts->samples);
	counted_table_release(&counts->frame_indices);
	counted_table_release(&counts->times);
	string_table_release(&counts->strings.table);
	free(counts);
}

void stack_counts_clear(struct stack_counts *counts)
{
	free_profile(counts);
	counted_table_clear(&counts->processes);
	counted_table_clear(&counts->mappings);
	counted_table_clear(&counts->frames);
	counted_table_clear(&counts->stacks);
	counted_table_clear(&counts->samples);
	counted_table_clear(&counts->frame_indices);
	counted_table_clear(&counts->times);
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
	uint32_t probe = 0;
	void *added;

	for (uint32_t i = hash_table_first(&table->hashes, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&table->hashes, hash, &probe))
		if (!memcmp((const char *)table->rows + i * table->row_bytes, row,
			    table->row_bytes))
			return i;
	if (!counted_table_reserve(table, 1) || !(added = counted_table_add(table, hash)))
		return NOT_FOUND;
	memcpy(added, row, table->row_bytes);
	return table->count - 1;
}

static uint32_t intern_process(struct stack_counts *counts, const struct counted_process *process)
{
	struct process_row row;

	if (!intern_text(counts, process->name, &row.name) ||
	    !intern_text(counts, process->executable, &row.executable) ||
	    !intern_text(counts, process->container_id, &row.container_id) ||
	    !intern_text(counts, process->service, &row.service) ||
	    !intern_text(counts, process->pod, &row.pod) ||
	    !intern_text(counts, process->namespace_, &row.namespace_) ||
	    !intern_text(counts, process->waker, &row.waker))
		return NOT_FOUND;
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
	if (frame->kind == PROFILE_FRAME_NATIVE || frame->kind == PROFILE_FRAME_KERNEL) {
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
	uint32_t first = counts->frame_indices.count, probe = 0;
	const uint32_t *indices = (const uint32_t *)counts->frame_indices.rows + first;
	uint64_t hash = hash_bytes(indices, depth * sizeof(*indices), incomplete);
	struct stack_row *added;

	for (uint32_t i = hash_table_first(&stacks->hashes, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&stacks->hashes, hash, &probe))
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

static struct profile_sample *find_sample(struct stack_counts *counts, uint32_t process,
					  uint32_t thread, uint32_t stack, uint32_t type)
{
	struct counted_table *samples = &counts->samples;
	uint64_t hash = hash_word(hash_word(process, thread), (uint64_t)type << 32 | stack);
	struct profile_sample *added;
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&samples->hashes, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&samples->hashes, hash, &probe)) {
		struct profile_sample *sample = (struct profile_sample *)samples->rows + i;

		if (sample->process == process && sample->thread == thread &&
		    sample->stack == stack && sample->type == type)
			return sample;
	}
	if (!counted_table_reserve(samples, 1) || !(added = counted_table_add(samples, hash)))
		return NULL;
	*added = (struct profile_sample){
		.process = process, .thread = thread, .stack = stack, .type = type};
	return added;
}

bool stack_counts_add_type(struct stack_counts *counts, uint32_t type,
			   const struct counted_process *process, const char *thread,
			   const struct counted_frame *frames, size_t depth, const char *incomplete,
			   uint64_t count, uint64_t value)
{
	uint32_t process_row, stack, thread_text, incomplete_text;
	struct profile_sample *sample;

	if (counts->is_taken || (!counts->frames.count && !add_zero_rows(counts)))
		return false;
	process_row = intern_process(counts, process);
	if (process_row == NOT_FOUND || !intern_text(counts, thread, &thread_text) ||
	    !intern_text(counts, incomplete, &incomplete_text))
		return false;
	stack = intern_frames(counts, frames, depth, incomplete_text);
	if (stack == NOT_FOUND)
		return false;
	sample = find_sample(counts, process_row, thread_text, stack, type);
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
		      const char *thread, const struct counted_frame *frames, size_t depth,
		      const char *incomplete, uint64_t count, uint64_t value)
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

/* --- as a profile --- */

static int compare_numbers(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int by_process_and_stack(const void *a, const void *b)
{
	const struct profile_sample *left = a, *right = b;
	int order = compare_numbers(left->process, right->process);

	if (!order)
		order = compare_numbers(left->type, right->type);
	if (!order)
		order = compare_numbers(left->stack, right->stack);
	return order ? order : compare_numbers(left->thread, right->thread);
}

static void *make_array(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

static bool make_profile(struct stack_counts *counts)
{
	free_profile(counts);
	counts->profile_mappings = make_array(counts->mappings.count,
					      sizeof(*counts->profile_mappings));
	counts->profile_processes = make_array(counts->processes.count,
					       sizeof(*counts->profile_processes));
	counts->profile_stacks = make_array(counts->stacks.count, sizeof(*counts->profile_stacks));
	counts->labels = make_array(counts->processes.count * LABEL_INDICES,
				    sizeof(*counts->labels));
	return counts->profile_mappings && counts->profile_processes && counts->profile_stacks &&
	       counts->labels;
}

static void add_label(struct stack_counts *counts, struct profile_process *process,
		      size_t *label_count, const char *name, uint32_t value)
{
	if (!value)
		return;
	counts->labels[(*label_count)++] = stack_counts_text(&counts->strings, name);
	counts->labels[(*label_count)++] = value;
	process->label_count++;
}

static size_t fill_processes(struct stack_counts *counts)
{
	const struct process_row *rows = counts->processes.rows;
	size_t label_count = 0;

	for (uint32_t i = 0; i < counts->processes.count; i++) {
		struct profile_process *process = &counts->profile_processes[i];

		process->name = rows[i].name;
		process->executable = rows[i].executable;
		process->container_id = rows[i].container_id;
		process->service = rows[i].service;
		process->first_label = (uint32_t)label_count;
		add_label(counts, process, &label_count, "pod", rows[i].pod);
		add_label(counts, process, &label_count, "namespace", rows[i].namespace_);
		add_label(counts, process, &label_count, "farflame.label.waker", rows[i].waker);
	}
	return label_count;
}

static void fill_stacks(struct stack_counts *counts)
{
	const struct stack_row *rows = counts->stacks.rows;

	for (uint32_t i = 0; i < counts->stacks.count; i++)
		counts->profile_stacks[i] = (struct profile_stack){
			.first_index = rows[i].first_index,
			.depth = rows[i].depth,
			.incomplete = rows[i].incomplete,
		};
}

static void fill_mappings(struct stack_counts *counts, stack_counts_mapping_fn *fill, void *context)
{
	const struct mapping_row *rows = counts->mappings.rows;

	for (uint32_t i = 1; i < counts->mappings.count; i++)
		fill(context, rows[i].number, &counts->profile_mappings[i], &counts->strings);
}

bool stack_counts_take(struct stack_counts *counts, stack_counts_mapping_fn *fill_mapping,
		       void *context, struct profile *profile, struct error *err)
{
	static const char *no_strings[] = {""};
	size_t label_count;

	if (!make_profile(counts))
		return error_set(err, ERROR_MEMORY, "no memory for the report's tables");
	label_count = fill_processes(counts);
	fill_stacks(counts);
	fill_mappings(counts, fill_mapping, context);
	counts->is_taken = true;
	if (counts->samples.count)
		qsort(counts->samples.rows, counts->samples.count, sizeof(struct profile_sample),
		      by_process_and_stack);

	/* texts last: the others add to them */
	profile->strings = counts->strings.table.texts ? counts->strings.table.texts : no_strings;
	profile->string_count = counts->strings.table.count;
	profile->mappings = counts->profile_mappings;
	profile->mapping_count = counts->mappings.count;
	profile->frames = counts->frames.rows;
	profile->frame_count = counts->frames.count;
	profile->frame_indices = counts->frame_indices.rows;
	profile->frame_index_count = counts->frame_indices.count;
	profile->stacks = counts->profile_stacks;
	profile->stack_count = counts->stacks.count;
	profile->processes = counts->profile_processes;
	profile->process_count = counts->processes.count;
	profile->label_indices = counts->labels;
	profile->label_index_count = label_count;
	profile->samples = counts->samples.rows;
	profile->sample_count = counts->samples.count;
	profile->times = counts->times.rows;
	profile->time_count = counts->times.count;
	return true;
}
