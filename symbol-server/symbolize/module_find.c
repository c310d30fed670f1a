/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/module_find.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/symbolize/symbolizer_state.h"

enum {
	GUID_BYTES = 16,
	GUID_DIGITS = 2 * GUID_BYTES,
	MODULES_AT_A_TIME = 4096, /* looked through before others get the lock */
};

/* The first three fields of a GUID are numbers of 4, 2 and 2 bytes, and swap theirs. */
static void swap_guid(const uint8_t in[GUID_BYTES], uint8_t out[GUID_BYTES])
{
	static const uint8_t order[GUID_BYTES] = {3, 2, 1,  0,  5,  4,  7,  6,
						  8, 9, 10, 11, 12, 13, 14, 15};

	for (int i = 0; i < GUID_BYTES; i++)
		out[i] = in[order[i]];
}

bool module_question_parse(const char *text, struct module_question *out)
{
	size_t length = strlen(text);
	struct build_id guid;

	*out = (struct module_question){0};
	if (length == GUID_DIGITS + 1 && text[GUID_DIGITS] == '0') {
		out->is_breakpad = build_id_parse(&guid, text, GUID_DIGITS);
		out->id.length = GUID_BYTES;
		if (out->is_breakpad)
			swap_guid(guid.bytes, out->id.bytes);
		return out->is_breakpad;
	}
	return build_id_parse(&out->id, text, length);
}

static uint64_t guid_hash(const uint8_t bytes[GUID_BYTES])
{
	return hash_bytes(bytes, GUID_BYTES, 0);
}

/* A Breakpad id stands in the table twice: programs of big-endian machines have it unswapped. */
struct guid_table {
	struct hash_table by_bytes; /* 2 × question, and one more for the other order */
	uint8_t (*bytes)[GUID_BYTES];
	enum symbol_quality *quality; /* of what was found, by question */
};

static bool guid_table_init(struct guid_table *table, const struct module_question *questions,
			    size_t count)
{
	hash_table_init(&table->by_bytes, (uint32_t)(2 * count));
	table->bytes = calloc(2 * count, sizeof(*table->bytes));
	table->quality = calloc(count, sizeof(*table->quality));
	if (!table->bytes || !table->quality)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!questions[i].is_breakpad)
			continue;
		memcpy(table->bytes[2 * i], questions[i].id.bytes, GUID_BYTES);
		swap_guid(questions[i].id.bytes, table->bytes[2 * i + 1]);
		for (size_t n = 2 * i; n < 2 * i + 2; n++)
			if (!hash_table_add(&table->by_bytes, guid_hash(table->bytes[n]),
					    (uint32_t)n))
				return false;
	}
	return true;
}

static void guid_table_release(struct guid_table *table)
{
	hash_table_release(&table->by_bytes);
	free(table->bytes);
	free(table->quality);
}

/* Does the module answer any of the questions? */
static void match_module(struct guid_table *table, const struct module *module,
			 struct module_question *questions)
{
	uint8_t bytes[GUID_BYTES] = {0};
	uint64_t hash;

	memcpy(bytes, module->id.bytes,
	       module->id.length < GUID_BYTES ? module->id.length : GUID_BYTES);
	hash = guid_hash(bytes);
	HASH_TABLE_EACH(i, &table->by_bytes, hash) {
		struct module_question *question = &questions[i / 2];

		if (memcmp(table->bytes[i], bytes, GUID_BYTES) != 0 ||
		    (question->is_known && table->quality[i / 2] >= module->quality))
			continue;
		question->id = module->id;
		question->is_known = true;
		table->quality[i / 2] = module->quality;
	}
}

static void find_breakpad(struct symbolizer *symbolizer, struct module_question *questions,
			  size_t count)
{
	struct guid_table table = {0};
	bool is_more = guid_table_init(&table, questions, count);

	for (uint32_t from = 0; is_more; from += MODULES_AT_A_TIME) {
		pthread_mutex_lock(&symbolizer->lock); /* modules are added, never taken away */
		for (uint32_t i = from;
		     i < from + MODULES_AT_A_TIME && i < symbolizer->modules.count; i++)
			match_module(&table, &symbolizer->modules.modules[i], questions);
		is_more = from + MODULES_AT_A_TIME < symbolizer->modules.count;
		pthread_mutex_unlock(&symbolizer->lock);
	}
	guid_table_release(&table);
}

/* What nobody has reported may be in a directory: from now on it is asked for by its whole id. */
static void find_in_directories(struct symbol_directories *directories,
				struct module_question *question)
{
	uint8_t swapped[GUID_BYTES];

	swap_guid(question->id.bytes, swapped);
	if (symbol_directories_find_guid(directories, question->id.bytes, &question->id) ||
	    symbol_directories_find_guid(directories, swapped, &question->id))
		question->is_breakpad = false;
}

void symbolizer_find_modules(struct symbolizer *symbolizer, struct module_question *questions,
			     size_t count)
{
	bool has_breakpad = false;

	pthread_mutex_lock(&symbolizer->lock);
	for (size_t i = 0; i < count; i++) {
		has_breakpad |= questions[i].is_breakpad;
		if (!questions[i].is_breakpad)
			questions[i].is_known = module_list_find(&symbolizer->modules,
								 &questions[i].id) != NULL;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	if (has_breakpad)
		find_breakpad(symbolizer, questions, count);
	for (size_t i = 0; i < count; i++)
		if (questions[i].is_breakpad && !questions[i].is_known)
			find_in_directories(symbolizer->directories, &questions[i]);
}
