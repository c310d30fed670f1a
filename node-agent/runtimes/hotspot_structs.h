/* SPDX-License-Identifier: Apache-2.0 */
/* The tables in which a HotSpot virtual machine describes itself to debuggers, as they are in a
 * process' memory (src/hotspot/share/runtime/vmStructs.hpp: VMStructEntry, VMTypeEntry,
 * VMIntConstantEntry, VMLongConstantEntry): fields with their offsets, or with the address of what
 * is static; types with their sizes; constants. A stranger's: rows, texts and reads are bounded.
 * What is kept of a name is a hash: one that somebody has made up misleads about its process alone.
 */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_STRUCTS_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_STRUCTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/file_parser/runtime_symbols.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	HOTSPOT_ROWS_MAX = 16384, /* of all tables; real ones have 1300 to 2100 */
	HOTSPOT_TEXT_MAX = 256,   /* of a name, with its end; real ones have up to 110 */
	HOTSPOT_READS_MAX = 512,  /* of the process' memory; real ones take 60 to 90 */
};

struct hotspot_structs;

/* symbols: of the file, which is mapped with base added. NULL: they are not there yet (the process
 * has not relocated its file), or make no sense. */
struct hotspot_structs *hotspot_structs_read(const struct python_memory *memory,
					     const struct runtime_symbols *symbols, uint64_t base,
					     struct error *err);
void hotspot_structs_free(struct hotspot_structs *structs);

struct hotspot_field {
	bool is_static;
	uint64_t value; /* its offset; its address */
	uint8_t bytes;  /* by its type: 1, 2, 4, 8; 0: another one */
};

/* False: there is none of that name. */
bool hotspot_structs_field(const struct hotspot_structs *structs, const char *type,
			   const char *field, struct hotspot_field *out);
/* Whether the field is said to be of that type. */
bool hotspot_structs_is_type(const struct hotspot_structs *structs, const char *type,
			     const char *field, const char *of);
bool hotspot_structs_size(const struct hotspot_structs *structs, const char *type, uint64_t *bytes);
bool hotspot_structs_constant(const struct hotspot_structs *structs, const char *name,
			      int64_t *value);

/* How many rows there are; how many reads they took. */
uint32_t hotspot_structs_rows(const struct hotspot_structs *structs);
uint32_t hotspot_structs_reads(const struct hotspot_structs *structs);

#endif
