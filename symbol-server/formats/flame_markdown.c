/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/human.h"
#include "symbol-server/formats/quoted.h"
#include "symbol-server/formats/utf8.h"

enum {
	TABLE_ROWS = 20,
	PATHS = 10,
	PATH_FRAMES = 12, /* shown of a path: the first few and the rest at its leaf */
	PATH_FIRST = 4,
	NAME_BYTES = 200, /* of a name; the rest becomes "…" */
	SELECTOR_BYTES = 2000,
	UNKNOWN_MODULES = 10,
};

static void put_code(struct buffer *out, const char *before, const char *text, const char *after,
		     size_t most, bool is_cell)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t written = 0;

	buffer_printf(out, "`%s", before);
	while (*at && written < most) {
		size_t step, length = utf8_shown(at, &step);

		if (!length)
			buffer_append_text(out, UTF8_REPLACEMENT);
		else if (*at == '`')
			buffer_append_char(out, '\'');
		else if (*at == '|' && is_cell)
			buffer_append_text(out, "\\|");
		else if (*at < 0x20 || *at == 0x7f)
			buffer_append_char(out, ' ');
		else
			buffer_append(out, at, length);
		at += step;
		written += step;
	}
	buffer_printf(out, "%s%s`", *at ? "…" : "", after);
}

void markdown_put_code(struct buffer *out, const char *before, const char *text, const char *after,
		       size_t most)
{
	put_code(out, before, text, after, most, false);
}

void markdown_put_cell_code(struct buffer *out, const char *before, const char *text,
			    const char *after, size_t most)
{
	put_code(out, before, text, after, most, true);
}

/* Our own sentences, which may hold a stranger's word. */
static void put_plain(struct buffer *out, const char *text)
{
	size_t length, step;

	for (; *text; text += step) {
		length = utf8_shown((const unsigned char *)text, &step);
		if (strchr("\\`*_{}[]<>()#+!|~$&@", *text))
			buffer_append_char(out, '\\');
		if (!length)
			buffer_append_text(out, UTF8_REPLACEMENT);
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			buffer_append_char(out, ' ');
		else
			buffer_append(out, text, length);
	}
}

static void put_frame(struct buffer *out, const struct flame_frame *frame, bool is_cell)
{
	struct human_marks marks = human_marks(frame);

	put_code(out, marks.before, frame_whole_name(frame), marks.after, NAME_BYTES, is_cell);
}

static void put_place(struct buffer *out, const struct flame_answer *answer,
		      const struct flame_frame *frame)
{
	char line[16] = "";

	if (frame->line)
		snprintf(line, sizeof(line), ":%" PRIu32, frame->line);
	if (frame->file && *frame->file)
		markdown_put_cell_code(out, "", frame->file, line, NAME_BYTES);
	if (frame->module >= answer->module_count || !*answer->modules[frame->module].name)
		return;
	buffer_append_text(out, frame->file && *frame->file ? " in " : "");
	markdown_put_cell_code(out, "", answer->modules[frame->module].name, "", NAME_BYTES);
}

static void put_head(struct buffer *out, const struct flame_answer *answer)
{
	const struct accounting *accounting = answer->accounting;
	char from[HUMAN_TEXT], until[HUMAN_TEXT], value[HUMAN_TEXT];

	human_time(answer->from_ms, from);
	human_time(answer->until_ms, until);
	human_sampled_value(accounting->value, accounting->error, answer->unit,
			    accounting->is_sampled, value);
	buffer_printf(out, "# Profile: %s\n\n- **Time:** %s to %s\n- **Selected:** ", answer->type,
		      from, until);
	if (answer->match && *answer->match)
		markdown_put_code(out, "", answer->match, "", SELECTOR_BYTES);
	else
		buffer_append_text(out, "everything");
	buffer_append_text(out, "\n- **Total:** ");
	if (strcmp(answer->unit, "samples"))
		buffer_printf(out, "%s in %" PRIu64, value, accounting->samples);
	else
		buffer_append_text(out, value);
	buffer_printf(out, " sample%s of %" PRIu64 " host%s\n", accounting->samples == 1 ? "" : "s",
		      accounting->hosts, accounting->hosts == 1 ? "" : "s");
}

static int compare_own(const void *left, const void *right)
{
	const struct top_function *a = *(const struct top_function *const *)left;
	const struct top_function *b = *(const struct top_function *const *)right;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	return a->total != b->total ? (a->total < b->total ? 1 : -1)
				    : frame_compare_names(&a->frame, &b->frame);
}

static int compare_all(const void *left, const void *right)
{
	const struct top_function *a = *(const struct top_function *const *)left;
	const struct top_function *b = *(const struct top_function *const *)right;

	return a->total != b->total ? (a->total < b->total ? 1 : -1) : compare_own(left, right);
}

static struct human_whole whole_of(const struct flame_answer *answer)
{
	const struct accounting *accounting = answer->accounting;

	return (struct human_whole){accounting->value, accounting->error, accounting->is_sampled};
}

static void put_rows(struct buffer *out, const struct flame_answer *answer,
		     const struct top_function **functions, size_t count)
{
	struct human_whole whole = whole_of(answer);

	buffer_append_text(out, "| own | with callees | value | function | where |\n"
				"|---:|---:|---:|---|---|\n");
	for (size_t i = 0; i < count; i++) {
		char own[HUMAN_TEXT], all[HUMAN_TEXT], value[HUMAN_TEXT];

		human_sampled_share(functions[i]->self, functions[i]->self_squares, &whole, own);
		human_sampled_share(functions[i]->total, functions[i]->total_squares, &whole, all);
		human_sampled_value(functions[i]->self,
				    sampling_error(functions[i]->self, functions[i]->self_squares),
				    answer->unit, whole.is_sampled, value);
		buffer_printf(out, "| %s | %s | %s | ", own, all, value);
		put_frame(out, &functions[i]->frame, true);
		buffer_append_text(out, " | ");
		put_place(out, answer, &functions[i]->frame);
		buffer_append_text(out, " |\n");
	}
}

static bool put_functions(struct buffer *out, const struct flame_answer *answer)
{
	const struct top_table *top = answer->top;
	size_t limit = answer->top_limit < TABLE_ROWS ? answer->top_limit : TABLE_ROWS;
	size_t count = top->count < limit ? top->count : limit, own = 0;
	const struct top_function **functions = calloc(top->count + 1, sizeof(*functions));

	if (!functions)
		return false;
	for (size_t i = 0; i < top->count; i++)
		functions[i] = &top->functions[i];
	qsort(functions, top->count, sizeof(*functions), compare_own);
	while (own < count && functions[own]->self)
		own++;
	buffer_printf(out, "\n## Functions by their own share (%zu of %zu)\n\n", own, top->count);
	put_rows(out, answer, functions, own);
	qsort(functions, top->count, sizeof(*functions), compare_all);
	buffer_printf(out, "\n## Functions with what they call (%zu of %zu)\n\n", count,
		      top->count);
	put_rows(out, answer, functions, count);
	free(functions);
	return true;
}

static void put_path(struct buffer *out, const struct flame_tree *tree, uint32_t leaf,
		     uint32_t *path)
{
	uint32_t depth = 0;

	for (uint32_t at = leaf; at; at = tree->nodes[at].parent)
		path[depth++] = at;
	for (uint32_t i = 0; i < depth; i++) {
		if (i == PATH_FIRST && depth > PATH_FRAMES) {
			uint32_t skipped = depth - PATH_FRAMES;

			buffer_printf(out, " → … %" PRIu32 " more …", skipped);
			i += skipped;
		}
		buffer_append_text(out, i ? " → " : "");
		put_frame(out, &tree->nodes[path[depth - 1 - i]].frame, false);
	}
}

static bool put_paths(struct buffer *out, const struct flame_answer *answer)
{
	const struct flame_tree *tree = answer->tree;
	struct human_whole whole = whole_of(answer);
	uint32_t heaviest[PATHS + 1], count = 0;
	uint32_t *path = calloc(tree->count, sizeof(*path));

	if (!path)
		return false;
	for (uint32_t i = 1; i < tree->count; i++) {
		uint32_t at = count;

		if (!tree->nodes[i].self || tree->nodes[i].frame.kind == FRAME_cut)
			continue;
		for (; at && tree->nodes[heaviest[at - 1]].self < tree->nodes[i].self; at--)
			heaviest[at] = heaviest[at - 1];
		heaviest[at] = i;
		count = count < PATHS ? count + 1 : PATHS;
	}
	buffer_append_text(out, "\n## Hottest paths\n\n");
	for (uint32_t i = 0; i < count; i++) {
		const struct flame_node *node = &tree->nodes[heaviest[i]];
		char share[HUMAN_TEXT], value[HUMAN_TEXT];

		human_sampled_share(node->self, node->self_squares, &whole, share);
		human_sampled_value(node->self, sampling_error(node->self, node->self_squares),
				    answer->unit, whole.is_sampled, value);
		buffer_printf(out, "%" PRIu32 ". **%s** (%s) ", i + 1, share, value);
		put_path(out, tree, heaviest[i], path);
		buffer_append_char(out, '\n');
	}
	free(path);
	return true;
}

static void put_unknown_modules(struct buffer *out, const struct flame_answer *answer)
{
	uint32_t worst[UNKNOWN_MODULES + 1], count = 0;

	for (uint32_t i = 0; answer->unsymbolized && i < answer->module_count; i++) {
		uint32_t at = count;

		if (!answer->unsymbolized[i])
			continue;
		for (; at && answer->unsymbolized[worst[at - 1]] < answer->unsymbolized[i]; at--)
			worst[at] = worst[at - 1];
		worst[at] = i;
		count = count < UNKNOWN_MODULES ? count + 1 : UNKNOWN_MODULES;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct flame_module *module = &answer->modules[worst[i]];

		buffer_printf(out, "  - %" PRIu64 ": ", answer->unsymbolized[worst[i]]);
		markdown_put_code(out, "", module->name, "", NAME_BYTES);
		if (*module->build_id) {
			buffer_append_text(out, ", build-id ");
			markdown_put_code(out, "", module->build_id, "", NAME_BYTES);
		}
		buffer_append_char(out, '\n');
	}
}

static void put_incomplete(struct buffer *out, const struct accounting *accounting)
{
	for (unsigned i = 0; i < accounting->incomplete_count; i++) {
		const struct incomplete_reason *reason = &accounting->incomplete_by[i];

		buffer_printf(out, "  - %" PRIu64 ": ", reason->samples);
		put_plain(out, reason->reason);
		for (unsigned j = 0; j < reason->module_count; j++) {
			const struct incomplete_place *place = &reason->modules[j];

			buffer_append_text(out, j ? ", " : " — in ");
			markdown_put_code(out, "", *place->name ? place->name : place->build_id, "",
					  NAME_BYTES);
			buffer_printf(out, " (%" PRIu64 ")", place->samples);
		}
		buffer_append_char(out, '\n');
	}
}

static void put_threads(struct buffer *out, const struct flame_answer *answer)
{
	char time[HUMAN_TEXT];

	if (!answer->accounting->threads_from_ms)
		return;
	human_time(answer->accounting->threads_from_ms, time);
	buffer_printf(
		out,
		"- Threads are kept as long as single minutes are: before %s only sums are left, "
		"which belong to no thread\n",
		time);
}

static void put_untold(struct buffer *out, const struct flame_answer *answer)
{
	const struct accounting *accounting = answer->accounting;
	char share[HUMAN_TEXT];

	if (!accounting->processes_untold)
		return;
	human_share(accounting->processes_untold, accounting->processes_of, share);
	buffer_printf(
		out,
		"- Of processes of which nobody told what they are, so that no command, unit or "
		"user selects them: %s (%" PRIu64 " of %" PRIu64 " samples)\n",
		share, accounting->processes_untold, accounting->processes_of);
}

static void put_unknown(struct buffer *out, const struct flame_answer *answer)
{
	const struct accounting *accounting = answer->accounting;
	char share[HUMAN_TEXT], value[HUMAN_TEXT];

	buffer_append_text(out, "\n## What is unknown\n\n");
	human_share(accounting->nameless_value, accounting->value, share);
	human_value(accounting->nameless_value, answer->unit, value);
	buffer_printf(out, "- In functions without names: %s (%s), of %" PRIu64 " module%s\n",
		      value, share, accounting->nameless_modules,
		      accounting->nameless_modules == 1 ? "" : "s");
	human_share(accounting->unsymbolized, accounting->samples, share);
	buffer_printf(out, "- Samples with a native frame without a name: %" PRIu64 " (%s)\n",
		      accounting->unsymbolized, share);
	put_unknown_modules(out, answer);
	human_share(accounting->unwind_incomplete, accounting->samples, share);
	buffer_printf(out, "- Samples whose stack does not reach its start: %" PRIu64 " (%s)\n",
		      accounting->unwind_incomplete, share);
	put_incomplete(out, accounting);
	if (accounting->cut) {
		human_share(accounting->cut, accounting->value, share);
		buffer_printf(out, "- Left out of this report as too small: %s\n", share);
	}
	if (accounting->cut_by_memory) {
		human_share(accounting->cut_by_memory, accounting->value, share);
		buffer_printf(out,
			      "- Of that the lightest stacks, for which there was no memory: %s\n",
			      share);
	}
	put_threads(out, answer);
	put_untold(out, answer);
}

static void put_losses(struct buffer *out, const struct accounting *accounting)
{
	char share[HUMAN_TEXT];

	human_share(accounting->lost, accounting->taken, share);
	buffer_printf(out,
		      "\n## Losses\n\n- Taken by the selected hosts: %" PRIu64
		      " samples\n- Lost on the way: %" PRIu64 " (%s)\n",
		      accounting->taken, accounting->lost, share);
	for (unsigned i = 0; i < accounting->lost_count; i++) {
		if (!accounting->lost_by[i].count)
			continue;
		buffer_printf(out, "  - %" PRIu64 ": ", accounting->lost_by[i].count);
		put_plain(out, accounting->lost_by[i].reason);
		buffer_append_char(out, '\n');
	}
	if (accounting->unexplained)
		buffer_printf(out, "  - %" PRId64 ": unexplained\n", accounting->unexplained);
}

bool flame_markdown(const struct flame_answer *answer, struct buffer *out)
{
	put_head(out, answer);
	if ((answer->top && !put_functions(out, answer)) ||
	    (answer->tree && !put_paths(out, answer)))
		return false;
	if (answer->accounting->is_sampled)
		buffer_printf(
			out,
			"\n± is half of the 95 %% interval of sampling%s; how the load varies "
			"is not in it.\n",
			accounting_error_is_least(answer->accounting)
				? ", at least: how the moments differ that it is of is not known"
				: "");
	put_unknown(out, answer);
	put_losses(out, answer->accounting);
	return !out->failed;
}
