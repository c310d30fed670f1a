/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/name_search.h"

bool name_search_has(struct name_search *search, const struct flame_frame *frame)
{
	uint64_t hash = frame->name_hash ? frame->name_hash : frame_name_hash(frame->name);
	unsigned at = hash & (NAME_SEARCH_ENTRIES - 1);

	if (search->cache[at].name != frame->name) {
		search->cache[at].name = frame->name;
		search->cache[at].is_wanted = pattern_matches_part(search->pattern, frame->name);
	}
	return search->cache[at].is_wanted;
}

bool name_search_any(struct name_search *search, const struct flame_frame *frames, size_t depth)
{
	for (size_t i = 0; i < depth; i++)
		if (name_search_has(search, &frames[i]))
			return true;
	return false;
}
