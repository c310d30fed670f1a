/* SPDX-License-Identifier: Apache-2.0 */
/* An interval's counted stacks as a profile. */
#include <stdlib.h>

#include "node-agent/aggregate/stack_tables.h"

void stack_counts_drop_profile(struct stack_counts *counts)
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
	if (!order)
		order = compare_numbers(left->thread, right->thread);
	return order ? order : compare_numbers(left->thread_id, right->thread_id);
}

static void *make_array(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

static bool make_profile(struct stack_counts *counts)
{
	stack_counts_drop_profile(counts);
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

static void fill_processes(struct stack_counts *counts)
{
	const struct process_row *rows = counts->processes.rows;
	size_t label_count = 0;

	for (uint32_t i = 0; i < counts->processes.count; i++) {
		struct profile_process *process = &counts->profile_processes[i];

		process->name = rows[i].name;
		process->executable = rows[i].executable;
		process->container_id = rows[i].container_id;
		process->service = rows[i].service;
		process->attributes = rows[i].attributes;
		process->first_label = (uint32_t)label_count;
		add_label(counts, process, &label_count, "pod", rows[i].pod);
		add_label(counts, process, &label_count, "namespace", rows[i].namespace_);
		add_label(counts, process, &label_count, "farflame.label.waker", rows[i].waker);
		add_label(counts, process, &label_count, "farflame.label.wait", rows[i].wait);
		add_label(counts, process, &label_count, "farflame.label.fault", rows[i].fault);
	}
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

	if (!make_profile(counts))
		return error_set(err, ERROR_MEMORY, "no memory for the report's tables");
	fill_processes(counts);
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
	profile->samples = counts->samples.rows;
	profile->sample_count = counts->samples.count;
	profile->times = counts->times.rows;
	profile->time_count = counts->times.count;
	profile->links = counts->links.rows;
	profile->link_count = counts->links.count;
	profile->attributes = counts->attributes.rows;
	profile->attribute_count = counts->attributes.count;
	profile->attribute_indices = counts->attribute_indices.rows;
	profile->attribute_sets = counts->attribute_sets.rows;
	profile->attribute_set_count = counts->attribute_sets.count;
	return true;
}
