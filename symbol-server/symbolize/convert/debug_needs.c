/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/debug_needs.h"

#include <limits.h>
#include <string.h>

#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"

/* ---- the worker's side ---- */

static const struct dwarf_limits limits = {
	.section_bytes = (size_t)4 << 30,
	.total_bytes = (size_t)12 << 30, /* the worker's own limit is by the file's size */
};

static void list_alt(struct dwarf_file *file, struct buffer *out)
{
	uint8_t bytes[DWARF_ID_MAX];
	size_t length = dwarf_file_alt_id(file, bytes);
	char hex[BUILD_ID_HEX];
	struct build_id id;

	if (length && build_id_set(&id, bytes, length))
		buffer_printf(out, "alt %s\n", build_id_format(&id, hex));
}

/* Only skeletons are opened: from DWARF 5 on their headers say what they are. */
static bool may_be_skeleton(const struct dwarf_unit *unit)
{
	return unit->type == DW_UT_skeleton || unit->version < 5;
}

static bool list_split(const struct dwarf_unit *unit, struct buffer *out)
{
	bool is_relative = unit->dwo_name[0] != '/' && unit->comp_dir && *unit->comp_dir;

	/* A line is one path; nobody compiles in folders with line feeds in their names. */
	if (strchr(unit->dwo_name, '\n') || (is_relative && strchr(unit->comp_dir, '\n')) ||
	    strlen(unit->dwo_name) + (is_relative ? strlen(unit->comp_dir) : 0) + 2 > PATH_MAX)
		return false;
	buffer_printf(out, "dwo %s%s%s\n", is_relative ? unit->comp_dir : "",
		      is_relative ? "/" : "", unit->dwo_name);
	return true;
}

static void list_splits(struct dwarf_units *units, struct buffer *out)
{
	const char *last = NULL;
	size_t count = 0;

	for (uint32_t i = 0; i < units->count && !out->failed; i++) {
		struct dwarf_unit *unit = &units->rows[i];

		if (!may_be_skeleton(unit) || !dwarf_unit_open(unit) || !unit->dwo_name ||
		    !*unit->dwo_name || (last && !strcmp(last, unit->dwo_name)))
			continue;
		if (count == DEBUG_NEEDS_PATHS) {
			buffer_printf(out, "more\n");
			break;
		}
		last = unit->dwo_name;
		count += list_split(unit, out);
	}
}

bool debug_needs_list(const struct debug_input *input, struct buffer *out, struct error *err)
{
	struct dwarf_limits own = limits;
	struct dwarf_units units = {0};
	struct dwarf_file *file;
	bool ok = true;

	own.is_mapping = input->is_mapping;
	file = dwarf_file_open(input->bytes, input->length, &own, err);
	if (!file)
		return false;
	list_alt(file, out);
	/* Addresses of split units are in .debug_addr of the file they were split from. */
	if (dwarf_file_has(file, DWARF_INFO) && dwarf_file_has(file, DWARF_ADDR) &&
	    !dwarf_file_is_split(file) && !dwarf_file_is_unrelocated(file)) {
		ok = dwarf_units_open(&units, file, err);
		if (ok)
			list_splits(&units, out);
		if (ok)
			dwarf_units_close(&units);
	}
	dwarf_file_close(file);
	return ok && (!out->failed || error_set(err, ERROR_LIMIT, "its list of needs is too long"));
}

/* ---- the server's side ---- */

static bool parse_line(char *line, struct debug_needs *needs)
{
	if (!strncmp(line, "alt ", 4))
		return build_id_parse(&needs->alt, line + 4, strlen(line + 4));
	if (!strcmp(line, "more")) {
		needs->has_more = true;
		return true;
	}
	if (strncmp(line, "dwo ", 4) || !line[4] || strlen(line + 4) >= PATH_MAX ||
	    needs->path_count == DEBUG_NEEDS_PATHS)
		return false;
	needs->paths[needs->path_count++] = line + 4;
	return true;
}

bool debug_needs_parse(char *text, struct debug_needs *needs)
{
	*needs = (struct debug_needs){0};
	for (char *end; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (!end)
			return false;
		*end = '\0';
		if (!parse_line(text, needs))
			return false;
	}
	return true;
}
