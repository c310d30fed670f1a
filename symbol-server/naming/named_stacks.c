/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/named_stacks_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/naming/idle_waits.h"
#include "symbol-server/naming/module_counts.h"
#include "symbol-server/naming/tree_expansion.h"
#include "symbol-server/query/selector.h"
#include "symbol-server/store/sample_context.h"

/* The same stack with its locations, which nodes may say. NULL: no memory. */
static const struct result_stack *with_locations(struct named_stacks *stacks,
						 const struct result_stack *stack)
{
	const struct result_node *nodes = stacks->result->nodes;
	uint32_t at = stack->node;

	if (stack->locations)
		return stack;
	if (!ARRAY_RESERVE(stacks->locations, stack->depth, stacks->location_room))
		return NULL;
	for (uint32_t i = 0; i < stack->depth; i++, at = nodes[at].caller)
		stacks->locations[i] = nodes[at].location;
	stacks->listed = *stack;
	stacks->listed.locations = stacks->locations;
	return &stacks->listed;
}

static void set_group_name(struct flame_frame *frame, const char *name)
{
	*frame = (struct flame_frame){
		.name = name,
		.file = "",
		.name_hash = frame_name_hash(name),
		.module = FRAME_NO_MODULE,
		.kind = FRAME_group,
	};
}

/* "[no container]" for a series without that label. */
static bool name_groups(struct named_stacks *stacks, struct error *err)
{
	const struct stack_view *view = stacks->view;
	const struct samples_result *result = stacks->result;
	char missing[100];

	stacks->group_frames = calloc((size_t)result->series_count * view->group_count + 1,
				      sizeof(*stacks->group_frames));
	if (!stacks->group_frames)
		return error_no_memory(err);
	for (uint32_t i = 0; i < result->series_count; i++) {
		if (view->goes_on && !view->goes_on(view->context))
			return false;
		for (unsigned j = 0; j < view->group_count; j++) {
			const char *value = series_label(&result->series[i], view->groups[j]);

			if (!*value) {
				snprintf(missing, sizeof(missing), "[no %s]", view->groups[j]);
				value = arena_text(&stacks->names.arena, missing, strlen(missing));
			}
			if (!value)
				return error_no_memory(err);
			set_group_name(&stacks->group_frames[i * view->group_count + j], value);
		}
	}
	return true;
}

static void begin_totals(struct named_stacks *stacks, struct stack_totals *totals)
{
	*totals = (struct stack_totals){0};
	memset(stacks->nameless_met, 0, stacks->names.module_count);
	incomplete_counts_release(&stacks->incomplete);
}

/* Ids that came through samples are known with their kind already; only where the symbolizer's
 * memory was lost does the length decide: a file hash has 16 bytes. */
static void want_modules(const struct named_stacks *stacks, struct symbolizer *symbolizer)
{
	for (uint32_t i = 0; i < stacks->names.module_count; i++) {
		const struct result_module *module = stacks->names.origins[i];

		if (stacks->unsymbolized[i] && module->id.length)
			symbolizer_want(symbolizer, &module->id, module->name,
					module->id.length != FILE_HASH_BYTES,
					stacks->unsymbolized[i]);
	}
}

struct named_stacks *named_stacks_new(const struct samples_result *result,
				      struct symbolizer *symbolizer, const struct stack_view *view,
				      struct error *err)
{
	struct named_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks) {
		error_no_memory(err);
		return NULL;
	}
	stacks->result = result;
	stacks->view = view;
	if (!location_frames_init(&stacks->names, result, symbolizer, view, err) ||
	    !name_groups(stacks, err) || !module_counts_fill(stacks, err)) {
		named_stacks_free(stacks);
		return NULL;
	}
	want_modules(stacks, symbolizer);
	return stacks;
}

const struct flame_frame named_stacks_idle = {
	.name = IDLE_FRAME, .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_idle};

struct walked { /* one stack's frames, and what was met on the way */
	size_t depth;
	uint8_t flags;
	bool is_unresolved, is_incomplete;
};

static bool make_room(struct named_stacks *stacks, size_t depth)
{
	return ARRAY_RESERVE(stacks->frames, depth, stacks->frame_room);
}

/* Lives as long as the stacks do. */
static const char *context_name(const struct named_stacks *stacks, const char *context,
				const char *name)
{
	char value[CONTEXT_PROCESS_VALUE_MAX + 8];
	struct arena *arena = (struct arena *)&stacks->names.arena;
	const char *copy;

	if (!strcmp(name, "thread") && *context && !strchr(context, CONTEXT_KEY))
		return context;
	sample_context_get(context, name, value, sizeof value);
	if (!*value)
		snprintf(value, sizeof value, "[no %.*s]", CONTEXT_KEY_MAX, name);
	copy = arena_text(arena, value, strlen(value));
	return copy ? copy : "";
}

struct flame_frame named_stacks_group(const struct named_stacks *stacks,
				      const struct result_stack *stack, unsigned level)
{
	const struct stack_view *view = stacks->view;
	struct flame_frame frame;

	if (!sample_context_has_name(view->groups[level]))
		return stacks->group_frames[(size_t)stack->series * view->group_count + level];
	set_group_name(&frame, context_name(stacks, stack->thread, view->groups[level]));
	return frame;
}

static bool put_groups(struct named_stacks *stacks, const struct result_stack *stack,
		       struct walked *walked)
{
	unsigned count = stacks->view->group_count;

	if (!make_room(stacks, count))
		return false;
	for (unsigned i = 0; i < count; i++)
		stacks->frames[i] = named_stacks_group(stacks, stack, i);
	walked->depth = count;
	return true;
}

static bool put_location(struct named_stacks *stacks, uint32_t number, struct walked *walked)
{
	const struct location_frames *names = &stacks->names;
	const struct named_location *location = &names->locations[number];

	if (!make_room(stacks, walked->depth + location->count))
		return false;
	walked->is_unresolved |= location->is_unresolved && !location->is_behind;
	walked->is_incomplete |= location->is_incomplete;
	for (uint32_t i = location->first; i < location->first + location->count; i++) {
		walked->flags |= names->flags[i];
		if (!(names->flags[i] & NAME_HIDDEN))
			stacks->frames[walked->depth++] = names->frames[i];
	}
	return true;
}

static bool fold_idle(struct named_stacks *stacks, struct walked *walked)
{
	walked->depth = stacks->view->group_count;
	if (!make_room(stacks, walked->depth + 1))
		return false;
	stacks->frames[walked->depth++] = named_stacks_idle;
	return true;
}

static void reverse(struct flame_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct flame_frame swapped = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = swapped;
	}
}

static bool may_recur(const struct flame_frame *frame)
{
	return frame_is_function(frame) && frame->kind != FRAME_unresolved;
}

/* How many are left of count frames: the path of f, h, f, g is f, g, as the second f is the first.
 */
static size_t join_recursion(struct flame_frame *frames, size_t count, bool is_all)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		size_t least = is_all || !kept ? 0 : kept - 1, same = kept;

		while (may_recur(&frames[i]) && same > least &&
		       !(may_recur(&frames[same - 1]) &&
			 frame_same_function(&frames[same - 1], &frames[i])))
			same--;
		if (may_recur(&frames[i]) && same > least)
			kept = same;
		else
			frames[kept++] = frames[i];
	}
	return kept;
}

static void shape(struct named_stacks *stacks, struct walked *walked)
{
	const struct stack_view *view = stacks->view;
	struct flame_frame *frames = stacks->frames + view->group_count;
	size_t count = walked->depth - view->group_count;

	if (view->invert)
		reverse(frames, count);
	if (view->recursion != RECURSION_KEPT)
		walked->depth = view->group_count +
				join_recursion(frames, count, view->recursion == RECURSION_ALL);
}

static bool add_to_tree(void *context, const struct flame_frame *frames, size_t depth,
			uint64_t value, uint64_t samples)
{
	const struct tree_pass *pass = context;

	return pass->goes_on(pass->context) &&
	       flame_tree_add(pass->tree, frames, depth, pass->by_samples ? samples : value,
			      samples);
}

bool named_stacks_count_incomplete(struct named_stacks *stacks, const struct result_stack *stack)
{
	stack = with_locations(stacks, stack);
	return stack && incomplete_counts_add(&stacks->incomplete, &stacks->names, stack);
}

static bool is_shown(const struct named_stacks *stacks, const struct walked *walked)
{
	const struct stack_view *view = stacks->view;

	if (view->focus && !(walked->flags & NAME_FOCUSED))
		return false;
	if (view->ignore && (walked->flags & NAME_IGNORED))
		return false;
	if (view->build && !(walked->flags & NAME_OF_BUILD))
		return false;
	if (walked->depth < view->root_depth)
		return false;
	for (unsigned i = 0; i < view->root_depth; i++)
		if (!frame_is_called(&stacks->frames[i], view->root[i]))
			return false;
	return true;
}

bool named_stacks_each(struct named_stacks *stacks, named_stack_fn *each, void *context,
		       struct stack_totals *totals, struct error *err)
{
	const struct stack_view *view = stacks->view;

	begin_totals(stacks, totals);
	for (size_t i = 0; i < stacks->result->stack_count; i++) {
		const struct result_stack *stack = with_locations(stacks,
								  &stacks->result->stacks[i]);
		struct walked walked = {0};

		if (view->goes_on && !view->goes_on(view->context))
			return false;
		if (!stack || !put_groups(stacks, stack, &walked))
			return error_no_memory(err);
		for (uint32_t j = stack->depth; j--;)
			if (!put_location(stacks, stack->locations[j], &walked))
				return error_no_memory(err);
		if (walked.flags & NAME_IDLE && !fold_idle(stacks, &walked))
			return error_no_memory(err);
		shape(stacks, &walked);
		if (!is_shown(stacks, &walked))
			continue;
		totals->value += stack->value;
		totals->samples += stack->samples;
		totals->idle_value += walked.flags & NAME_IDLE ? stack->value : 0;
		totals->idle_samples += walked.flags & NAME_IDLE ? stack->samples : 0;
		totals->unsymbolized += walked.is_unresolved ? stack->samples : 0;
		module_counts_nameless(stacks, stack, totals);
		if (walked.is_incomplete) {
			totals->unwind_incomplete += stack->samples;
			if (!incomplete_counts_add(&stacks->incomplete, &stacks->names, stack))
				return error_no_memory(err);
		}
		stacks->current = stack;
		if (!each(context, stacks->frames, walked.depth, stack->value, stack->samples))
			return false;
	}
	return true;
}

bool named_stacks_tree(struct named_stacks *stacks, struct flame_tree *tree, bool by_samples,
		       struct flame_limit limit, bool (*goes_on)(void *context), void *context,
		       struct stack_totals *totals, struct error *err)
{
	struct tree_pass pass = {tree, by_samples, limit, goes_on, context};

	if (!stacks->result->nodes || stacks->view->invert ||
	    stacks->view->recursion != RECURSION_KEPT)
		return named_stacks_each(stacks, add_to_tree, &pass, totals, err);
	begin_totals(stacks, totals);
	return tree_expand(stacks, &pass, totals, err);
}

const struct result_stack *named_stacks_current(const struct named_stacks *stacks)
{
	return stacks->current;
}

unsigned named_stacks_location(const struct named_stacks *stacks, uint32_t location,
			       const struct flame_frame *frames[NAMED_CHAIN_MAX])
{
	const struct location_frames *names = &stacks->names;
	const struct named_location *named = &names->locations[location];
	unsigned count = 0;

	for (uint32_t i = named->count; i-- && count < NAMED_CHAIN_MAX;)
		if (!(names->flags[named->first + i] & NAME_HIDDEN))
			frames[count++] = &names->frames[named->first + i];
	return count;
}

const struct flame_module *named_stacks_modules(const struct named_stacks *stacks, uint32_t *count)
{
	*count = stacks->names.module_count;
	return stacks->names.modules;
}

const uint64_t *named_stacks_samples(const struct named_stacks *stacks)
{
	return stacks->samples;
}

const uint64_t *named_stacks_nameless(const struct named_stacks *stacks)
{
	return stacks->nameless;
}

const uint64_t *named_stacks_unsymbolized(const struct named_stacks *stacks)
{
	return stacks->unsymbolized;
}

void named_stacks_incomplete(const struct named_stacks *stacks, struct accounting *accounting)
{
	incomplete_counts_fill(&stacks->incomplete, &stacks->names, accounting);
}

void named_stacks_free(struct named_stacks *stacks)
{
	if (!stacks)
		return;
	location_frames_release(&stacks->names);
	incomplete_counts_release(&stacks->incomplete);
	free(stacks->group_frames);
	free(stacks->unsymbolized);
	free(stacks->nameless);
	free(stacks->nameless_met);
	free(stacks->samples);
	free(stacks->frames);
	free(stacks->locations);
	free(stacks);
}
