/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/flame_numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"

const char *const flame_column_names[FLAME_COLUMNS] = {
	"name",  "file", "line",      "module",     "parent",     "self",
	"total", "kind", "base_self", "base_total", "self_error", "total_error"};

static void number_module(struct flame_numbers *numbers, uint32_t module)
{
	if (module >= numbers->answer->module_count || numbers->module_of[module] != UINT32_MAX)
		return;
	numbers->module_of[module] = numbers->module_count;
	numbers->modules[numbers->module_count++] = module;
}

/* A name is another one with each of its signatures and languages: the list has it as often. */
static bool take_name(struct flame_numbers *numbers, const struct flame_frame *frame,
		      uint32_t *number)
{
	const struct flame_frame key = {.name = frame->name,
					.signature = frame->signature,
					.name_hash = frame->name_hash,
					.signature_hash = frame->signature_hash};
	uint64_t hash = hash_word(frame_function_hash(&key), frame->language);

	HASH_TABLE_EACH(at, &numbers->name_table, hash)
		if (!frame_compare_names(numbers->names[at], frame) &&
		    numbers->names[at]->language == frame->language) {
			*number = at;
			return true;
		}
	if (!hash_table_add(&numbers->name_table, hash, numbers->name_count))
		return false;
	numbers->names[numbers->name_count] = frame;
	*number = numbers->name_count++;
	return true;
}

static bool number_texts(struct flame_numbers *numbers)
{
	const struct flame_tree *tree = numbers->answer->tree;

	for (uint32_t i = 0; i < numbers->answer->module_count; i++)
		numbers->module_of[i] = UINT32_MAX;
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_frame *frame = &tree->nodes[i].frame;
		const char *file = frame->file ? frame->file : "";

		numbers->file_of[i] = UINT32_MAX;
		if (!take_name(numbers, frame, &numbers->name_of[i]))
			return false;
		if (*file && !text_list_take(&numbers->files, file, 0, &numbers->file_of[i]))
			return false;
		number_module(numbers, frame->module);
	}
	return true;
}

static bool make_room(struct flame_numbers *numbers)
{
	size_t nodes = numbers->answer->tree->count;
	size_t modules = numbers->answer->module_count + 1;

	hash_table_init(&numbers->name_table, (uint32_t)nodes);
	text_list_init(&numbers->files, (uint32_t)nodes);
	numbers->names = calloc(nodes, sizeof(*numbers->names));
	numbers->name_of = calloc(nodes, sizeof(*numbers->name_of));
	numbers->file_of = calloc(nodes, sizeof(*numbers->file_of));
	numbers->module_of = calloc(modules, sizeof(*numbers->module_of));
	numbers->modules = calloc(modules, sizeof(*numbers->modules));
	return numbers->names && numbers->name_of && numbers->file_of && numbers->module_of &&
	       numbers->modules;
}

bool flame_numbers_init(struct flame_numbers *numbers, const struct flame_answer *answer)
{
	memset(numbers, 0, sizeof(*numbers));
	numbers->answer = answer;
	return make_room(numbers) && number_texts(numbers);
}

void flame_numbers_release(struct flame_numbers *numbers)
{
	hash_table_release(&numbers->name_table);
	free(numbers->names);
	text_list_release(&numbers->files);
	free(numbers->name_of);
	free(numbers->file_of);
	free(numbers->module_of);
	free(numbers->modules);
}

void flame_numbers_modules_json(const struct flame_numbers *numbers, struct json *json)
{
	json_key(json, "modules");
	json_open(json, '[');
	for (uint32_t i = 0; i < numbers->module_count; i++) {
		const struct flame_module *module = &numbers->answer->modules[numbers->modules[i]];

		json_open(json, '{');
		json_key_string(json, "name", module->name);
		json_key_string(json, "build_id", module->build_id);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void flame_numbers_signatures_json(const struct flame_numbers *numbers, struct json *json)
{
	char number[16];

	json_key(json, "signatures");
	json_open(json, '{');
	for (uint32_t i = 0; i < numbers->name_count; i++) {
		if (!numbers->names[i]->signature)
			continue;
		snprintf(number, sizeof(number), "%" PRIu32, i);
		json_key_string(json, number, numbers->names[i]->signature);
	}
	json_close(json, '}');
}

void flame_numbers_languages_json(const struct flame_numbers *numbers, struct json *json)
{
	char number[16];
	bool is_open = false;

	for (uint32_t i = 0; i < numbers->name_count; i++) {
		if (!numbers->names[i]->language)
			continue;
		if (!is_open) {
			json_key(json, "languages");
			json_open(json, '{');
			is_open = true;
		}
		snprintf(number, sizeof(number), "%" PRIu32, i);
		json_key_string(json, number, frame_language_names[numbers->names[i]->language]);
	}
	if (is_open)
		json_close(json, '}');
}

void flame_kinds_json(struct json *json)
{
	json_key(json, "kinds");
	json_open(json, '[');
	for (size_t i = 0; i < FRAME_KIND_COUNT; i++)
		json_string(json, frame_kind_names[i]);
	json_close(json, ']');
}

bool flame_numbers_has(const struct flame_answer *answer, enum flame_column column)
{
	switch (column) {
	case FLAME_BASE_SELF:
	case FLAME_BASE_TOTAL:
		return answer->base_scale > 0;
	case FLAME_SELF_ERROR:
	case FLAME_TOTAL_ERROR:
		return answer->with_errors && answer->accounting->is_sampled;
	default:
		return true;
	}
}

int64_t flame_numbers_cell(const struct flame_numbers *numbers, size_t i, enum flame_column column)
{
	const struct flame_node *node = &numbers->answer->tree->nodes[i];

	switch (column) {
	case FLAME_NAME:
		return numbers->name_of[i];
	case FLAME_FILE:
		return numbers->file_of[i] == UINT32_MAX ? -1 : (int64_t)numbers->file_of[i];
	case FLAME_LINE:
		return node->frame.line;
	case FLAME_MODULE:
		return node->frame.module < numbers->answer->module_count
			       ? (int64_t)numbers->module_of[node->frame.module]
			       : -1;
	case FLAME_PARENT:
		return i ? (int64_t)node->parent : -1;
	case FLAME_SELF:
		return (int64_t)node->self;
	case FLAME_TOTAL:
		return (int64_t)node->total;
	case FLAME_BASE_SELF:
		return (int64_t)node->self_samples;
	case FLAME_BASE_TOTAL:
		return (int64_t)node->total_samples;
	case FLAME_SELF_ERROR:
		return (int64_t)sampling_error(node->self, node->self_squares);
	case FLAME_TOTAL_ERROR:
		return (int64_t)sampling_error(node->total, node->total_squares);
	default:
		return (int64_t)node->frame.kind;
	}
}
