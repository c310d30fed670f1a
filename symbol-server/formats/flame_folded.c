/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/utf8.h"

enum { NAMES_LIMIT = 1 << 30 };

/* Nodes that differ only in module or kind are one stack here: they are joined by their shown
 * names. */
struct line {
	const char *name;
	uint32_t parent, depth;
	uint64_t self, base; /* base: of comparisons */
};

struct folder {
	const struct flame_tree *tree;
	double base_scale;
	struct hash_table table; /* (parent line, name) → line */
	struct line *lines;      /* 0 the root */
	uint32_t count;
	uint32_t *line_of; /* by node */
	struct arena names;
};

static bool has_meaning(unsigned char c)
{
	return c == ';' || c < 0x20 || c == 0x7f;
}

/* The name itself where nothing has to change. NULL: no memory. */
static const char *shown_name(struct arena *arena, const struct flame_frame *frame)
{
	static const char suffix[] = "_[k]";
	size_t length = strlen(frame->name);
	bool is_kernel = frame->is_kernel || frame->kind == FRAME_kernel, is_plain = !is_kernel;
	char *shown;

	for (size_t i = 0; is_plain && i < length; i++)
		is_plain = !has_meaning((unsigned char)frame->name[i]) && !(frame->name[i] & 0x80);
	if (is_plain)
		return frame->name;
	shown = arena_alloc(arena, length + (is_kernel ? sizeof(suffix) : 1));
	if (!shown)
		return NULL;
	for (size_t i = 0, step; i < length; i += step) {
		const unsigned char *at = (const unsigned char *)frame->name + i;
		bool is_shown = utf8_shown(at, &step) > 0 && !has_meaning(*at);

		for (size_t j = 0; j < step; j++)
			shown[i + j] = is_shown ? (char)at[j] : '_';
	}
	shown[length] = '\0';
	if (is_kernel)
		memcpy(shown + length, suffix, sizeof(suffix));
	return shown;
}

static bool line_take(struct folder *folder, uint32_t parent, const char *name, uint32_t *line)
{
	uint64_t hash = hash_word(frame_name_hash(name), parent);

	HASH_TABLE_EACH(at, &folder->table, hash) {
		if (folder->lines[at].parent != parent || strcmp(folder->lines[at].name, name))
			continue;
		*line = at;
		return true;
	}
	*line = folder->count;
	if (!hash_table_add(&folder->table, hash, folder->count))
		return false;
	folder->lines[folder->count++] = (struct line){
		.name = name, .parent = parent, .depth = folder->lines[parent].depth + 1};
	return true;
}

static bool fold(struct folder *folder)
{
	folder->lines[0] = (struct line){.name = ""};
	folder->count = 1;
	for (size_t i = 0; i < folder->tree->count; i++) {
		const struct flame_node *node = &folder->tree->nodes[i];
		const char *name;

		if (i) {
			name = shown_name(&folder->names, &node->frame);
			if (!name || !line_take(folder, folder->line_of[node->parent], name,
						&folder->line_of[i]))
				return false;
		}
		folder->lines[folder->line_of[i]].self += node->self;
		folder->lines[folder->line_of[i]].base += node->self_samples;
	}
	return true;
}

static void put_line(const struct folder *folder, uint32_t at, const uint32_t *path,
		     struct buffer *out)
{
	uint32_t depth = folder->lines[at].depth;

	if (!depth)
		buffer_append_text(out, "all");
	for (uint32_t i = 0; i < depth; i++) {
		if (i)
			buffer_append_char(out, ';');
		buffer_append_text(out, folder->lines[path[i]].name);
	}
	if (folder->base_scale > 0)
		buffer_printf(out, " %.0f", (double)folder->lines[at].base * folder->base_scale);
	buffer_printf(out, " %llu\n", (unsigned long long)folder->lines[at].self);
}

static bool put_lines(const struct folder *folder, struct buffer *out)
{
	uint32_t deepest = 0, *path;

	for (uint32_t i = 0; i < folder->count; i++)
		if (folder->lines[i].depth > deepest)
			deepest = folder->lines[i].depth;
	path = calloc(deepest + 1, sizeof(*path));
	if (!path)
		return false;
	for (uint32_t i = 0; i < folder->count && !out->failed; i++) {
		uint32_t at = i;

		if (!folder->lines[i].self && !(folder->base_scale > 0 && folder->lines[i].base))
			continue;
		for (uint32_t depth = folder->lines[i].depth; depth; depth--) {
			path[depth - 1] = at;
			at = folder->lines[at].parent;
		}
		put_line(folder, i, path, out);
	}
	free(path);
	return !out->failed;
}

bool flame_folded(const struct flame_answer *answer, struct buffer *out)
{
	struct folder folder = {.tree = answer->tree, .base_scale = answer->base_scale};
	bool ok;

	hash_table_init(&folder.table, (uint32_t)answer->tree->count);
	arena_init(&folder.names,
		   answer->memory && answer->memory < NAMES_LIMIT ? answer->memory : NAMES_LIMIT);
	folder.lines = calloc(answer->tree->count, sizeof(*folder.lines));
	folder.line_of = calloc(answer->tree->count, sizeof(*folder.line_of));
	ok = folder.lines && folder.line_of && fold(&folder) && put_lines(&folder, out);
	hash_table_release(&folder.table);
	arena_release(&folder.names);
	free(folder.lines);
	free(folder.line_of);
	return ok;
}
