/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/sources_json.h"

void sources_json_servers(struct json *json, struct symbol_sources *sources)
{
	struct source_state states[SOURCES_MAX];
	size_t count = symbol_sources_states(sources, states, SOURCES_MAX);

	json_key(json, "debuginfod");
	json_open(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(json, '{');
		json_key_string(json, "source", states[i].url);
		json_key_uint(json, "is_down", states[i].is_closed);
		json_key_string(json, "detail", states[i].sentence);
		json_close(json, '}');
	}
	json_close(json, ']');
}
