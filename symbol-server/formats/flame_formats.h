/* SPDX-License-Identifier: Apache-2.0 */
/* Tree → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_FLAME_FORMATS_H
#define SYMBOL_SERVER_FORMATS_FLAME_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/flamegraph/accounting.h"
#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/flamegraph/top_table.h"
#include "symbol-server/formats/json_writer.h"

struct flame_found { /* by a search */
	uint64_t value, samples;
	double squares; /* sampling_error.h */
};

struct flame_answer {
	const char *type, *unit;
	const char *match;         /* the selector as asked; NULL or "": all */
	int64_t from_ms, until_ms; /* effective */
	const struct flame_tree *tree;
	/* Not 0: the tree is diff_tree_cut()'s, whose samples are the base side's values; these
	 * times it compare with the others. */
	double base_scale;
	const struct top_table *top;        /* sorted; for the formats that show functions */
	size_t top_limit;                   /* how many of them */
	const struct flame_found *found;    /* of top_json(); NULL: nothing was searched */
	const struct flame_module *modules; /* by flame_frame.module */
	uint32_t module_count;
	const uint64_t *unsymbolized; /* samples, by module; NULL not known */
	const struct accounting *accounting;
	bool with_errors; /* JSON and columns: of nodes, where anything is sampled */
	bool with_stacks; /* JSON: nodes and functions have the ids of stacks */
	size_t memory;    /* what a writer may take besides out, bytes; 0: as much as it likes */
};

/* Columns of equal length, parent before child, node 0 the root (its parent is −1).
 * Only names, files and modules that some node has. false: out of memory or over out's limit. */
bool flame_json(const struct flame_answer *answer, struct buffer *out);
/* Of that, names, files, modules, kinds and nodes, as keys of the object at hand. */
bool flame_graph_json(struct json *json, const struct flame_answer *answer);

/* The same as typed columns that a reader takes as they are (schema/README.md): a million nodes are
 * read in milliseconds, JSON's in seconds. Not of comparisons. */
bool flame_columns(const struct flame_answer *answer, struct buffer *out);

/* "frame;frame;… value" per distinct stack, as stackcollapse-perf.pl writes it
 * (github.com/brendangregg/ FlameGraph): ';' and control characters in names become '_', kernel
 * frames end in _[k]. The root has no frame; value that stays on the root itself, without any
 * frame, is named "all". Of comparisons two values, as difffolded.pl writes them: base, scaled, and
 * compared. */
bool flame_folded(const struct flame_answer *answer, struct buffer *out);

/* speedscope's file (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts): one "evented"
 * profile, whose time is the value so far, depth first. */
bool flame_speedscope(const struct flame_answer *answer, struct buffer *out);

/* RFC 4180, in UTF-8: a row per node (parent before child, parent's number in the column; node 0
 * the root), or per function of top. A text that a spreadsheet would take for a formula has an
 * apostrophe before it (OWASP, "CSV Injection"). */
bool flame_csv(const struct flame_answer *answer, struct buffer *out);
bool top_csv(const struct flame_answer *answer, struct buffer *out);

/* A cell with its comma: ± of a value; empty where nothing is sampled. */
void csv_put_error(struct buffer *out, const struct accounting *accounting, uint64_t value,
		   double squares);

/* A report of a page or two for people and chats: totals, functions of top, the tree's hottest
 * paths, what is unknown and lost. Either may be NULL, and is then left out. */
bool flame_markdown(const struct flame_answer *answer, struct buffer *out);

/* A picture, root on top, that needs no network; where scripts run it zooms and searches. Frames
 * narrower than 0.1 pixels are left out and counted. */
bool flame_svg(const struct flame_answer *answer, struct buffer *out);

/* One page that needs no network: flame graph, functions of top, accounting. */
bool flame_html(const struct flame_answer *answer, struct buffer *out);

/* {"type",…,"functions":[…],"own":{…},"accounting":{…}}, its functions alone, and one of them. */
bool top_json(const struct flame_answer *answer, struct buffer *out);
void top_functions_json(struct json *json, const struct flame_answer *answer);
void top_function_json(struct json *json, const struct flame_answer *answer,
		       const struct top_function *function);

/* Its own, or one without name and build-id. */
const struct flame_module *flame_answer_module(const struct flame_answer *answer,
					       const struct flame_frame *frame);
/* Keys of the object at hand: type, unit, from, until; and name, signature, file, line, module,
 * build_id, language. */
void flame_range_json(struct json *json, const struct flame_answer *answer);
void flame_function_json(struct json *json, const struct flame_answer *answer,
			 const struct flame_frame *frame);
/* The key "accounting", and the end of the answer. false: over out's limit. */
bool flame_end_json(struct json *json, const struct flame_answer *answer);

/* The keys "signature" and "language", of a frame that has one. */
void json_key_signature(struct json *json, const struct flame_frame *frame);
void json_key_language(struct json *json, const struct flame_frame *frame);

/* As 16 hexadecimal digits; "" for 0. */
void stack_id_json(struct json *json, uint64_t id);

#endif
