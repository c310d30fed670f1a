/* SPDX-License-Identifier: Apache-2.0 */
/* The line that an instruction of CPython's bytecode comes from, by the table that its code object
 * has. Three formats: Objects/lnotab_notes.txt of 3.9 and of 3.10 (PEP 626), Objects/locations.md
 * of 3.11. Pure: the table is a stranger's and may say anything. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_LINES_H
#define NODE_AGENT_RUNTIMES_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "node-agent/runtimes/python_layout.h"

enum { PYTHON_POSITION_NONE = -1 }; /* no instruction has been run yet: the first line */

/* position: in bytes from the beginning of the bytecode. first_line: co_firstlineno. Returns 0
 * where the instruction has no line or the table does not tell. */
uint32_t python_line_find(enum python_line_format format, const uint8_t *table, size_t length,
			  uint32_t first_line, int64_t position);

#endif
