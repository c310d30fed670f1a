/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/flame_pprof.h"

#include <stdlib.h>

#include "symbol-server/formats/pprof.h"

enum { LOCATION_HIDDEN = UINT32_MAX }; /* all of its frames are */

struct walk {
	struct flame_request *flame;
	struct pprof *pprof;
	uint32_t *numbers; /* by the result's location; 0: not met yet */
	uint32_t *stack;   /* numbers of the stack at hand */
	const char **label_values;
};

static uint32_t add_location(struct walk *walk, uint32_t location)
{
	const struct flame_frame *frames[NAMED_CHAIN_MAX];
	struct pprof_location out = {
		.address = walk->flame->result->locations[location].address,
		.frames = frames,
		.count = named_stacks_location(walk->flame->stacks, location, frames),
	};

	if (!out.count)
		return LOCATION_HIDDEN;
	out.module = frames[0]->module;
	return pprof_add_location(walk->pprof, &out);
}

static bool add_stack(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		      uint64_t samples)
{
	struct walk *walk = context;
	const struct result_stack *stack = named_stacks_current(walk->flame->stacks);
	size_t count = 0;

	(void)depth;
	for (unsigned i = 0; i < walk->flame->view.group_count; i++)
		walk->label_values[i] = frames[i].name;
	for (uint32_t i = 0; i < stack->depth; i++) {
		uint32_t *number = &walk->numbers[stack->locations[i]];

		if (!*number)
			*number = add_location(walk, stack->locations[i]);
		if (!*number)
			return false;
		if (*number != LOCATION_HIDDEN)
			walk->stack[count++] = *number;
	}
	return pprof_add_sample(walk->pprof, walk->stack, count, walk->label_values, value,
				samples);
}

static bool too_much(struct error *err)
{
	return error_set(err, ERROR_LIMIT,
			 "the profile has more than %d distinct stacks, or memory is short; narrow "
			 "time or match",
			 PPROF_SAMPLES_MAX);
}

struct pprof *flame_pprof(struct flame_request *flame, const struct flame_answer *answer,
			  struct accounting *accounting, struct buffer *out, struct error *err)
{
	const struct stack_view *view = &flame->view;
	struct walk walk = {.flame = flame};
	bool ok = false;

	walk.pprof = pprof_new(answer, view->groups, view->group_count, out);
	walk.numbers = calloc((size_t)flame->result->location_count + 1, sizeof(*walk.numbers));
	walk.stack = calloc(SAMPLES_DEPTH_MAX, sizeof(*walk.stack));
	walk.label_values = calloc(view->group_count + 1u, sizeof(*walk.label_values));
	if (!walk.pprof || !walk.numbers || !walk.stack || !walk.label_values) {
		error_no_memory(err);
		goto out;
	}
	if (!flame_request_each(flame, add_stack, &walk, err)) {
		if (err->kind == ERROR_NONE)
			too_much(err);
		goto out;
	}
	flame_request_accounting(flame, accounting);
	ok = true;
out:
	if (!ok) {
		pprof_free(walk.pprof);
		walk.pprof = NULL;
	}
	free(walk.numbers);
	free(walk.stack);
	free(walk.label_values);
	return walk.pprof;
}
