/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a process takes its memory by: its own, and libraries known by their names. Each
 * is open while a process has it mapped, and looked at once, by the parser of strangers' files. */
#ifndef NODE_AGENT_ALLOCATIONS_ALLOCATORS_H
#define NODE_AGENT_ALLOCATIONS_ALLOCATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/allocations/nameless_files.h"
#include "node-agent/stacks/code_pages.h"
#include "node-agent/file_parser/memory_places.h"

enum {
	/* Numbers of its questions to the parser of files: above those of memory_probes.h. */
	ALLOCATOR_FILES_FIRST = 1 << 28,
	ALLOCATORS_MAX = 8, /* in one process */
};

struct allocator_files;

struct allocators { /* of one process; zeros but for tgid: nobody has looked */
	uint32_t tgid, count;
	bool is_looked_at;
	struct allocator {
		uint32_t file;
		uint64_t start, limit, offset; /* of its code: addresses, offset in the file */
	} items[ALLOCATORS_MAX];
};

struct allocator_files *allocator_files_new(struct error *err);
void allocator_files_free(struct allocator_files *files); /* nobody has any */

/* None where the process loads the library that tells by itself, node-agent/malloc/. */
void allocators_look(struct allocator_files *files, struct allocators *of);
void allocators_leave(struct allocator_files *files, struct allocators *of);

/* Asks the parser for what it has not been asked; its answer, for file_parser_set_memory(). */
void allocator_files_ask(struct allocator_files *files, struct code_pages *pages);
void allocator_files_places(struct allocator_files *files, uint32_t number,
			    const struct memory_places *places);

/* Takes what the server says of files without names; the parser looks at those once more. False:
 * there was nothing new. */
bool allocator_files_name(struct allocator_files *files, struct nameless_files *names,
			  int64_t now_ms);

/* Whether it has the file of that question. */
bool allocators_have(const struct allocator_files *files, const struct allocators *of,
		     uint32_t number);
/* Whether all of them have been looked at, and the server has said what it knows at first. */
bool allocators_are_known(const struct allocator_files *files, const struct allocators *of);
/* Borrowed until the process leaves it. */
const struct memory_places *allocator_places(const struct allocator_files *files,
					     const struct allocator *of, int *fd);
/* How many windows have probes in it; theirs to count, atomically. Borrowed in the same way. */
uint32_t *allocator_windows(struct allocator_files *files, const struct allocator *of);
uint64_t allocator_files_refused(const struct allocator_files *files); /* no room */
/* Functions that the server told of, and that are not in their files. */
uint64_t allocator_functions_refused(const struct allocator_files *files);

#endif
