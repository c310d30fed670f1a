/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as tables: CSV for programs, Markdown for people. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "symbol-server/formats/diff_formats.h"
#include "symbol-server/formats/human.h"
#include "symbol-server/formats/quoted.h"

enum { TABLE_ROWS = 20, HOSTS = 10, NAME_BYTES = 200, SELECTOR_BYTES = 2000 };

/* Empty for what cannot be said. */
static void put_cell(struct buffer *out, double number)
{
	buffer_append_char(out, ',');
	if (isfinite(number))
		buffer_printf(out, "%.9g", number);
}

bool diff_csv(const struct diff_answer *answer, struct buffer *out)
{
	const struct diff_table *table = answer->functions;

	buffer_append_text(out, "name,file,line,module,build_id,self,total,base_self,base_total,"
				"samples,base_samples,before,after,change,ci_low,ci_high,state,"
				"recorded,sustained,signature,before_error,after_error\r\n");
	for (size_t i = 0; i < table->function_count && i < answer->functions_limit && !out->failed;
	     i++) {
		const struct diff_row *function = &table->functions[i];
		const struct flame_module *module = flame_answer_module(&answer->flame,
									&function->frame);
		const struct diff_sum *measure = answer->by_total ? function->total
								  : function->self;

		csv_put_text(out, function->frame.name);
		buffer_append_char(out, ',');
		csv_put_text(out, function->frame.file);
		buffer_printf(out, ",%" PRIu32 ",", function->frame.line);
		csv_put_text(out, module->name);
		buffer_append_char(out, ',');
		csv_put_text(out, module->build_id);
		buffer_printf(
			out,
			",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
			function->self[DIFF_COMPARE].value, function->total[DIFF_COMPARE].value,
			function->self[DIFF_BASE].value, function->total[DIFF_BASE].value,
			measure[DIFF_COMPARE].samples, measure[DIFF_BASE].samples);
		put_cell(out, function->before);
		put_cell(out, function->after);
		put_cell(out, function->change);
		put_cell(out, function->change_low);
		put_cell(out, function->change_high);
		buffer_printf(out, ",%s,%d,%s,", diff_state_names[function->state],
			      function->is_recorded, diff_sustained_names[function->sustained]);
		csv_put_text(out, function->frame.signature ? function->frame.signature : "");
		put_cell(out, diff_table_error(table, DIFF_BASE, function));
		put_cell(out, diff_table_error(table, DIFF_COMPARE, function));
		buffer_append_text(out, "\r\n");
	}
	return !out->failed;
}

/* --- Markdown --- */

static void put_side(struct buffer *out, const char *name, const struct flame_answer *side)
{
	char from[HUMAN_TEXT], until[HUMAN_TEXT], value[HUMAN_TEXT];
	char unnamed[HUMAN_TEXT], lost[HUMAN_TEXT];

	human_time(side->from_ms, from);
	human_time(side->until_ms, until);
	human_sampled_value(side->accounting->value, side->accounting->error, side->unit,
			    side->accounting->is_sampled, value);
	human_share(side->accounting->nameless_value, side->accounting->value, unnamed);
	human_share(side->accounting->lost, side->accounting->taken, lost);
	buffer_printf(out, "| %s | %s … %s | %s | %" PRIu64 " | %" PRIu64 " | %s | %s | ", name,
		      from, until, value, side->accounting->samples, side->accounting->hosts,
		      unnamed, lost);
	if (side->match && *side->match)
		markdown_put_code(out, "", side->match, "", SELECTOR_BYTES);
	buffer_append_text(out, " |\n");
}

/* "+12.3 %" */
static void put_change(struct buffer *out, double change)
{
	double size = fabs(change * 100);

	buffer_printf(out, "%s%.*f %%", change < 0 ? "−" : "+", size < 9.95 ? 1 : 0, size);
}

/* In the norm's unit: a share in percent, a rate by time as CPUs or bytes per second. */
static void put_rate(struct buffer *out, const struct diff_answer *answer, double rate)
{
	char text[HUMAN_TEXT];

	if (!strcmp(answer->norm, "share")) {
		buffer_printf(out, "%.3g %%", 100 * rate);
		return;
	}
	human_value((uint64_t)(rate < 1.8e19 ? rate + 0.5 : 0), answer->flame.unit, text);
	buffer_printf(out, "%s%s", text, strcmp(answer->norm, "raw") ? "/s" : "");
}

/* A cell with its left edge. */
static void put_sampled_rate(struct buffer *out, const struct diff_answer *answer,
			     enum diff_side side, const struct diff_row *row)
{
	double error = diff_table_error(answer->functions, side, row);

	buffer_append_text(out, "| ");
	put_rate(out, answer, side == DIFF_BASE ? row->before : row->after);
	if (error > 0 && answer->flame.accounting->is_sampled) {
		buffer_append_text(out, " ± ");
		put_rate(out, answer, error);
	}
	buffer_append_char(out, ' ');
}

/* An end of an interval, which may have none. */
static void put_end(struct buffer *out, double change)
{
	if (isfinite(change))
		put_change(out, change);
	else
		buffer_append_text(out, "∞");
}

static void put_difference(struct buffer *out, const struct diff_row *row)
{
	if (row->state == DIFF_NEW) {
		buffer_append_text(out, "new |  | ");
	} else if (row->state == DIFF_GONE) {
		buffer_append_text(out, "gone |  | ");
	} else {
		put_change(out, row->change);
		buffer_append_text(out, " | ");
		if (!isnan(row->change_low)) {
			put_end(out, row->change_low);
			buffer_append_text(out, " … ");
			put_end(out, row->change_high);
		}
		buffer_append_text(out, " | ");
	}
	buffer_printf(out, "%s | %s | ", row->is_recorded ? "yes" : "no",
		      diff_sustained_names[row->sustained]);
}

static void put_row(struct buffer *out, const struct diff_answer *answer,
		    const struct diff_row *row)
{
	const struct flame_module *module = flame_answer_module(&answer->flame, &row->frame);
	struct human_marks marks = human_marks(&row->frame);

	put_sampled_rate(out, answer, DIFF_BASE, row);
	put_sampled_rate(out, answer, DIFF_COMPARE, row);
	buffer_append_text(out, "| ");
	put_difference(out, row);
	if (row->is_process)
		marks.before = marks.after = "";
	markdown_put_cell_code(out, marks.before, frame_whole_name(&row->frame), marks.after,
			       NAME_BYTES);
	if (!row->is_process && *module->name) {
		buffer_append_text(out, " in ");
		markdown_put_cell_code(out, "", module->name, "", NAME_BYTES);
	}
	buffer_append_text(out, " |\n");
}

static void put_changes(struct buffer *out, const struct diff_answer *answer, const char *title,
			const struct diff_row *rows, size_t count, bool more)
{
	size_t shown = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		if (rows[i].after == rows[i].before || (rows[i].after > rows[i].before) != more)
			continue;
		if (!all++)
			buffer_printf(
				out,
				"\n## %s than before: %s\n\n| before | now | change | 95 %% "
				"interval | recorded | sustained | name |\n|--:|--:|--:|:-:|:-"
				"-|:--|:--|\n",
				more ? "More" : "Less", title);
		if (shown == TABLE_ROWS)
			continue;
		put_row(out, answer, &rows[i]);
		shown++;
	}
	if (all > shown)
		buffer_printf(out, "\n%zu further ones, of smaller differences.\n", all - shown);
}

static void put_hosts(struct buffer *out, const struct diff_answer *answer, enum diff_side side,
		      const char *what)
{
	uint32_t count = answer->hosts_alone[side];

	if (!count)
		return;
	buffer_printf(out, "\n%" PRIu32 " host%s %s, in sums only:", count, count > 1 ? "s" : "",
		      what);
	for (uint32_t i = 0; i < count && i < HOSTS; i++) {
		buffer_append_text(out, i ? ", " : " ");
		markdown_put_code(out, "", answer->hosts[side][i].name, "", NAME_BYTES);
		buffer_append_text(out, " with ");
		put_rate(out, answer,
			 diff_table_normalized(answer->functions, side,
					       answer->hosts[side][i].value));
	}
	buffer_append_text(out, count > HOSTS ? ", …\n" : ".\n");
}

static void put_statistics(struct buffer *out, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;

	if (answer->is_base_moved)
		buffer_append_text(out, "\nThe ranges overlapped: the base was moved back to where "
					"the other one begins.\n");
	put_hosts(out, answer, DIFF_COMPARE, "joined");
	put_hosts(out, answer, DIFF_BASE, "left");
	buffer_printf(out,
		      "\nOf %zu functions tested (%s values, %s), %zu differ by more than 5 %% in "
		      "what was recorded, sampling alone considered. ",
		      table->tested, answer->by_total ? "total" : "self", answer->norm,
		      table->recorded);
	if (table->is_too_short)
		buffer_append_text(out, "The ranges are too short to tell whether that stands out "
					"from how minutes vary by themselves.\n");
	else
		buffer_printf(out,
			      "%zu stand out from how minutes vary by themselves (sustained).\n",
			      table->sustained);
}

bool diff_markdown(const struct diff_answer *answer, struct buffer *out)
{
	const struct diff_table *table = answer->functions;

	buffer_printf(out,
		      "# %s, compared\n\n| | time (UTC) | value | samples | hosts | without "
		      "names | lost | selection |\n|:--|:--|--:|--:|--:|--:|--:|:--|\n",
		      answer->flame.type);
	put_side(out, "before", &answer->base);
	put_side(out, "now", &answer->flame);
	put_statistics(out, answer);
	for (int more = 1; more >= 0; more--) {
		put_changes(out, answer, "processes", table->processes, table->process_count, more);
		put_changes(out, answer, "functions", table->functions, table->function_count,
			    more);
	}
	return !out->failed;
}
