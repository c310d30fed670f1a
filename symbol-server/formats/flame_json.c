/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/text_list.h"

struct writer {
	const struct flame_answer *answer;
	struct json json;
	struct text_list names, files;
	uint32_t *name_of, *file_of; /* by node; UINT32_MAX none */
	uint32_t *module_of;         /* by the tree's number → number in the answer */
	uint32_t *modules;           /* back */
	uint32_t module_count;
};

static void number_module(struct writer *writer, uint32_t module)
{
	if (module >= writer->answer->module_count || writer->module_of[module] != UINT32_MAX)
		return;
	writer->module_of[module] = writer->module_count;
	writer->modules[writer->module_count++] = module;
}

static bool number_texts(struct writer *writer)
{
	const struct flame_tree *tree = writer->answer->tree;

	for (uint32_t i = 0; i < writer->answer->module_count; i++)
		writer->module_of[i] = UINT32_MAX;
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_frame *frame = &tree->nodes[i].frame;
		const char *file = frame->file ? frame->file : "";

		writer->file_of[i] = UINT32_MAX;
		if (!text_list_take(&writer->names, frame->name, frame->name_hash,
				    &writer->name_of[i]))
			return false;
		if (*file && !text_list_take(&writer->files, file, 0, &writer->file_of[i]))
			return false;
		number_module(writer, frame->module);
	}
	return true;
}

static bool writer_init(struct writer *writer)
{
	size_t nodes = writer->answer->tree->count;
	size_t modules = writer->answer->module_count + 1;

	text_list_init(&writer->names, (uint32_t)nodes);
	text_list_init(&writer->files, (uint32_t)nodes);
	writer->name_of = calloc(nodes, sizeof(*writer->name_of));
	writer->file_of = calloc(nodes, sizeof(*writer->file_of));
	writer->module_of = calloc(modules, sizeof(*writer->module_of));
	writer->modules = calloc(modules, sizeof(*writer->modules));
	return writer->name_of && writer->file_of && writer->module_of && writer->modules;
}

static void writer_release(struct writer *writer)
{
	text_list_release(&writer->names);
	text_list_release(&writer->files);
	free(writer->name_of);
	free(writer->file_of);
	free(writer->module_of);
	free(writer->modules);
}

static void put_texts(struct json *json, const char *key, const struct text_list *list)
{
	json_key(json, key);
	json_open(json, '[');
	for (uint32_t i = 0; i < list->count; i++)
		json_string(json, list->texts[i]);
	json_close(json, ']');
}

static void put_modules(struct writer *writer)
{
	struct json *json = &writer->json;

	json_key(json, "modules");
	json_open(json, '[');
	for (uint32_t i = 0; i < writer->module_count; i++) {
		const struct flame_module *module = &writer->answer->modules[writer->modules[i]];

		json_open(json, '{');
		json_key_string(json, "name", module->name);
		json_key_string(json, "build_id", module->build_id);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_kinds(struct json *json)
{
#define KIND_TEXT(name_) #name_,
	static const char *const kinds[] = {FRAME_KINDS(KIND_TEXT)};

	json_key(json, "kinds");
	json_open(json, '[');
	for (size_t i = 0; i < FRAME_KIND_COUNT; i++)
		json_string(json, kinds[i]);
	json_close(json, ']');
}

enum column {
	NAME,
	FILE_,
	LINE,
	MODULE,
	PARENT,
	SELF,
	TOTAL,
	KIND,
	BASE_SELF, /* from here on of comparisons */
	BASE_TOTAL,
	COLUMNS
};

static int64_t cell(const struct writer *writer, size_t i, enum column column)
{
	const struct flame_node *node = &writer->answer->tree->nodes[i];

	switch (column) {
	case NAME:
		return writer->name_of[i];
	case FILE_:
		return writer->file_of[i] == UINT32_MAX ? -1 : (int64_t)writer->file_of[i];
	case LINE:
		return node->frame.line;
	case MODULE:
		return node->frame.module < writer->answer->module_count
			       ? (int64_t)writer->module_of[node->frame.module]
			       : -1;
	case PARENT:
		return i ? (int64_t)node->parent : -1;
	case SELF:
		return (int64_t)node->self;
	case TOTAL:
		return (int64_t)node->total;
	case BASE_SELF:
		return (int64_t)node->self_samples;
	case BASE_TOTAL:
		return (int64_t)node->total_samples;
	default:
		return (int64_t)node->frame.kind;
	}
}

static void put_nodes(struct writer *writer)
{
	static const char *const keys[COLUMNS] = {"name",      "file",      "line",  "module",
						  "parent",    "self",      "total", "kind",
						  "base_self", "base_total"};
	enum column columns = writer->answer->base_scale > 0 ? COLUMNS : BASE_SELF;
	struct json *json = &writer->json;

	json_key(json, "nodes");
	json_open(json, '{');
	for (enum column column = NAME; column < columns; column++) {
		json_key(json, keys[column]);
		json_open(json, '[');
		for (size_t i = 0; i < writer->answer->tree->count; i++)
			json_int(json, cell(writer, i, column));
		json_close(json, ']');
	}
	json_close(json, '}');
}

bool flame_graph_json(struct json *json, const struct flame_answer *answer)
{
	struct writer writer = {.answer = answer, .json = *json};
	bool ok = writer_init(&writer) && number_texts(&writer);

	if (ok) {
		put_texts(&writer.json, "names", &writer.names);
		put_texts(&writer.json, "files", &writer.files);
		put_modules(&writer);
		put_kinds(&writer.json);
		put_nodes(&writer);
	}
	*json = writer.json;
	writer_release(&writer);
	return ok && !json->out->failed;
}

bool flame_json(const struct flame_answer *answer, struct buffer *out)
{
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	json_key_string(json, "type", answer->type);
	json_key_string(json, "unit", answer->unit);
	json_key_int(json, "from", answer->from_ms);
	json_key_int(json, "until", answer->until_ms);
	if (!flame_graph_json(json, answer))
		return false;
	json_key(json, "accounting");
	accounting_json(json, answer->accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}
