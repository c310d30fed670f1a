/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of any names in every format: one byte of shape, then names that end with NUL; five a
 * stack. What XML, HTML and Markdown give a meaning has to be gone outside of our own marks. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/pprof.h"
#include "tests/fuzz/fuzz.h"

enum { STACK = 5 };

typedef bool writer_fn(const struct flame_answer *answer, struct buffer *out);

static size_t count_of(const struct buffer *out, const char *text)
{
	const char *at = (const char *)out->bytes;
	size_t count = 0;

	while ((at = strstr(at, text))) {
		count++;
		at += strlen(text);
	}
	return count;
}

static void check_marks(writer_fn *writer, const struct buffer *out)
{
	if (writer == flame_html &&
	    (count_of(out, "<script") != 2 || count_of(out, "</script") != 2))
		abort();
	if (writer == flame_svg &&
	    (count_of(out, "<g ") != count_of(out, "</g>") || count_of(out, "<script") != 1 ||
	     count_of(out, "<title>") != count_of(out, "</title>")))
		abort();
}

static void write_all(const struct flame_answer *answer)
{
	static writer_fn *const writers[] = {flame_json, flame_folded, flame_speedscope,
					     flame_svg,  flame_html,   flame_csv,
					     top_csv,    top_json,     flame_markdown};

	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		struct buffer out;

		buffer_init(&out, 64 << 20);
		if (!writers[i](answer, &out))
			abort();
		buffer_append_char(&out, 0);
		if (strlen((char *)out.bytes) + 1 != out.length)
			abort();
		check_marks(writers[i], &out);
		buffer_release(&out);
	}
}

static void write_pprof(const struct flame_answer *answer, const struct flame_frame *frames,
			size_t count)
{
	static const char *const labels[] = {"process"};
	struct buffer out = {.limit = 64 << 20};
	struct pprof *pprof = pprof_new(answer, labels, 1, &out);
	uint32_t ids[STACK];

	for (size_t i = 0; i < count; i += STACK) {
		size_t depth = count - i < STACK ? count - i : STACK;

		for (size_t j = 0; j < depth; j++) {
			const struct flame_frame *lines[] = {&frames[i + j], &frames[i]};
			struct pprof_location location = {.address = frames[i + j].line,
							  .module = frames[i + j].module,
							  .frames = lines,
							  .count = 1 + (j & 1)};

			ids[j] = pprof_add_location(pprof, &location);
			if (!ids[j])
				abort();
		}
		if (!pprof_add_sample(pprof, ids, depth, (const char *const[]){frames[i].name},
				      i + 1, 1))
			abort();
	}
	if (!pprof_finish(pprof))
		abort();
	buffer_release(&out);
	pprof_free(pprof);
}

static void fuzz_one(const uint8_t *data, size_t size)
{
	const struct flame_module modules[] = {{"m", "ab"}, {size > 1 ? "" : "x", ""}};
	struct flame_frame frames[64];
	struct accounting accounting = {
		.value = 5, .samples = 4, .taken = 3, .is_sampled = size > 2 && data[2] & 1};
	struct flame_answer answer = {.type = "on-cpu",
				      .unit = "bytes",
				      .modules = modules,
				      .module_count = 2,
				      .top_limit = 50,
				      .with_errors = true,
				      .accounting = &accounting};
	struct flame_tree *tree = flame_tree_new(1000);
	struct top_table *top = top_table_new(1000);
	char *text = calloc(size + 1, 1);
	size_t count = 0;

	if (size)
		memcpy(text, data + 1, size - 1);
	for (size_t at = 0; at + 1 < size && count < 64; at += strlen(text + at) + 1, count++)
		frames[count] = (struct flame_frame){
			.name = text + at,
			.file = data[0] & 1 ? text : "",
			.line = (uint32_t)at,
			.module = (uint32_t)(at % 3),
			.kind = (enum frame_kind)((data[0] + count) % FRAME_KIND_COUNT),
			.language = (uint8_t)((data[0] ^ count) % FRAME_LANGUAGE_COUNT)};
	for (size_t i = 0; i < count; i += STACK) {
		size_t depth = count - i < STACK ? count - i : STACK;

		flame_tree_add(tree, frames + i, depth, 1ull << (i % 60), 1);
		top_table_add(top, frames + i, depth, 1ull << (i % 60), 1);
	}
	flame_tree_cut(tree, size ? 1 + data[0] : 1);
	answer.tree = tree;
	answer.top = top;
	answer.match = text;
	accounting_add_incomplete(&accounting, text, 2);
	accounting_add_place(&accounting, text, text, 1);
	accounting_add_lost(&accounting, text, 2);
	write_all(&answer);
	write_pprof(&answer, frames, count);
	flame_tree_free(tree);
	top_table_free(top);
	free(text);
}
