/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/quoted.h"
#include "symbol-server/formats/utf8.h"

/* Where a spreadsheet would take a cell for a formula, an apostrophe goes before it, as OWASP
 * advises ("CSV Injection": = + - @ tab and carriage return, and the first four in full width). */
static bool is_formula(const char *text)
{
	static const char *const wide[] = {"＝", "＋", "－", "＠"};

	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
		if (!strncmp(text, wide[i], strlen(wide[i])))
			return true;
	return *text && strchr("=+-@\t\r\n", *text);
}

static bool is_control(unsigned char c)
{
	return (c < 0x20 && !strchr("\t\r\n", c)) || c == 0x7f;
}

/* Quotes doubled; what is no UTF-8 or not to be shown replaced. */
static void put_utf8(struct buffer *out, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		size_t step, length = utf8_shown(at, &step);

		if (*at == '"')
			buffer_append_char(out, '"');
		if (length && !is_control(*at))
			buffer_append(out, at, length);
		else
			buffer_append_text(out, UTF8_REPLACEMENT);
		at += step;
	}
}

void csv_put_text(struct buffer *out, const char *text)
{
	bool is_quoted = is_formula(text) || strpbrk(text, ",;\"\t\r\n");

	if (!is_quoted) {
		put_utf8(out, text);
		return;
	}
	buffer_append_char(out, '"');
	if (is_formula(text))
		buffer_append_char(out, '\'');
	put_utf8(out, text);
	buffer_append_char(out, '"');
}

/* name,file,line,module,build_id */
static void put_frame(struct buffer *out, const struct flame_answer *answer,
		      const struct flame_frame *frame)
{
	const struct flame_module *module = flame_answer_module(answer, frame);

	csv_put_text(out, frame->name);
	buffer_append_char(out, ',');
	csv_put_text(out, frame->file ? frame->file : "");
	buffer_printf(out, ",%" PRIu32 ",", frame->line);
	csv_put_text(out, module->name);
	buffer_append_char(out, ',');
	csv_put_text(out, module->build_id);
}

#define FRAME_COLUMNS "name,file,line,module,build_id"
#define VALUE_COLUMNS \
	"self,total,self_samples,total_samples,self_error,total_error,signature,language"

void csv_put_error(struct buffer *out, const struct accounting *accounting, uint64_t value,
		   double squares)
{
	buffer_append_char(out, ',');
	if (accounting->is_sampled)
		buffer_printf(out, "%" PRIu64, sampling_error(value, squares));
}

static void put_values(struct buffer *out, const uint64_t values[4])
{
	for (unsigned i = 0; i < 4; i++)
		buffer_printf(out, ",%" PRIu64, values[i]);
}

static void put_texts(struct buffer *out, const struct flame_frame *frame)
{
	buffer_append_char(out, ',');
	csv_put_text(out, frame->signature ? frame->signature : "");
	buffer_printf(out, ",%s\r\n", frame_language_names[frame->language]);
}

bool flame_csv(const struct flame_answer *answer, struct buffer *out)
{
#define KIND_TEXT(name_) #name_,
	static const char *const kinds[] = {FRAME_KINDS(KIND_TEXT)};
	const struct flame_tree *tree = answer->tree;

	buffer_append_text(out, "node,parent,kind," FRAME_COLUMNS "," VALUE_COLUMNS "\r\n");
	for (size_t i = 0; i < tree->count && !out->failed; i++) {
		const struct flame_node *node = &tree->nodes[i];

		buffer_printf(out, "%zu,", i);
		if (i)
			buffer_printf(out, "%" PRIu32, node->parent);
		buffer_printf(out, ",%s,", kinds[node->frame.kind]);
		put_frame(out, answer, &node->frame);
		put_values(out, (const uint64_t[]){node->self, node->total, node->self_samples,
						   node->total_samples});
		csv_put_error(out, answer->accounting, node->self, node->self_squares);
		csv_put_error(out, answer->accounting, node->total, node->total_squares);
		put_texts(out, &node->frame);
	}
	return !out->failed;
}

bool top_csv(const struct flame_answer *answer, struct buffer *out)
{
	buffer_append_text(out, FRAME_COLUMNS "," VALUE_COLUMNS "\r\n");
	for (size_t i = 0; i < answer->top->count && i < answer->top_limit && !out->failed; i++) {
		const struct top_function *function = &answer->top->functions[i];

		put_frame(out, answer, &function->frame);
		put_values(out,
			   (const uint64_t[]){function->self, function->total,
					      function->self_samples, function->total_samples});
		csv_put_error(out, answer->accounting, function->self, function->self_squares);
		csv_put_error(out, answer->accounting, function->total, function->total_squares);
		put_texts(out, &function->frame);
	}
	return !out->failed;
}
