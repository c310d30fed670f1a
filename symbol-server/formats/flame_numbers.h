/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that columns of nodes have: of names, files and modules that some node has, each
 * once, in order of appearance. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_FLAME_NUMBERS_H
#define SYMBOL_SERVER_FORMATS_FLAME_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/formats/text_list.h"

struct flame_numbers {
	const struct flame_answer *answer;
	const struct flame_frame **names; /* the first frame with each */
	uint32_t name_count;
	struct text_list files;
	uint32_t module_count;
	/* private below */
	uint32_t *name_of, *file_of; /* by node; UINT32_MAX none */
	struct hash_table name_table;
	uint32_t *module_of; /* by the tree's number → number in the answer */
	uint32_t *modules;   /* back */
};

/* Columns of the answer, in their order. */
enum flame_column {
	FLAME_NAME,
	FLAME_FILE,
	FLAME_LINE,
	FLAME_MODULE,
	FLAME_PARENT,
	FLAME_SELF,
	FLAME_TOTAL,
	FLAME_KIND,
	FLAME_BASE_SELF, /* from here on of comparisons */
	FLAME_BASE_TOTAL,
	FLAME_SELF_ERROR, /* ±, where they are asked for */
	FLAME_TOTAL_ERROR,
	FLAME_COLUMNS
};

extern const char *const flame_column_names[FLAME_COLUMNS];

/* false: no memory. Released in either case by the caller. */
bool flame_numbers_init(struct flame_numbers *numbers, const struct flame_answer *answer);
void flame_numbers_release(struct flame_numbers *numbers);

/* Whether the answer has that column. */
bool flame_numbers_has(const struct flame_answer *answer, enum flame_column column);
/* −1: none, and of the root's parent. */
int64_t flame_numbers_cell(const struct flame_numbers *numbers, size_t node,
			   enum flame_column column);
/* The key "signatures": of those names that have one, by the name's number. */
void flame_numbers_signatures_json(const struct flame_numbers *numbers, struct json *json);
/* The key "languages", likewise; none where no frame has one. */
void flame_numbers_languages_json(const struct flame_numbers *numbers, struct json *json);
/* The keys "modules" and "kinds" with their lists. */
void flame_numbers_modules_json(const struct flame_numbers *numbers, struct json *json);
void flame_kinds_json(struct json *json);

#endif
