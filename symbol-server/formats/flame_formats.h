/* SPDX-License-Identifier: Apache-2.0 */
/* Tree → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_FLAME_FORMATS_H
#define SYMBOL_SERVER_FORMATS_FLAME_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/formats/accounting.h"

struct flame_module {
	const char *name, *build_id; /* hexadecimal, "" none */
};

struct flame_answer {
	const char *type, *unit;
	int64_t from_ms, until_ms; /* effective */
	const struct flame_tree *tree;
	const struct flame_module *modules; /* by flame_frame.module */
	uint32_t module_count;
	const struct accounting *accounting;
};

/* design.md §6: columns of equal length, parent before child, node 0 the root (its parent is −1).
 * Only names, files and modules that some node has. false: out of memory or over out's limit. */
bool flame_json(const struct flame_answer *answer, struct buffer *out);

/* "frame;frame;… value" per distinct stack, as stackcollapse-perf.pl writes it
 * (github.com/brendangregg/ FlameGraph): ';' and control characters in names become '_', kernel
 * frames end in _[k]. The root has no frame; value that stays on the root itself, without any
 * frame, is named "all". */
bool flame_folded(const struct flame_answer *answer, struct buffer *out);

#endif
