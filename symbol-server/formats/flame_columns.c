/* SPDX-License-Identifier: Apache-2.0 */
/* format=columns: schema/README.md has the layout. */
#include <endian.h>
#include <string.h>

#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/flame_numbers.h"
#include "symbol-server/formats/utf8.h"

enum { CELLS_AT_ONCE = 1024, ALIGNMENT = 8, HEAD_MAX = 64 << 20 };

static const char magic[8] = {'F', 'F', 'C', 'O', 'L', 'S', '1', '\n'};

enum cell_type { CELL_F64, CELL_I32, CELL_U8 };

static const struct {
	enum flame_column column;
	enum cell_type type;
} columns[] = {
	/* the widest first: each begins at a multiple of its own width */
	{FLAME_SELF, CELL_F64},        {FLAME_TOTAL, CELL_F64},  {FLAME_SELF_ERROR, CELL_F64},
	{FLAME_TOTAL_ERROR, CELL_F64}, {FLAME_NAME, CELL_I32},   {FLAME_FILE, CELL_I32},
	{FLAME_LINE, CELL_I32},        {FLAME_MODULE, CELL_I32}, {FLAME_PARENT, CELL_I32},
	{FLAME_KIND, CELL_U8},
};

static void head_json(const struct flame_numbers *numbers, struct buffer *out)
{
	static const char *const types[] = {"f64", "i32", "u8"};
	const struct flame_answer *answer = numbers->answer;
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	flame_range_json(json, answer);
	json_key_uint(json, "nodes", answer->tree->count);
	json_key(json, "columns");
	json_open(json, '{');
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		if (flame_numbers_has(answer, columns[i].column))
			json_key_string(json, flame_column_names[columns[i].column],
					types[columns[i].type]);
	json_close(json, '}');
	json_key_uint(json, "names", numbers->name_count);
	json_key_uint(json, "files", numbers->files.count);
	flame_numbers_signatures_json(numbers, json);
	flame_numbers_languages_json(numbers, json);
	flame_numbers_modules_json(numbers, json);
	flame_kinds_json(json);
	json_key(json, "accounting");
	accounting_json(json, answer->accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	while (out->length % ALIGNMENT)
		buffer_append_char(out, ' ');
}

static void put_head(const struct flame_numbers *numbers, struct buffer *out)
{
	struct buffer head;
	uint32_t lengths[2];

	buffer_init(&head, HEAD_MAX);
	head_json(numbers, &head);
	lengths[0] = htole32((uint32_t)head.length);
	lengths[1] = 0;
	buffer_append(out, magic, sizeof(magic));
	buffer_append(out, lengths, sizeof(lengths));
	buffer_append(out, head.bytes, head.length);
	out->failed |= head.failed;
	buffer_release(&head);
}

static size_t put_cell(uint8_t *to, int64_t value, enum cell_type type)
{
	double number = (double)value;
	uint64_t bits;
	uint32_t word;

	switch (type) {
	case CELL_F64:
		memcpy(&bits, &number, sizeof(bits));
		bits = htole64(bits);
		memcpy(to, &bits, sizeof(bits));
		return sizeof(bits);
	case CELL_I32:
		word = htole32((uint32_t)value);
		memcpy(to, &word, sizeof(word));
		return sizeof(word);
	default:
		*to = (uint8_t)value;
		return 1;
	}
}

static void put_column(const struct flame_numbers *numbers, enum flame_column column,
		       enum cell_type type, struct buffer *out)
{
	uint8_t cells[CELLS_AT_ONCE * sizeof(uint64_t)];
	size_t count = numbers->answer->tree->count, used = 0;

	for (size_t i = 0; i < count && !out->failed; i++) {
		used += put_cell(cells + used, flame_numbers_cell(numbers, i, column), type);
		if (used > sizeof(cells) - sizeof(uint64_t) || i + 1 == count) {
			buffer_append(out, cells, used);
			used = 0;
		}
	}
}

/* As JSON's: what is no UTF-8, or is not to be shown, is U+FFFD. */
static void put_text(const char *text, struct buffer *out)
{
	const unsigned char *at = (const unsigned char *)text, *from = at;

	while (*at) {
		size_t step, length = utf8_shown(at, &step);

		if (length) {
			at += length;
			continue;
		}
		buffer_append(out, from, (size_t)(at - from));
		buffer_append_text(out, UTF8_REPLACEMENT);
		from = at += step;
	}
	buffer_append(out, from, (size_t)(at - from) + 1); /* with its NUL */
}

static void put_texts(const struct flame_numbers *numbers, struct buffer *out)
{
	for (uint32_t i = 0; i < numbers->name_count && !out->failed; i++)
		put_text(numbers->names[i]->name, out);
	for (uint32_t i = 0; i < numbers->files.count && !out->failed; i++)
		put_text(numbers->files.texts[i], out);
}

bool flame_columns(const struct flame_answer *answer, struct buffer *out)
{
	struct flame_numbers numbers;
	bool ok = flame_numbers_init(&numbers, answer);

	if (ok) {
		put_head(&numbers, out);
		for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
			if (flame_numbers_has(answer, columns[i].column))
				put_column(&numbers, columns[i].column, columns[i].type, out);
		put_texts(&numbers, out);
	}
	flame_numbers_release(&numbers);
	return ok && !out->failed;
}
