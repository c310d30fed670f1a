/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as tables: CSV for programs, Markdown for people. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "symbol-server/formats/diff_formats.h"
#include "symbol-server/formats/human.h"
#include "symbol-server/formats/quoted.h"

enum { TABLE_ROWS = 20, NAME_BYTES = 200, SELECTOR_BYTES = 2000 };

static const struct flame_module *module_of(const struct diff_answer *answer,
					    const struct flame_frame *frame)
{
	static const struct flame_module none = {.name = "", .build_id = ""};

	return frame->module < answer->flame.module_count ? &answer->flame.modules[frame->module]
							  : &none;
}

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
				"samples,base_samples,before,after,change,ci_low,ci_high,p,q,"
				"significant\r\n");
	for (size_t i = 0; i < table->count && i < answer->functions_limit && !out->failed; i++) {
		const struct diff_function *function = &table->functions[i];
		const struct flame_module *module = module_of(answer, &function->frame);
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
		put_cell(out, function->p);
		put_cell(out, function->q);
		buffer_printf(out, ",%d\r\n", function->is_significant);
	}
	return !out->failed;
}

bool diff_warning(const struct diff_answer *answer, char text[DIFF_WARNING])
{
	char length[HUMAN_TEXT];

	if (answer->overlap_ms <= 0)
		return false;
	human_value((uint64_t)answer->overlap_ms * 1000000, "nanoseconds", length);
	snprintf(text, DIFF_WARNING,
		 "the two ranges overlap by %s, widened as they are to whole steps of what is "
		 "stored: its samples are on both sides, which makes changes look smaller",
		 length);
	return true;
}

/* --- Markdown --- */

static void put_side(struct buffer *out, const char *name, const struct flame_answer *side)
{
	char from[HUMAN_TEXT], until[HUMAN_TEXT], value[HUMAN_TEXT];
	char unnamed[HUMAN_TEXT], lost[HUMAN_TEXT];

	human_time(side->from_ms, from);
	human_time(side->until_ms, until);
	human_value(side->accounting->value, side->unit, value);
	human_share(side->accounting->unsymbolized, side->accounting->samples, unnamed);
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

static void put_row(struct buffer *out, const struct diff_answer *answer,
		    const struct diff_function *function)
{
	const struct flame_module *module = module_of(answer, &function->frame);
	struct human_marks marks = human_marks(&function->frame);

	buffer_append_text(out, "| ");
	put_rate(out, answer, function->before);
	buffer_append_text(out, " | ");
	put_rate(out, answer, function->after);
	buffer_append_text(out, " | ");
	if (!isfinite(function->change))
		buffer_append_text(out, "new |  | ");
	else if (!isfinite(function->change_low))
		buffer_append_text(out, "gone |  | ");
	else {
		put_change(out, function->change);
		buffer_append_text(out, " | ");
		put_change(out, function->change_low);
		buffer_append_text(out, " … ");
		put_change(out, function->change_high);
		buffer_append_text(out, " | ");
	}
	markdown_put_cell_code(out, marks.before, function->frame.name, marks.after, NAME_BYTES);
	if (*module->name) {
		buffer_append_text(out, " in ");
		markdown_put_cell_code(out, "", module->name, "", NAME_BYTES);
	}
	buffer_append_text(out, " |\n");
}

static void put_changes(struct buffer *out, const struct diff_answer *answer, bool more)
{
	const struct diff_table *table = answer->functions;
	size_t shown = 0, all = 0;

	for (size_t i = 0; i < table->significant; i++) {
		const struct diff_function *function = &table->functions[i];

		if ((function->after > function->before) != more)
			continue;
		if (!all++)
			buffer_printf(out,
				      "\n## %s than before\n\n| before | now | change | 95 %% "
				      "interval | function |\n|--:|--:|--:|:-:|:--|\n",
				      more ? "More" : "Less");
		if (shown == TABLE_ROWS)
			continue;
		put_row(out, answer, function);
		shown++;
	}
	if (all > shown)
		buffer_printf(out, "\n%zu further ones.\n", all - shown);
}

static void put_noise(struct buffer *out, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;

	buffer_printf(out,
		      "\n%zu of %zu functions changed by more than noise (%s values, %s; at most "
		      "%.0f %% of them by chance). ",
		      table->significant, table->tested, answer->by_total ? "total" : "self",
		      answer->norm, 100 * DIFF_FALSE_SHARE);
	if (!strcmp(answer->noise_from, "none"))
		buffer_append_text(out, "The ranges are too short to show how much functions vary "
					"by themselves: samples were taken for independent.\n");
	else
		buffer_printf(out,
			      "How much functions vary by themselves is seen from %" PRIu32
			      " and %" PRIu32 " parts of the ranges (%s).\n",
			      table->whole[DIFF_BASE].clusters, table->whole[DIFF_COMPARE].clusters,
			      answer->noise_from);
}

bool diff_markdown(const struct diff_answer *answer, struct buffer *out)
{
	char warning[DIFF_WARNING];

	buffer_printf(out,
		      "# %s, compared\n\n| | time (UTC) | value | samples | hosts | without "
		      "names | lost | selection |\n|:--|:--|--:|--:|--:|--:|--:|:--|\n",
		      answer->flame.type);
	put_side(out, "before", &answer->base);
	put_side(out, "now", &answer->flame);
	if (diff_warning(answer, warning))
		buffer_printf(out, "\n**Note:** %s.\n", warning);
	put_noise(out, answer);
	put_changes(out, answer, true);
	put_changes(out, answer, false);
	return !out->failed;
}
