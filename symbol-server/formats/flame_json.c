/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/flame_numbers.h"

static void put_texts(const struct flame_numbers *numbers, struct json *json)
{
	json_key(json, "names");
	json_open(json, '[');
	for (uint32_t i = 0; i < numbers->name_count; i++)
		json_string(json, numbers->names[i]->name);
	json_close(json, ']');
	flame_numbers_signatures_json(numbers, json);
	flame_numbers_languages_json(numbers, json);
	json_key(json, "files");
	json_open(json, '[');
	for (uint32_t i = 0; i < numbers->files.count; i++)
		json_string(json, numbers->files.texts[i]);
	json_close(json, ']');
}

static void put_stacks(const struct flame_tree *tree, struct json *json)
{
	json_key(json, "stack");
	json_open(json, '[');
	for (size_t i = 0; i < tree->count; i++)
		stack_id_json(json, tree->nodes[i].stack);
	json_close(json, ']');
}

static void put_nodes(const struct flame_numbers *numbers, struct json *json)
{
	const struct flame_answer *answer = numbers->answer;

	json_key(json, "nodes");
	json_open(json, '{');
	for (enum flame_column column = FLAME_NAME; column < FLAME_COLUMNS; column++) {
		if (!flame_numbers_has(answer, column))
			continue;
		json_key(json, flame_column_names[column]);
		json_open(json, '[');
		for (size_t i = 0; i < answer->tree->count; i++)
			json_int(json, flame_numbers_cell(numbers, i, column));
		json_close(json, ']');
	}
	if (answer->with_stacks)
		put_stacks(answer->tree, json);
	json_close(json, '}');
}

bool flame_graph_json(struct json *json, const struct flame_answer *answer)
{
	struct flame_numbers numbers;
	bool ok = flame_numbers_init(&numbers, answer);

	if (ok) {
		put_texts(&numbers, json);
		flame_numbers_modules_json(&numbers, json);
		flame_kinds_json(json);
		put_nodes(&numbers, json);
	}
	flame_numbers_release(&numbers);
	return ok && !json->out->failed;
}

bool flame_end_json(struct json *json, const struct flame_answer *answer)
{
	json_key(json, "accounting");
	accounting_json(json, answer->accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	buffer_append_char(json->out, '\n');
	return !json->out->failed;
}

bool flame_json(const struct flame_answer *answer, struct buffer *out)
{
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	flame_range_json(json, answer);
	return flame_graph_json(json, answer) && flame_end_json(json, answer);
}
