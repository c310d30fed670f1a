/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_told.h"

#include <string.h>

/* --- the copy as memory --- */

struct telling {
	const struct runtime_code_event *told;
	const struct python_memory *memory; /* of the process; NULL: the copy alone */
	uint16_t bytes_size;                /* in a bytes object */
	uint64_t lines_most;                /* that its table is said to have */
	bool is_elsewhere;                  /* something was not in the copy */
};

static bool take(uint64_t at, const uint8_t *from, size_t there, uint64_t address, void *to,
		 size_t bytes)
{
	if (address < at || address - at > there || bytes > there - (size_t)(address - at))
		return false;
	memcpy(to, from + (address - at), bytes);
	return true;
}

/* Reads of a table begin where it does. */
static void cut_lines(const struct telling *telling, uint8_t *table)
{
	uint64_t size;

	memcpy(&size, table + telling->bytes_size, sizeof size);
	if (size > telling->lines_most)
		memcpy(table + telling->bytes_size, &telling->lines_most, sizeof size);
}

/* Once something is not in the copy, the object has to be there still: its head is read anew. */
static bool read_told(void *context, uint64_t address, void *to, size_t bytes)
{
	struct telling *telling = context;
	const struct runtime_code_event *told = telling->told;

	if (!telling->is_elsewhere &&
	    take(told->address, told->head, told->head_bytes, address, to, bytes))
		return true;
	if (take(told->name_at, told->name, told->name_bytes, address, to, bytes) ||
	    take(told->file_at, told->file, told->file_bytes, address, to, bytes))
		return true;
	if (take(told->lines_at, told->lines, told->lines_bytes, address, to, bytes)) {
		if (address == told->lines_at && bytes >= telling->bytes_size + sizeof(uint64_t))
			cut_lines(telling, to);
		return true;
	}
	telling->is_elsewhere = true;
	return telling->memory &&
	       telling->memory->read(telling->memory->context, address, to, bytes);
}

/* --- */

enum python_code_state python_told_read(const struct runtime_code_event *told,
					const struct python_memory *memory,
					const struct python_layout *layout,
					struct python_code **out)
{
	struct telling telling = {told, memory, layout->bytes_size, UINT64_MAX, false};
	const struct python_memory reader = {read_told, &telling, .is_copy = true};
	enum python_code_state state = python_code_read(&reader, layout, told->address,
							told->cookie, out);

	if (state == PYTHON_CODE_READ || told->lines_bytes < layout->bytes_data)
		return state;
	telling = (struct telling){told, NULL, layout->bytes_size,
				   told->lines_bytes - layout->bytes_data, false};
	state = python_code_read(&reader, layout, told->address, told->cookie, out);
	if (state == PYTHON_CODE_READ)
		(*out)->is_lines_cut = true;
	return state;
}
