/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_compiled.h"

#include <string.h>

enum {
	PCS_AT_ONCE = 128,
	PC_BYTES_MAX = 32,
	WORD = 8,
};

struct part {
	uint64_t begin;
	uint32_t bytes;
};

struct reading {
	const struct python_memory *memory;
	const struct hotspot_layout *layout;
	uint8_t nmethod[HOTSPOT_BLOB_BYTES];
	struct part code, metadata, data, pcs;
};

static bool read_part(const struct reading *reading, const struct part *part, uint32_t at, void *to,
		      uint32_t bytes)
{
	return at <= part->bytes && bytes <= part->bytes - at &&
	       reading->memory->read(reading->memory->context, part->begin + at, to, bytes);
}

static uint32_t int_at(const uint8_t *bytes, uint32_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

/* --- the nmethod --- */

static bool find_part(const struct reading *reading, uint64_t nmethod, enum hotspot_part which,
		      struct part *part)
{
	return hotspot_layout_part(reading->layout, reading->nmethod, nmethod, which, &part->begin,
				   &part->bytes);
}

static enum hotspot_state nmethod_read(struct reading *reading,
				       const struct hotspot_place_in_code *place)
{
	const struct hotspot_layout *layout = reading->layout;

	if (layout->nmethod_bytes > sizeof reading->nmethod ||
	    !reading->memory->read(reading->memory->context, place->nmethod, reading->nmethod,
				   layout->nmethod_bytes))
		return HOTSPOT_UNREAD;
	if ((uint16_t)int_at(reading->nmethod, layout->nmethod_compile_id) != place->compile_id)
		return HOTSPOT_GONE;
	return find_part(reading, place->nmethod, HOTSPOT_PART_CODE, &reading->code) &&
			       find_part(reading, place->nmethod, HOTSPOT_PART_METADATA,
					 &reading->metadata) &&
			       find_part(reading, place->nmethod, HOTSPOT_PART_SCOPES_DATA,
					 &reading->data) &&
			       find_part(reading, place->nmethod, HOTSPOT_PART_SCOPES_PCS,
					 &reading->pcs)
		       ? HOTSPOT_READ
		       : HOTSPOT_UNREAD;
}

static bool is_same(const struct reading *reading, const struct hotspot_place_in_code *place)
{
	const struct hotspot_layout *layout = reading->layout;
	uint8_t again[HOTSPOT_BLOB_BYTES];

	return reading->memory->read(reading->memory->context, place->nmethod, again,
				     layout->nmethod_bytes) &&
	       int_at(again, layout->nmethod_compile_id) ==
		       int_at(reading->nmethod, layout->nmethod_compile_id) &&
	       !memcmp(again + layout->nmethod_method, reading->nmethod + layout->nmethod_method,
		       WORD);
}

/* --- its scopes --- */

/* The descriptions among which the one of that byte of the code is, PCS_AT_ONCE at most. */
static bool narrow_pcs(const struct reading *reading, uint32_t pc, uint32_t *first, uint32_t *count)
{
	const uint32_t stride = reading->layout->pc_bytes;
	int32_t found;

	*first = 0;
	*count = reading->pcs.bytes / stride;
	while (*count > PCS_AT_ONCE) {
		const uint32_t half = *count / 2;

		if (!read_part(reading, &reading->pcs,
			       (*first + half) * stride + reading->layout->pc_offset, &found,
			       sizeof found))
			return false;
		if (found < (int64_t)pc) {
			*first += half + 1;
			*count -= half + 1;
		} else {
			*count = half + 1;
		}
	}
	return true;
}

static bool find_scope(const struct reading *reading, uint32_t pc, uint32_t *scope)
{
	const struct hotspot_layout *layout = reading->layout;
	uint8_t bytes[PCS_AT_ONCE * PC_BYTES_MAX];
	struct hotspot_pcs pcs = {.bytes = bytes,
				  .stride = layout->pc_bytes,
				  .pc_at = layout->pc_offset,
				  .scope_at = layout->pc_scope};
	uint32_t first;

	*scope = HOTSPOT_SCOPE_NONE;
	if (!pcs.stride || pcs.stride > PC_BYTES_MAX || pcs.pc_at + 4U > pcs.stride ||
	    pcs.scope_at + 4U > pcs.stride || !narrow_pcs(reading, pc, &first, &pcs.count))
		return false;
	if (!read_part(reading, &reading->pcs, first * pcs.stride, bytes, pcs.count * pcs.stride))
		return false;
	hotspot_pcs_find(&pcs, pc, scope);
	return true;
}

static bool add_call(const struct reading *reading, uint64_t method, int32_t bci,
		     struct hotspot_compiled *out)
{
	struct hotspot_call *call = &out->calls[out->count++];

	*call = (struct hotspot_call){.method = method, .bci = bci};
	return hotspot_method_cookie(reading->memory, reading->layout, method, &call->cookie);
}

static bool add_scopes(const struct reading *reading, uint32_t offset, struct hotspot_compiled *out)
{
	const enum hotspot_coding coding = hotspot_coding_of(reading->layout);
	uint8_t bytes[HOTSPOT_SCOPE_BYTES];
	struct hotspot_scope scope;
	uint64_t method;

	for (; offset != HOTSPOT_SCOPE_NONE; offset = scope.sender) {
		const uint32_t left = offset < reading->data.bytes ? reading->data.bytes - offset
								   : 0;
		const uint32_t length = left < sizeof bytes ? left : sizeof bytes;

		if (out->count == HOTSPOT_CALLS_MAX) {
			out->is_cut = true;
			return true;
		}
		if (!read_part(reading, &reading->data, offset, bytes, length) ||
		    !hotspot_scope_read(coding, bytes, length, &scope) || !scope.method ||
		    scope.method > reading->metadata.bytes / WORD ||
		    !read_part(reading, &reading->metadata, (scope.method - 1) * WORD, &method,
			       sizeof method) ||
		    !add_call(reading, method, scope.bci, out))
			return false;
	}
	return true;
}

/* What no scope tells of is the method itself: native ones have none. */
static bool add_calls(const struct reading *reading, uint32_t pc, struct hotspot_compiled *out)
{
	uint32_t scope;
	uint64_t method;

	if (!find_scope(reading, pc, &scope))
		return false;
	if (scope != HOTSPOT_SCOPE_NONE)
		return add_scopes(reading, scope, out);
	memcpy(&method, reading->nmethod + reading->layout->nmethod_method, sizeof method);
	return add_call(reading, method, HOTSPOT_BCI_ENTRY, out);
}

enum hotspot_state hotspot_compiled_read(const struct python_memory *memory,
					 const struct hotspot_layout *layout,
					 const struct hotspot_place_in_code *place,
					 struct hotspot_compiled *out)
{
	struct reading reading = {.memory = memory, .layout = layout};
	const enum hotspot_state state = nmethod_read(&reading, place);
	uint64_t pc;

	if (state != HOTSPOT_READ)
		return state;
	/* Stubs behind its instructions are its own, too. */
	if (place->pc < reading.code.begin ||
	    place->pc - place->nmethod > int_at(reading.nmethod, layout->blob_size))
		return HOTSPOT_GONE; /* it has another's address */
	pc = place->pc - reading.code.begin;
	*out = (struct hotspot_compiled){
		.level = (uint8_t)int_at(reading.nmethod, layout->nmethod_comp_level)};
	const bool is_read = add_calls(&reading, (uint32_t)pc, out);
	if (!is_same(&reading, place))
		return HOTSPOT_GONE;
	return is_read ? HOTSPOT_READ : HOTSPOT_UNREAD;
}
