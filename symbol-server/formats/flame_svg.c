/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/human.h"
#include "symbol-server/formats/report_files.h"
#include "symbol-server/formats/utf8.h"

/* Pixels. The script (web/report/svg.ts) reads them from the picture. */
enum {
	WIDTH = 1200,
	PAD = 10,
	ROW = 18,
	HEAD = 76,      /* title, range, what is under the pointer */
	FOOT_LINE = 16, /* of the accounting */
	TEXT_LEFT = 4,
	TEXT_MIN = 26,     /* narrower frames carry no text */
	NAME_BYTES = 1000, /* of a name; the rest becomes "…" */
	MATCH_BYTES = 120,
	SHADES = 4,
	CHANGES = 9, /* colours of comparisons, the middle one for none */
	WIDE = 4,    /* from here on frames have a line around them */
	REASONS = 3,
	XML_SHARE = HUMAN_TEXT + 4,
};

#define CHARACTER 6.63 /* width of a character of 11 px, DejaVu Sans Mono and its like */
#define NARROWEST 0.1

struct ink { /* as web/palette.ts; lightness in the light and in the dark theme, % */
	const char *kind;
	double hue, saturation, light, dark;
};

static const struct ink inks[FRAME_KIND_COUNT] = {
	[FRAME_root] = {"root", 220, 10, 86, 30},
	[FRAME_group] = {"group", 220, 14, 80, 34},
	[FRAME_native] = {"native", 33, 88, 72, 31},
	[FRAME_inline] = {"inline", 48, 85, 83, 19},
	[FRAME_kernel] = {"kernel", 208, 70, 77, 37},
	[FRAME_interpreter] = {"interpreter", 164, 48, 65, 32},
	[FRAME_jit] = {"jit", 142, 38, 88, 19},
	[FRAME_gpu] = {"gpu", 318, 42, 70, 29},
	[FRAME_unresolved] = {"unresolved", 30, 6, 82, 30},
	[FRAME_incomplete] = {"incomplete", 250, 8, 74, 38},
	[FRAME_cut] = {"cut", 220, 4, 91, 22},
	[FRAME_idle] = {"idle", 220, 2, 84, 26},
	[FRAME_runtime] = {"runtime", 90, 30, 67, 34},
};

/* Characters that XML 1.0 has no place for, and bytes that are no UTF-8, become U+FFFD. */
static bool is_xml(uint32_t point)
{
	return (point >= 0x20 && point != 0x7f && point < 0xfffe) || point > 0xffff ||
	       point == '\t' || point == '\n';
}

/* Text and attribute values: at most so many bytes and characters of it, then "…". */
static void put_text(struct buffer *out, const char *text, size_t bytes, size_t characters)
{
	static const char special[] = "&<>\"'";
	static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	const unsigned char *at = (const unsigned char *)text;

	while (*at && bytes && characters) {
		size_t step, length = utf8_shown(at, &step);
		const char *found = length == 1 ? strchr(special, *at) : NULL;

		if (found)
			buffer_append_text(out, escaped[found - special]);
		else if (length && is_xml(utf8_point(at, length)))
			buffer_append(out, at, length);
		else
			buffer_append_text(out, UTF8_REPLACEMENT);
		at += step;
		bytes -= step < bytes ? step : bytes;
		characters--;
	}
	if (*at)
		buffer_append_text(out, "…");
}

/* "< 0.01 %" is no XML. */
static void xml_escape(const char *share, char text[XML_SHARE])
{
	const char *sign = "";

	if (*share == '<' || *share == '>')
		sign = *share == '<' ? "&lt;" : "&gt;";
	snprintf(text, XML_SHARE, "%s%s", sign, share + (*sign != 0));
}

static void xml_share(uint64_t part, uint64_t whole, char text[XML_SHARE])
{
	char share[HUMAN_TEXT];

	human_share(part, whole, share);
	xml_escape(share, text);
}

static size_t characters_of(const char *text)
{
	size_t count = 0;

	for (const unsigned char *at = (const unsigned char *)text; *at; count++) {
		size_t length = utf8_length(at);

		at += length ? length : 1;
	}
	return count;
}

static unsigned channel(double hue, double saturation, double lightness, double offset)
{
	double k = fmod(offset + hue / 30, 12);
	double a = saturation * fmin(lightness, 1 - lightness);

	return (unsigned)lround(255 * (lightness - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1))));
}

/* HSL as CSS Color 4, section 7.1, has it; not every viewer of SVG knows hsl(). */
static void put_colours(struct buffer *out, bool is_dark)
{
	for (int kind = 0; kind < FRAME_KIND_COUNT; kind++) {
		const struct ink *ink = &inks[kind];

		for (int shade = 0; shade < SHADES; shade++) {
			double step = shade / (SHADES - 1.0) - 0.5;
			double hue = ink->hue + (ink->saturation > 30 ? step * 12 : 0);
			double saturation = ink->saturation / 100 * (is_dark ? 0.62 : 1);
			double light = ((is_dark ? ink->dark : ink->light) + step * 7) / 100;

			buffer_printf(out, ".%s.s%d{fill:#%02x%02x%02x}", ink->kind, shade,
				      channel(hue, saturation, light, 0),
				      channel(hue, saturation, light, 8),
				      channel(hue, saturation, light, 4));
		}
	}
}

/* Of comparisons: blue for less, red for more, the deeper the more. */
static void put_change_colours(struct buffer *out, bool is_dark)
{
	for (int i = 0; i < CHANGES; i++) {
		double change = (i - CHANGES / 2) / (CHANGES / 2.0);
		double light = is_dark ? 0.27 + 0.13 * fabs(change) : 0.92 - 0.28 * fabs(change);
		double saturation = is_dark ? 0.55 * fabs(change) : 0.9 * fabs(change);
		double hue = change < 0 ? 214 : 12;

		buffer_printf(
			out, ".d%d{fill:#%02x%02x%02x}", i, channel(hue, saturation, light, 0),
			channel(hue, saturation, light, 8), channel(hue, saturation, light, 4));
	}
}

static void put_style(struct buffer *out)
{
	buffer_append_text(
		out,
		"<style>text{font:11px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;"
		"fill:#17191d}.title{font-size:15px;font-weight:bold}.quiet{fill:#5b616c}"
		"#ground{fill:#fff}#frames g{cursor:pointer}#frames .w rect{stroke:#fff;"
		"stroke-width:.5}#frames text{pointer-events:none}#frames .hit rect{fill:#e86fc4}"
		"#frames .faded{opacity:.55}#frames g:hover rect{stroke:#17191d;stroke-width:1}"
		"input{font:12px monospace;width:100%;box-sizing:border-box}");
	put_colours(out, false);
	put_change_colours(out, false);
	buffer_append_text(out, "@media(prefers-color-scheme:dark){text{fill:#f0f1f3}"
				".quiet{fill:#9aa1ac}#ground{fill:#16181c}#frames .w rect{"
				"stroke:#16181c}#frames .hit rect{fill:#a12e7e}"
				"#frames g:hover rect{stroke:#f0f1f3}");
	put_colours(out, true);
	put_change_colours(out, true);
	buffer_append_text(out, "}</style>\n");
}

struct picture {
	const struct flame_answer *answer;
	const struct flame_tree *tree;
	struct buffer *out;
	double scale;     /* pixels per weight */
	double *starts;   /* by node: weight to the left of it */
	uint32_t *depths; /* by node, 0: not drawn; else level + 1 */
	uint32_t levels;
	uint64_t narrow;      /* frames not drawn, */
	double narrow_weight; /* and what the outermost of them hold */
};

/* The base side's value of a comparison, times what makes it comparable. */
static double base_of(const struct flame_answer *answer, uint64_t value)
{
	return (double)value * answer->base_scale;
}

/* What a frame's width stands for: its value, of comparisons the mean of both sides. */
static double weight_of(const struct flame_answer *answer, const struct flame_node *node)
{
	if (!(answer->base_scale > 0))
		return (double)node->total;
	return ((double)node->total + base_of(answer, node->total_samples)) / 2;
}

/* Places the nodes; parents come before their children. */
static void place(struct picture *picture)
{
	const struct flame_node *nodes = picture->tree->nodes;

	picture->depths[0] = 1;
	for (uint32_t i = 0; i < picture->tree->count; i++) {
		double start = picture->starts[i];

		if (picture->depths[i] > picture->levels)
			picture->levels = picture->depths[i];
		for (uint32_t at = nodes[i].first_child; at; at = nodes[at].next_sibling) {
			double weight = weight_of(picture->answer, &nodes[at]);

			picture->starts[at] = start;
			start += weight;
			if (picture->depths[i] && weight * picture->scale >= NARROWEST) {
				picture->depths[at] = picture->depths[i] + 1;
				continue;
			}
			picture->narrow++;
			picture->narrow_weight += picture->depths[i] ? weight : 0;
		}
	}
}

/* Five decimals, without the zeros at the end: a zoom enlarges them. */
static void put_pixels(struct buffer *out, const char *attribute, double pixels)
{
	char text[40];
	int length = snprintf(text, sizeof(text), "%.5f", pixels);

	while (text[length - 1] == '0')
		text[--length] = 0;
	if (text[length - 1] == '.')
		text[--length] = 0;
	buffer_printf(out, " %s=\"%s\"", attribute, text);
}

/* The label's first characters, or all of them. */
static void put_label(struct picture *picture, const struct flame_frame *frame, double width)
{
	struct human_marks marks = human_marks(frame);
	size_t room = (size_t)((width - 2 * TEXT_LEFT) / CHARACTER);
	size_t length = characters_of(frame->name);
	size_t before = strlen(marks.before), after = strlen(marks.after);

	if (before + length + after <= room) {
		buffer_append_text(picture->out, marks.before);
		put_text(picture->out, frame->name, SIZE_MAX, SIZE_MAX);
		buffer_append_text(picture->out, marks.after);
	} else if (room > before + 1) {
		buffer_append_text(picture->out, marks.before);
		put_text(picture->out, frame->name, SIZE_MAX, room - before - 1);
		if (length < room - before)
			buffer_append_text(picture->out, "…");
	}
}

/* Both sides of a comparison. */
static void put_sides(struct picture *picture, const struct flame_node *node, const char *after)
{
	double base = base_of(picture->answer, node->total_samples);
	char value[HUMAN_TEXT], before[HUMAN_TEXT];

	human_value(node->total, picture->answer->unit, value);
	human_value((uint64_t)llround(base), picture->answer->unit, before);
	buffer_printf(picture->out, "%s\n%s, base %s", after, value, before);
	if (base > 0)
		buffer_printf(picture->out, " (%+.1f %%)",
			      ((double)node->total - base) / base * 100);
}

static uint64_t whole_error(const struct flame_tree *tree)
{
	return sampling_error(tree->nodes[0].total, tree->nodes[0].total_squares);
}

static void sampled_share(const struct picture *picture, uint64_t part, double squares,
			  char text[XML_SHARE])
{
	const struct human_whole whole = {picture->tree->nodes[0].total, whole_error(picture->tree),
					  picture->answer->accounting->is_sampled};
	char share[HUMAN_TEXT];

	human_sampled_share(part, squares, &whole, share);
	xml_escape(share, text);
}

/* What a viewer shows under the pointer; the first line is the whole label. */
static void put_title(struct picture *picture, const struct flame_node *node)
{
	const struct flame_answer *answer = picture->answer;
	const struct flame_frame *frame = &node->frame;
	struct human_marks marks = human_marks(frame);
	char total[HUMAN_TEXT], share[XML_SHARE], self[XML_SHARE];

	human_sampled_value(node->total, sampling_error(node->total, node->total_squares),
			    answer->unit, answer->accounting->is_sampled, total);
	sampled_share(picture, node->total, node->total_squares, share);
	sampled_share(picture, node->self, node->self_squares, self);
	buffer_printf(picture->out, "<title>%s", marks.before);
	put_text(picture->out, frame_whole_name(frame), NAME_BYTES, SIZE_MAX);
	if (answer->base_scale > 0)
		put_sides(picture, node, marks.after);
	else
		buffer_printf(picture->out, "%s\n%s, %s, %" PRIu64 " samples; own %s", marks.after,
			      total, share, node->total_samples, self);
	if (frame->file && *frame->file) {
		buffer_append_char(picture->out, '\n');
		put_text(picture->out, frame->file, NAME_BYTES, SIZE_MAX);
		if (frame->line)
			buffer_printf(picture->out, ":%" PRIu32, frame->line);
	}
	if (frame->module < answer->module_count) {
		buffer_append_char(picture->out, '\n');
		put_text(picture->out, answer->modules[frame->module].name, NAME_BYTES, SIZE_MAX);
		buffer_append_char(picture->out, ' ');
		put_text(picture->out, answer->modules[frame->module].build_id, NAME_BYTES,
			 SIZE_MAX);
	}
	buffer_append_text(picture->out, "</title>");
}

/* Less, the same or more than the base side has of it. */
static int change_class(const struct picture *picture, const struct flame_node *node)
{
	double base = base_of(picture->answer, node->total_samples), value = (double)node->total;

	return CHANGES / 2 +
	       (int)lround(value + base > 0 ? (value - base) / (value + base) * (CHANGES / 2) : 0);
}

static void put_frame(struct picture *picture, uint32_t at)
{
	const struct flame_node *node = &picture->tree->nodes[at];
	double x = PAD + picture->starts[at] * picture->scale;
	double width = weight_of(picture->answer, node) * picture->scale;
	uint32_t y = HEAD + (picture->depths[at] - 1) * ROW;
	uint64_t hash = node->frame.name_hash ? node->frame.name_hash
					      : frame_name_hash(node->frame.name);

	if (picture->answer->base_scale > 0)
		buffer_printf(picture->out, "<g class=\"d%d", change_class(picture, node));
	else
		buffer_printf(picture->out, "<g class=\"%s s%d", inks[node->frame.kind].kind,
			      (int)(hash % SHADES));
	buffer_append_text(picture->out, width >= WIDE ? " w\">" : "\">");
	put_title(picture, node);
	buffer_append_text(picture->out, "<rect");
	put_pixels(picture->out, "x", x);
	put_pixels(picture->out, "width", width);
	buffer_printf(picture->out, " y=\"%" PRIu32 "\" height=\"%d\"/>", y, ROW - 1);
	if (width >= TEXT_MIN) {
		buffer_append_text(picture->out, "<text");
		put_pixels(picture->out, "x", x + TEXT_LEFT);
		buffer_printf(picture->out, " y=\"%" PRIu32 "\">", y + 13);
		put_label(picture, &node->frame, width);
		buffer_append_text(picture->out, "</text>");
	}
	buffer_append_text(picture->out, "</g>\n");
}

static void put_line(struct buffer *out, uint32_t y, const char *class)
{
	buffer_printf(out, "<text x=\"%d\" y=\"%" PRIu32 "\" class=\"%s\">", PAD, y, class);
}

static void put_head(struct picture *picture, uint32_t height)
{
	const struct flame_answer *answer = picture->answer;
	struct buffer *out = picture->out;
	char from[HUMAN_TEXT], until[HUMAN_TEXT], value[HUMAN_TEXT], base[HUMAN_TEXT];

	human_time(answer->from_ms, from);
	human_time(answer->until_ms, until);
	human_sampled_value(picture->tree->nodes[0].total, whole_error(picture->tree), answer->unit,
			    answer->accounting->is_sampled && !(answer->base_scale > 0), value);
	buffer_printf(out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
		      "xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%" PRIu32
		      "\" viewBox=\"0 0 %d %" PRIu32 "\">\n",
		      WIDTH, height, WIDTH, height);
	put_style(out);
	buffer_printf(out, "<rect id=\"ground\" width=\"%d\" height=\"%" PRIu32 "\"/>\n", WIDTH,
		      height);
	put_line(out, 22, "title");
	if (answer->base_scale > 0) {
		human_value(
			(uint64_t)llround(base_of(answer, picture->tree->nodes[0].total_samples)),
			answer->unit, base);
		buffer_printf(out, "Comparison: %s, %s; base %s: red is more, blue less</text>\n",
			      answer->type, value, base);
	} else {
		buffer_printf(out, "Flame graph: %s, %s</text>\n", answer->type, value);
	}
	put_line(out, 42, "quiet");
	buffer_printf(out, "%s to %s ", from, until);
	put_text(out, answer->match ? answer->match : "", SIZE_MAX, MATCH_BYTES);
	buffer_append_text(out, "</text>\n");
	buffer_printf(out, "<text id=\"details\" x=\"%d\" y=\"62\"> </text>\n", PAD);
}

static void put_counts(struct picture *picture, uint32_t y)
{
	const struct accounting *accounting = picture->answer->accounting;
	struct buffer *out = picture->out;
	char lost[XML_SHARE], incomplete[XML_SHARE], unnamed[XML_SHARE];

	xml_share(accounting->lost, accounting->taken, lost);
	xml_share(accounting->unwind_incomplete, accounting->samples, incomplete);
	xml_share(accounting->nameless_value, accounting->value, unnamed);
	put_line(out, y, "quiet");
	buffer_printf(out,
		      "%" PRIu64 " samples of %" PRIu64 " host%s; taken %" PRIu64 ", lost %" PRIu64
		      " (%s); incomplete stacks %s; in functions without names %s</text>\n",
		      accounting->samples, accounting->hosts, accounting->hosts == 1 ? "" : "s",
		      accounting->taken, accounting->lost, lost, incomplete, unnamed);
}

static void put_reasons(struct picture *picture, uint32_t y)
{
	const struct accounting *accounting = picture->answer->accounting;
	struct buffer *out = picture->out;
	unsigned count = 0;

	put_line(out, y, "quiet");
	for (unsigned i = 0; i < accounting->lost_count; i++) {
		if (!accounting->lost_by[i].count)
			continue;
		buffer_printf(out, "%s%" PRIu64 " ",
			      count++ ? ", " : "lost by: ", accounting->lost_by[i].count);
		put_text(out, accounting->lost_by[i].reason, SIZE_MAX, 60);
	}
	if (accounting->unexplained)
		buffer_printf(out, "%s%" PRId64 " unexplained",
			      count++ ? ", " : "lost by: ", accounting->unexplained);
	for (unsigned i = 0; i < accounting->incomplete_count && i < REASONS; i++) {
		buffer_printf(out, "%s%" PRIu64 " ",
			      i       ? ", "
			      : count ? "; incomplete: "
				      : "incomplete: ",
			      accounting->incomplete_by[i].samples);
		put_text(out, accounting->incomplete_by[i].reason, SIZE_MAX, 60);
	}
	buffer_append_text(out, "</text>\n");
}

static void put_missing(struct picture *picture, uint32_t y)
{
	struct buffer *out = picture->out;
	uint64_t whole = (uint64_t)llround(weight_of(picture->answer, picture->tree->nodes));
	const struct accounting *accounting = picture->answer->accounting;
	char cut[XML_SHARE], narrow[XML_SHARE], memory[XML_SHARE];

	xml_share(accounting->cut - accounting->cut_by_memory, picture->tree->nodes[0].total, cut);
	xml_share((uint64_t)llround(picture->narrow_weight), whole, narrow);
	put_line(out, y, "quiet");
	buffer_printf(out,
		      "not in the picture: %s cut by max_nodes, %" PRIu64
		      " frames narrower than 0.1 pixels with %s",
		      cut, picture->narrow, narrow);
	if (accounting->cut_by_memory) {
		xml_share(accounting->cut_by_memory, accounting->value, memory);
		buffer_printf(out, ", the lightest stacks with %s, for want of memory", memory);
	}
	buffer_append_text(out, "</text>\n");
}

static void put_script(struct buffer *out)
{
	buffer_append_text(out, "<script>");
	put_text(out, report_svg_script, SIZE_MAX, SIZE_MAX); /* decoded again by its reader */
	buffer_append_text(out, "</script>\n</svg>\n");
}

static void draw(struct picture *picture)
{
	uint32_t foot = HEAD + picture->levels * ROW + FOOT_LINE;

	put_head(picture, foot + 3 * FOOT_LINE);
	buffer_append_text(picture->out, "<g id=\"frames\">\n");
	for (uint32_t i = 0; i < picture->tree->count && !picture->out->failed; i++)
		if (picture->depths[i])
			put_frame(picture, i);
	buffer_append_text(picture->out, "</g>\n");
	put_counts(picture, foot);
	put_reasons(picture, foot + FOOT_LINE);
	put_missing(picture, foot + 2 * FOOT_LINE);
	put_script(picture->out);
}

bool flame_svg(const struct flame_answer *answer, struct buffer *out)
{
	const struct flame_tree *tree = answer->tree;
	double whole = weight_of(answer, tree->nodes);
	struct picture picture = {
		.answer = answer,
		.tree = tree,
		.out = out,
		.scale = whole > 0 ? (WIDTH - 2.0 * PAD) / whole : 0,
		.starts = calloc(tree->count, sizeof(*picture.starts)),
		.depths = calloc(tree->count, sizeof(*picture.depths)),
	};
	bool ok = picture.starts && picture.depths;

	if (ok) {
		place(&picture);
		draw(&picture);
	}
	free(picture.starts);
	free(picture.depths);
	return ok && !out->failed;
}
