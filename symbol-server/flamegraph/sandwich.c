/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/sandwich.h"

#include <stdlib.h>

#include "common/array.h"

enum { FUNCTIONS_MAX = 1000000 };

bool sandwich_init(struct sandwich *sandwich, size_t limit_nodes,
		   bool (*is_wanted)(void *context, const struct flame_frame *frame), void *context)
{
	*sandwich = (struct sandwich){.is_wanted = is_wanted, .context = context};
	sandwich->callers = flame_tree_new(limit_nodes);
	sandwich->callees = flame_tree_new(limit_nodes);
	sandwich->functions = top_table_new(FUNCTIONS_MAX);
	return sandwich->callers && sandwich->callees && sandwich->functions;
}

static bool is_found(const struct sandwich *sandwich, const struct flame_frame *frame)
{
	return frame_is_function(frame) && sandwich->is_wanted(sandwich->context, frame);
}

/* The table is given the found frames alone, and a last one that is no function where the stack
 * ends in another: self then stays as it is. */
static bool add_functions(struct sandwich *sandwich, const struct flame_frame *frames, size_t depth,
			  uint64_t value, uint64_t samples)
{
	static const struct flame_frame elsewhere = {.name = "", .file = "", .kind = FRAME_group};
	struct flame_frame *path = sandwich->path;
	bool ends_in_it = is_found(sandwich, &frames[depth - 1]);
	size_t count = 0;

	for (size_t i = 0; i < depth; i++)
		if (is_found(sandwich, &frames[i]))
			path[count++] = frames[i];
	if (!ends_in_it)
		path[count++] = elsewhere;
	return top_table_add(sandwich->functions, path, count, value, samples);
}

bool sandwich_add(struct sandwich *sandwich, const struct flame_frame *frames, size_t depth,
		  uint64_t value, uint64_t samples)
{
	size_t first = 0;

	while (first < depth && !is_found(sandwich, &frames[first]))
		first++;
	if (first == depth)
		return true;
	if (!ARRAY_RESERVE(sandwich->path, depth + 1, sandwich->path_room) ||
	    !add_functions(sandwich, frames, depth, value, samples) ||
	    !flame_tree_add(sandwich->callees, frames + first, depth - first, value, samples))
		return false;
	for (size_t i = 0; i <= first; i++)
		sandwich->path[i] = frames[first - i];
	return flame_tree_add(sandwich->callers, sandwich->path, first + 1, value, samples);
}

void sandwich_release(struct sandwich *sandwich)
{
	flame_tree_free(sandwich->callers);
	flame_tree_free(sandwich->callees);
	top_table_free(sandwich->functions);
	free(sandwich->path);
	*sandwich = (struct sandwich){0};
}
