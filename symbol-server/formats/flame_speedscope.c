/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <stdlib.h>

#include "common/hash_table.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/human.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* A frame of the file: a name and signature in a file, with the line of the first node that had it.
 */
struct frames {
	struct hash_table table;
	uint32_t *nodes; /* by frame: the first node that had it */
	uint32_t count;
	uint32_t *frame_of; /* by node */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || !strcmp(a ? a : "", b ? b : "");
}

static const char *signature_of(const struct flame_frame *frame)
{
	return frame->signature ? frame->signature : "";
}

static bool frame_take(struct frames *frames, const struct flame_tree *tree, uint32_t node)
{
	const struct flame_frame *frame = &tree->nodes[node].frame;
	uint64_t hash = hash_word(
		hash_word(frame_name_hash(frame->name), frame_name_hash(signature_of(frame))),
		frame_name_hash(frame->file ? frame->file : ""));

	HASH_TABLE_EACH(at, &frames->table, hash) {
		const struct flame_frame *known = &tree->nodes[frames->nodes[at]].frame;

		if (frame_compare_names(known, frame) || !same_text(known->file, frame->file))
			continue;
		frames->frame_of[node] = at;
		return true;
	}
	if (!hash_table_add(&frames->table, hash, frames->count))
		return false;
	frames->nodes[frames->count] = node;
	frames->frame_of[node] = frames->count++;
	return true;
}

static void put_frames(struct json *json, const struct frames *frames,
		       const struct flame_tree *tree)
{
	json_key(json, "shared");
	json_open(json, '{');
	json_key(json, "frames");
	json_open(json, '[');
	for (uint32_t i = 0; i < frames->count; i++) {
		const struct flame_frame *frame = &tree->nodes[frames->nodes[i]].frame;

		json_open(json, '{');
		json_key_string(json, "name", frame->name);
		if (frame->file && *frame->file)
			json_key_string(json, "file", frame->file);
		if (frame->line)
			json_key_uint(json, "line", frame->line);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void put_event(struct json *json, char type, uint32_t frame, uint64_t at)
{
	json_open(json, '{');
	json_key_string(json, "type", (const char[]){type, 0});
	json_key_uint(json, "frame", frame);
	json_key_uint(json, "at", at);
	json_close(json, '}');
}

/* Depth first: a node's children, then its own value; what the root itself has comes last, as it
 * has no frame. Twice as many events as nodes, where samples would repeat each path. */
static void put_events(struct json *json, const struct frames *frames,
		       const struct flame_tree *tree)
{
	const struct flame_node *nodes = tree->nodes;
	uint32_t at = 0;
	uint64_t time = 0;

	json_key(json, "events");
	json_open(json, '[');
	for (;;) {
		if (at)
			put_event(json, 'O', frames->frame_of[at], time);
		if (nodes[at].first_child) {
			at = nodes[at].first_child;
			continue;
		}
		time += nodes[at].self;
		while (at) { /* close it and all that end with it */
			put_event(json, 'C', frames->frame_of[at], time);
			if (nodes[at].next_sibling)
				break;
			at = nodes[at].parent;
			time += nodes[at].self;
		}
		if (!at)
			break;
		at = nodes[at].next_sibling;
	}
	json_close(json, ']');
}

static void put_name(struct json *json, const struct flame_answer *answer)
{
	char from[HUMAN_TEXT], until[HUMAN_TEXT];
	struct buffer name;

	human_time(answer->from_ms, from);
	human_time(answer->until_ms, until);
	buffer_init(&name, 64 << 10);
	buffer_printf(&name, "%s %s %s – %s", answer->type, answer->match ? answer->match : "",
		      from, until);
	buffer_append_char(&name, 0);
	json_key_string(json, "name", name.failed ? answer->type : (const char *)name.bytes);
	buffer_release(&name);
}

static const char *unit_of(const struct flame_answer *answer)
{
	return strcmp(answer->unit, "nanoseconds") && strcmp(answer->unit, "bytes") ? "none"
										    : answer->unit;
}

bool flame_speedscope(const struct flame_answer *answer, struct buffer *out)
{
	const struct flame_tree *tree = answer->tree;
	struct json json = json_start(out);
	struct frames frames = {0};
	bool ok = false;

	hash_table_init(&frames.table, (uint32_t)tree->count);
	frames.nodes = calloc(tree->count, sizeof(*frames.nodes));
	frames.frame_of = calloc(tree->count, sizeof(*frames.frame_of));
	if (!frames.nodes || !frames.frame_of)
		goto out;
	for (uint32_t i = 1; i < tree->count; i++)
		if (!frame_take(&frames, tree, i))
			goto out;
	json_open(&json, '{');
	json_key_string(&json, "$schema", SCHEMA);
	json_key_string(&json, "exporter", "farflame " FARFLAME_VERSION);
	put_name(&json, answer);
	json_key_uint(&json, "activeProfileIndex", 0);
	put_frames(&json, &frames, tree);
	json_key(&json, "profiles");
	json_open(&json, '[');
	json_open(&json, '{');
	json_key_string(&json, "type", "evented");
	json_key_string(&json, "name", answer->type);
	json_key_string(&json, "unit", unit_of(answer));
	json_key_uint(&json, "startValue", 0);
	json_key_uint(&json, "endValue", tree->nodes[0].total);
	put_events(&json, &frames, tree);
	json_close(&json, '}');
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_append_char(out, '\n');
	ok = !out->failed;
out:
	hash_table_release(&frames.table);
	free(frames.nodes);
	free(frames.frame_of);
	return ok;
}
