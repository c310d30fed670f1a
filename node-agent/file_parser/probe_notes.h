/* SPDX-License-Identifier: Apache-2.0 */
/* Where a library that samples its program's allocations announces them: the probes of the provider
 * otel_memory as node-agent/malloc/probes.h has them, with arguments in the registers of a
 * function's first ones. Of other places of arguments nothing is known here: then there are no
 * probes. Format: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. */
#ifndef NODE_AGENT_FILE_PARSER_PROBE_NOTES_H
#define NODE_AGENT_FILE_PARSER_PROBE_NOTES_H

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/memory_places.h"

/* Adds those of one piece, both or none, and beside them that of many if there is one. */
void probe_notes_places(const struct code_file *file, struct memory_places *places);

struct probe_note {
	uint64_t location, base, semaphore; /* ELF addresses; semaphore 0: none */
	const char *provider, *name, *arguments;
};

/* The next note of a probe from *at on, which is moved behind it. False: there is none. bytes is
 * lent, and its strings with it. */
bool probe_note_next(const uint8_t *bytes, size_t length, size_t *at, struct probe_note *note);

#endif
