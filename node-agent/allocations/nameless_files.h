/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions that take memory lie in files that are stripped of their names: the server is
 * asked, which may have the symbols. Once for each build-id; what it does not know is asked again
 * later, each time after a longer while, since symbols may come. What it says is a claim: whether
 * the file has a function there is for the parser of strangers' files to say. Joins ship and
 * unwind. */
#ifndef NODE_AGENT_ALLOCATIONS_NAMELESS_FILES_H
#define NODE_AGENT_ALLOCATIONS_NAMELESS_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "node-agent/ship/ship.h"
#include "node-agent/file_parser/memory_places.h"

struct nameless_files;

/* again_ms: after which what the server did not know is asked again, the first time. ship:
 * borrowed. */
struct nameless_files *nameless_files_new(struct ship *ship, int64_t again_ms, struct error *err);
void nameless_files_free(struct nameless_files *files); /* NULL too */

/* What the server says of it, borrowed until the next call of any of these; NULL: nothing yet, it
 * will be asked. Those that are not looked for any more are forgotten when there is no room. */
const struct memory_functions *nameless_files_find(struct nameless_files *files,
						   const struct build_id *id, int64_t now_ms);

/* Whether it is about to be asked for the first time, of a server that is there: what comes of that
 * is worth waiting for. */
bool nameless_files_is_new(const struct nameless_files *files, const struct build_id *id);

/* Takes an answer, asks the next question; never waits. */
void nameless_files_run(struct nameless_files *files, int64_t now_ms);

struct nameless_files_counters { /* since the start */
	uint64_t asked;          /* questions */
	uint64_t answered;       /* of these: with functions */
	uint64_t unknown;        /* with none: the server has no symbols of the file */
	uint64_t refused;        /* not to be asked, or not understood; and files without room */
};
void nameless_files_counters(const struct nameless_files *files,
			     struct nameless_files_counters *out);

#endif
