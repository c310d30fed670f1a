/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_layout.h"

#include <string.h>

#define NONE HOTSPOT_OFFSET_NONE

enum {
	POINTER_BYTES = 8,
};

/* --- members --- */

enum row_use {
	WANTED,   /* there is no layout without it, or the next one of the same member */
	OPTIONAL, /* an older or newer version has none */
};

/* Of a member the first that the tables have counts. */
#define MEMBER(name, type, field, ...)                                          \
	{                                                                       \
		offsetof(struct hotspot_layout, name), type, field, __VA_ARGS__ \
	}
static const struct layout_row {
	uint16_t at;
	const char *type, *field;
	enum row_use use;
	uint16_t flag; /* that it sets */
} members[] = {
	MEMBER(growable_length, "GrowableArrayBase", "_len", WANTED),
	MEMBER(growable_length, "GenericGrowableArray", "_len", WANTED),
	MEMBER(growable_data, "GrowableArray<int>", "_data", WANTED),
	MEMBER(array_length, "Array<int>", "_length", WANTED),
	MEMBER(array_bytes, "Array<u1>", "_data", WANTED),
	MEMBER(array_shorts, "Array<u2>", "_data", WANTED),
	MEMBER(array_words, "Array<Klass*>", "_data", WANTED),
	MEMBER(heap_segment_log2, "CodeHeap", "_log2_segment_size", WANTED),
	MEMBER(block_used, "HeapBlock::Header", "_used", WANTED),
	MEMBER(queue_buffer, "StubQueue", "_stub_buffer", WANTED),
	MEMBER(queue_end, "StubQueue", "_queue_end", WANTED),
	MEMBER(codelet_size, "InterpreterCodelet", "_size", WANTED),
	MEMBER(codelet_description, "InterpreterCodelet", "_description", WANTED),
	MEMBER(codelet_bytecode, "InterpreterCodelet", "_bytecode", WANTED),

	MEMBER(blob_name, "CodeBlob", "_name", WANTED),
	MEMBER(blob_size, "CodeBlob", "_size", WANTED),
	MEMBER(blob_frame_size, "CodeBlob", "_frame_size", WANTED),
	MEMBER(blob_frame_complete, "CodeBlob", "_frame_complete_offset", WANTED),
	MEMBER(blob_code, "CodeBlob", "_code_begin", WANTED, HOTSPOT_LAYOUT_CODE_POINTER),
	MEMBER(blob_code, "CodeBlob", "_code_offset", WANTED),
	MEMBER(blob_data, "CodeBlob", "_data_offset", WANTED),
	MEMBER(blob_kind, "CodeBlob", "_kind", OPTIONAL),
	MEMBER(nmethod_method, "nmethod", "_method", WANTED),
	MEMBER(nmethod_method, "CompiledMethod", "_method", WANTED),
	MEMBER(nmethod_compile_id, "nmethod", "_compile_id", WANTED),
	MEMBER(nmethod_comp_level, "nmethod", "_comp_level", WANTED),
	MEMBER(nmethod_entry_bci, "nmethod", "_entry_bci", WANTED),
	MEMBER(nmethod_orig_pc, "nmethod", "_orig_pc_offset", WANTED),
	MEMBER(nmethod_deopt, "CompiledMethod", "_deopt_handler_begin", WANTED,
	       HOTSPOT_LAYOUT_DEOPT_POINTER),
	MEMBER(nmethod_deopt, "nmethod", "_deopt_handler_entry_offset", WANTED),
	MEMBER(nmethod_deopt, "nmethod", "_deopt_handler_offset", WANTED),
	MEMBER(nmethod_deopt, "nmethod", "_deoptimize_offset", WANTED),
	MEMBER(nmethod_deopt_mh, "CompiledMethod", "_deopt_mh_handler_begin", OPTIONAL),
	MEMBER(nmethod_deopt_mh, "nmethod", "_deopt_mh_handler_offset", OPTIONAL),
	MEMBER(nmethod_deopt_mh, "nmethod", "_deoptimize_mh_offset", OPTIONAL),
	MEMBER(nmethod_stub, "nmethod", "_stub_offset", WANTED),
	MEMBER(nmethod_scopes_pcs, "nmethod", "_scopes_pcs_offset", WANTED),
	MEMBER(nmethod_scopes_data, "CompiledMethod", "_scopes_data_begin", WANTED),
	MEMBER(nmethod_scopes_data, "nmethod", "_scopes_data_offset", WANTED),
	MEMBER(nmethod_metadata, "nmethod", "_metadata_offset", OPTIONAL),
	MEMBER(nmethod_dependencies, "nmethod", "_dependencies_offset", OPTIONAL),
	MEMBER(nmethod_immutable, "nmethod", "_immutable_data", OPTIONAL),
	MEMBER(nmethod_immutable_size, "nmethod", "_immutable_data_size", OPTIONAL),
	MEMBER(nmethod_mutable, "CodeBlob", "_mutable_data", OPTIONAL, HOTSPOT_LAYOUT_PARTS_APART),
	MEMBER(nmethod_mutable_size, "CodeBlob", "_mutable_data_size", OPTIONAL),
	MEMBER(nmethod_relocation_size, "CodeBlob", "_relocation_size", OPTIONAL),
	MEMBER(pc_offset, "PcDesc", "_pc_offset", WANTED),
	MEMBER(pc_scope, "PcDesc", "_scope_decode_offset", WANTED),
	MEMBER(pc_flags, "PcDesc", "_flags", WANTED),

	MEMBER(method_const, "Method", "_constMethod", WANTED),
	MEMBER(method_access, "Method", "_access_flags", WANTED),
	MEMBER(const_constants, "ConstMethod", "_constants", WANTED),
	MEMBER(const_size, "ConstMethod", "_constMethod_size", WANTED),
	MEMBER(const_flags, "ConstMethod", "_flags._flags", WANTED, HOTSPOT_LAYOUT_FLAGS_LONG),
	MEMBER(const_flags, "ConstMethod", "_flags", WANTED),
	MEMBER(const_code_size, "ConstMethod", "_code_size", WANTED),
	MEMBER(const_name, "ConstMethod", "_name_index", WANTED),
	MEMBER(const_signature, "ConstMethod", "_signature_index", WANTED),
	MEMBER(pool_length, "ConstantPool", "_length", WANTED),
	MEMBER(pool_holder, "ConstantPool", "_pool_holder", WANTED),
	MEMBER(pool_source, "ConstantPool", "_source_file_name_index", OPTIONAL,
	       HOTSPOT_LAYOUT_SOURCE_IN_POOL),
	MEMBER(klass_source, "InstanceKlass", "_source_file_name_index", OPTIONAL),
	MEMBER(klass_name, "Klass", "_name", WANTED),
	MEMBER(klass_loader, "Klass", "_class_loader_data", OPTIONAL),
	MEMBER(klass_loader, "InstanceKlass", "_class_loader_data", OPTIONAL),
	MEMBER(symbol_length, "Symbol", "_length", WANTED),
	MEMBER(symbol_length, "Symbol", "_length_and_refcount", WANTED, HOTSPOT_LAYOUT_LENGTH_HIGH),
	MEMBER(symbol_body, "Symbol", "_body", WANTED),

	MEMBER(thread_os, "Thread", "_osthread", WANTED),
	MEMBER(thread_os, "JavaThread", "_osthread", WANTED),
	MEMBER(thread_object, "JavaThread", "_threadObj", WANTED),
	MEMBER(thread_next, "JavaThread", "_next", OPTIONAL),
	MEMBER(os_thread_id, "OSThread", "_thread_id", WANTED),
	MEMBER(list_length, "ThreadsList", "_length", OPTIONAL),
	MEMBER(list_threads, "ThreadsList", "_threads", OPTIONAL),
	MEMBER(object_klass, "oopDesc", "_metadata._klass", WANTED),
	MEMBER(object_klass, "oopDesc", "_compressed_klass", WANTED),
	MEMBER(thread_continuation, "JavaThread", "_cont_entry", OPTIONAL),
	MEMBER(continuation_parent, "ContinuationEntry", "_parent", OPTIONAL),
};

static const struct layout_row statics[] = {
	MEMBER(heaps, "CodeCache", "_heaps", WANTED),
	MEMBER(heaps, "CodeCache", "_heap", WANTED, HOTSPOT_LAYOUT_ONE_HEAP),
	MEMBER(interpreter, "AbstractInterpreter", "_code", WANTED),
	MEMBER(call_stub_return, "StubRoutines", "_call_stub_return_address", WANTED),
	MEMBER(threads, "ThreadsSMRSupport", "_java_thread_list", WANTED),
	MEMBER(threads, "Threads", "_thread_list", WANTED, HOTSPOT_LAYOUT_THREADS_LINKED),
	MEMBER(narrow_oop_base, "CompressedOops", "_base", OPTIONAL),
	MEMBER(narrow_oop_base, "CompressedOops", "_narrow_oop._base", OPTIONAL),
	MEMBER(narrow_oop_base, "Universe", "_narrow_oop._base", OPTIONAL),
	MEMBER(narrow_oop_shift, "CompressedOops", "_shift", OPTIONAL),
	MEMBER(narrow_oop_shift, "CompressedOops", "_narrow_oop._shift", OPTIONAL),
	MEMBER(narrow_oop_shift, "Universe", "_narrow_oop._shift", OPTIONAL),
	MEMBER(narrow_klass_base, "CompressedKlassPointers", "_base", OPTIONAL),
	MEMBER(narrow_klass_base, "CompressedKlassPointers", "_narrow_klass._base", OPTIONAL),
	MEMBER(narrow_klass_base, "Universe", "_narrow_klass._base", OPTIONAL),
	MEMBER(narrow_klass_shift, "CompressedKlassPointers", "_shift", OPTIONAL),
	MEMBER(narrow_klass_shift, "CompressedKlassPointers", "_narrow_klass._shift", OPTIONAL),
	MEMBER(narrow_klass_shift, "Universe", "_narrow_klass._shift", OPTIONAL),
	MEMBER(return_barrier, "StubRoutines", "_cont_returnBarrier", OPTIONAL),
	MEMBER(continuation_return, "ContinuationEntry", "_return_pc", OPTIONAL),
	MEMBER(counters, "PerfMemory", "_start", OPTIONAL),
};

/* Types whose sizes count. */
static const struct layout_row sizes[] = {
	MEMBER(block_header, "HeapBlock", NULL, WANTED),
	MEMBER(codelet_bytes, "InterpreterCodelet", NULL, WANTED),
	MEMBER(nmethod_bytes, "nmethod", NULL, WANTED),
	MEMBER(pc_bytes, "PcDesc", NULL, WANTED),
	MEMBER(const_bytes, "ConstMethod", NULL, WANTED),
	MEMBER(pool_bytes, "ConstantPool", NULL, WANTED),
	MEMBER(continuation_bytes, "ContinuationEntry", NULL, OPTIONAL),
};

/* A CodeHeap's members lie in its two VirtualSpaces: both offsets together. */
static const struct space_row {
	uint16_t at;
	const char *space, *field;
} spaces[] = {
	{offsetof(struct hotspot_layout, heap_low), "_memory", "_low_boundary"},
	{offsetof(struct hotspot_layout, heap_high), "_memory", "_high_boundary"},
	{offsetof(struct hotspot_layout, heap_map), "_segmap", "_low"},
	{offsetof(struct hotspot_layout, heap_map_end), "_segmap", "_high"},
};

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* --- filling --- */

static bool missing(struct error *err, const char *type, const char *field)
{
	return error_set(err, ERROR_UNSUPPORTED, "its tables do not tell %s%s%s", type,
			 field ? "::" : "", field ? field : "");
}

static bool offset_of(const struct hotspot_structs *structs, const char *type, const char *field,
		      uint64_t *offset)
{
	struct hotspot_field found;

	if (!hotspot_structs_field(structs, type, field, &found) || found.is_static ||
	    found.value >= HOTSPOT_OFFSET_MAX)
		return false;
	*offset = found.value;
	return true;
}

static bool address_of(const struct hotspot_structs *structs, const char *type, const char *field,
		       uint64_t *address)
{
	struct hotspot_field found;

	if (!hotspot_structs_field(structs, type, field, &found) || !found.is_static)
		return false;
	*address = found.value;
	return true;
}

static bool size_of(const struct hotspot_structs *structs, const char *type, const char *field,
		    uint64_t *bytes)
{
	(void)field;
	return hotspot_structs_size(structs, type, bytes) && *bytes < HOTSPOT_OFFSET_MAX;
}

typedef bool find_row(const struct hotspot_structs *structs, const char *type, const char *field,
		      uint64_t *value);

/* bytes: of each member. What no row of an optional member tells becomes `none`. */
static bool fill_rows(const struct hotspot_structs *structs, const struct layout_row *rows,
		      size_t count, find_row *find, size_t bytes, uint64_t none,
		      struct hotspot_layout *out, struct error *err)
{
	for (size_t i = 0; i < count;) {
		const size_t first = i;
		uint64_t value = none;
		bool is_found = false;

		for (; i < count && rows[i].at == rows[first].at; i++) {
			if (is_found || !find(structs, rows[i].type, rows[i].field, &value))
				continue;
			is_found = true;
			out->flags |= rows[i].flag;
		}
		if (!is_found && rows[first].use == WANTED)
			return missing(err, rows[first].type, rows[first].field);
		memcpy((uint8_t *)out + rows[first].at, &value, bytes);
	}
	return true;
}

static bool fill_spaces(const struct hotspot_structs *structs, struct hotspot_layout *out,
			struct error *err)
{
	for (size_t i = 0; i < COUNT(spaces); i++) {
		uint64_t space, field;
		uint16_t both;

		if (!offset_of(structs, "CodeHeap", spaces[i].space, &space))
			return missing(err, "CodeHeap", spaces[i].space);
		if (!offset_of(structs, "VirtualSpace", spaces[i].field, &field))
			return missing(err, "VirtualSpace", spaces[i].field);
		both = (uint16_t)(space + field);
		memcpy((uint8_t *)out + spaces[i].at, &both, sizeof both);
	}
	return true;
}

/* What is not told of some versions alone, or has another type in some. */
static bool fill_rest(const struct hotspot_structs *structs, struct hotspot_layout *out,
		      struct error *err)
{
	const bool is_apart = out->flags & HOTSPOT_LAYOUT_PARTS_APART;
	struct hotspot_field field;

	if (hotspot_structs_field(structs, "CodeBlob", "_frame_complete_offset", &field) &&
	    field.bytes == 2)
		out->flags |= HOTSPOT_LAYOUT_COMPLETE_SHORT;
	if (hotspot_structs_is_type(structs, "JavaThread", "_threadObj", "OopHandle"))
		out->flags |= HOTSPOT_LAYOUT_OBJECT_HANDLE;
	if (out->version >= 20)
		out->flags |= HOTSPOT_LAYOUT_WITHOUT_ZERO;
	if (out->pool_source == NONE && out->klass_source == NONE)
		return missing(err, "ConstantPool", "_source_file_name_index");
	if (out->flags & HOTSPOT_LAYOUT_THREADS_LINKED
		    ? out->thread_next == NONE
		    : out->list_length == NONE || out->list_threads == NONE)
		return missing(err, "ThreadsList", "_threads");
	if (is_apart ? out->nmethod_immutable == NONE || out->nmethod_immutable_size == NONE ||
			       out->nmethod_mutable_size == NONE ||
			       out->nmethod_relocation_size == NONE
		     : out->nmethod_metadata == NONE || out->nmethod_dependencies == NONE)
		return missing(err, "nmethod", is_apart ? "_immutable_data" : "_metadata_offset");
	return true;
}

/* All of it is read in one piece. */
static bool is_within(const struct hotspot_layout *layout, struct error *err)
{
	const size_t first = offsetof(struct hotspot_layout, blob_name);
	const size_t last = offsetof(struct hotspot_layout, nmethod_relocation_size);

	if (layout->nmethod_bytes > HOTSPOT_BLOB_BYTES)
		return error_set(err, ERROR_UNSUPPORTED, "its compiled methods have %u bytes",
				 layout->nmethod_bytes);
	for (size_t at = first; at <= last; at += sizeof(uint16_t)) {
		uint16_t offset;

		memcpy(&offset, (const uint8_t *)layout + at, sizeof offset);
		if (offset != NONE && at != offsetof(struct hotspot_layout, nmethod_bytes) &&
		    offset + POINTER_BYTES > layout->nmethod_bytes &&
		    offset + sizeof(uint32_t) > layout->nmethod_bytes)
			return error_set(err, ERROR_FORMAT,
					 "its compiled methods end before their members");
	}
	return true;
}

/* 8 has numbers of HotSpot's own, 25.x: it alone has one code heap and methods of today's kind. */
static uint32_t version_of(const struct hotspot_structs *structs,
			   const struct python_memory *memory)
{
	uint64_t address;
	uint32_t version;

	if (address_of(structs, "CodeCache", "_heap", &address))
		return 8;
	if (!address_of(structs, "Abstract_VM_Version", "_vm_major_version", &address) ||
	    !memory->read(memory->context, address, &version, sizeof version))
		return 0;
	return version;
}

bool hotspot_layout_fill(const struct hotspot_structs *structs, const struct python_memory *memory,
			 struct hotspot_layout *out, struct error *err)
{
	const size_t shorts = sizeof(uint16_t), words = sizeof(uint64_t);
	const uint32_t version = version_of(structs, memory);

	*out = (struct hotspot_layout){.version = (uint16_t)version};
	if (version < HOTSPOT_VERSION_FIRST || version == 23 || version == 24)
		return error_set(err, ERROR_UNSUPPORTED, "Java %u is not known", version);
	if (version > HOTSPOT_VERSION_LAST)
		return error_set(err, ERROR_UNSUPPORTED,
				 "Java %u is newer than the agent knows: a newer agent reads it",
				 version);
	return fill_rows(structs, members, COUNT(members), offset_of, shorts, NONE, out, err) &&
	       fill_rows(structs, statics, COUNT(statics), address_of, words, 0, out, err) &&
	       fill_rows(structs, sizes, COUNT(sizes), size_of, shorts, NONE, out, err) &&
	       fill_spaces(structs, out, err) && fill_rest(structs, out, err) &&
	       is_within(out, err);
}

void hotspot_layout_move(struct hotspot_layout *layout, uint64_t by)
{
	uint64_t *const addresses[] = {
		&layout->heaps,
		&layout->interpreter,
		&layout->call_stub_return,
		&layout->threads,
		&layout->narrow_oop_base,
		&layout->narrow_oop_shift,
		&layout->narrow_klass_base,
		&layout->narrow_klass_shift,
		&layout->return_barrier,
		&layout->continuation_return,
		&layout->counters,
	};

	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
		if (*addresses[i])
			*addresses[i] += by;
}

/* frame::interpreter_frame_… of cpu/x86/frame_x86.hpp: 9 has put the mirror between the method and
 * what is behind it. */
void hotspot_layout_walk(const struct hotspot_layout *layout, struct hotspot_walk_layout *walk)
{
	*walk = (struct hotspot_walk_layout){
		.blob_name = layout->blob_name,
		.blob_size = layout->blob_size,
		.blob_frame_size = layout->blob_frame_size,
		.blob_frame_complete = layout->blob_frame_complete,
		.blob_code_begin = layout->blob_code,
		.nmethod_compile_id = layout->nmethod_compile_id,
		.nmethod_orig_pc = layout->nmethod_orig_pc,
		.nmethod_deopt_handler = layout->nmethod_deopt,
		.nmethod_deopt_mh_handler = layout->nmethod_deopt_mh,
		.method_const = layout->method_const,
		.const_constants = layout->const_constants,
		.const_code_size = layout->const_code_size,
		.const_name_index = layout->const_name,
		.const_signature_index = layout->const_signature,
		.const_size = layout->const_bytes,
		.slot_sender_sp = -1,
		.slot_method = -3,
		.slot_bcp = layout->version >= 9 ? -8 : -7,
		.java_version = layout->version,
	};
	if (layout->flags & HOTSPOT_LAYOUT_CODE_POINTER)
		walk->flags |= HOTSPOT_CODE_BEGIN_IS_POINTER;
	if (layout->flags & HOTSPOT_LAYOUT_DEOPT_POINTER)
		walk->flags |= HOTSPOT_DEOPT_IS_POINTER;
	if (layout->flags & HOTSPOT_LAYOUT_COMPLETE_SHORT)
		walk->flags |= HOTSPOT_COMPLETE_IS_SHORT;
}

/* --- parts of a compiled method --- */

static uint64_t word_at(const void *nmethod, uint16_t at)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)nmethod + at, sizeof word);
	return word;
}

/* Of an int: what is negative leads to no sound part. */
static uint64_t int_at(const void *nmethod, uint16_t at)
{
	int32_t value;

	memcpy(&value, (const uint8_t *)nmethod + at, sizeof value);
	return (uint64_t)(int64_t)value;
}

static void part_apart(const struct hotspot_layout *layout, const void *nmethod,
		       enum hotspot_part part, uint64_t *begin, uint64_t *end)
{
	const uint64_t immutable = word_at(nmethod, layout->nmethod_immutable);
	const uint64_t mutable = word_at(nmethod, layout->nmethod_mutable);
	const uint64_t data = immutable + int_at(nmethod, layout->nmethod_scopes_data);

	if (part == HOTSPOT_PART_METADATA) {
		*begin = mutable + int_at(nmethod, layout->nmethod_relocation_size);
		*end = mutable + int_at(nmethod, layout->nmethod_mutable_size);
	} else if (part == HOTSPOT_PART_SCOPES_DATA) {
		*begin = data;
		*end = immutable + int_at(nmethod, layout->nmethod_immutable_size);
	} else {
		*begin = immutable + int_at(nmethod, layout->nmethod_scopes_pcs);
		*end = data;
	}
}

static void part_within(const struct hotspot_layout *layout, const void *nmethod, uint64_t address,
			enum hotspot_part part, uint64_t *begin, uint64_t *end)
{
	const uint64_t data = layout->flags & HOTSPOT_LAYOUT_CODE_POINTER
				      ? word_at(nmethod, layout->nmethod_scopes_data)
				      : address + int_at(nmethod, layout->nmethod_scopes_data);
	const uint64_t pcs = address + int_at(nmethod, layout->nmethod_scopes_pcs);

	if (part == HOTSPOT_PART_METADATA) {
		*begin = address + int_at(nmethod, layout->nmethod_metadata);
		*end = data;
	} else if (part == HOTSPOT_PART_SCOPES_DATA) {
		*begin = data;
		*end = pcs;
	} else {
		*begin = pcs;
		*end = address + int_at(nmethod, layout->nmethod_dependencies);
	}
}

bool hotspot_layout_part(const struct hotspot_layout *layout, const void *nmethod, uint64_t address,
			 enum hotspot_part part, uint64_t *begin, uint32_t *bytes)
{
	uint64_t end;

	if (part == HOTSPOT_PART_CODE) {
		*begin = layout->flags & HOTSPOT_LAYOUT_CODE_POINTER
				 ? word_at(nmethod, layout->blob_code)
				 : address + int_at(nmethod, layout->blob_code);
		end = address + int_at(nmethod, layout->nmethod_stub);
	} else if (layout->flags & HOTSPOT_LAYOUT_PARTS_APART) {
		part_apart(layout, nmethod, part, begin, &end);
	} else {
		part_within(layout, nmethod, address, part, begin, &end);
	}
	*bytes = (uint32_t)(end - *begin);
	return *begin && end >= *begin && end - *begin <= HOTSPOT_PART_BYTES_MAX;
}
