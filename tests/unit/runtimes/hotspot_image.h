/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up JVM's memory: one method, a.Main$Inner.run of Main.java, with 12 bytes of bytecode on
 * lines 10 (from 0 on) and 11 (from 5 on), and a compiled method that has it inlined into itself
 * once. Laid out as 8's, 17's or 25's are, but for their numbers. */
#ifndef TESTS_UNIT_RUNTIMES_HOTSPOT_IMAGE_H
#define TESTS_UNIT_RUNTIMES_HOTSPOT_IMAGE_H

#include <string.h>

#include "bpf/hotspot_frames.h"
#include "node-agent/runtimes/hotspot_layout.h"

enum {
	BASE = 0x10000,
	METHOD = 0x100,
	CONST = 0x200,
	POOL = 0x300,
	KLASS = 0x400,
	CLASS_NAME = 0x500,
	NAME = 0x600,
	SOURCE = 0x700,
	NMETHOD = 0x800,
	CODE = 0x900, /* of 64 bytes, and 32 of stubs */
	DATA = 0xa00, /* metadata, scopes, PcDescs */
	MEMORY = 0x1000,
	CODE_SIZE = 12,
};

struct image {
	uint8_t bytes[MEMORY];
	unsigned reads, change_at; /* the read before which another method is there */
};

static inline void put(struct image *image, size_t at, uint64_t value, size_t bytes)
{
	memcpy(image->bytes + at, &value, bytes);
}

static inline bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	struct image *image = context;

	if (++image->reads == image->change_at)
		put(image, CONST + 40, 77, 2);
	if (address < BASE || address > BASE + MEMORY || bytes > BASE + MEMORY - address)
		return false;
	memcpy(to, image->bytes + (address - BASE), bytes);
	return true;
}

static inline struct hotspot_layout layout_of(unsigned version)
{
	return (struct hotspot_layout){
		.version = (uint16_t)version,
		.flags = version == 8 ? 0
			 : version == 17
				 ? HOTSPOT_LAYOUT_LENGTH_HIGH | HOTSPOT_LAYOUT_SOURCE_IN_POOL |
					   HOTSPOT_LAYOUT_CODE_POINTER
				 : HOTSPOT_LAYOUT_LENGTH_HIGH | HOTSPOT_LAYOUT_SOURCE_IN_POOL |
					   HOTSPOT_LAYOUT_WITHOUT_ZERO | HOTSPOT_LAYOUT_PARTS_APART,
		.method_const = 8,
		.const_constants = 8,
		.const_size = 24,
		.const_flags = 28,
		.const_code_size = 38,
		.const_name = 40,
		.const_signature = 42,
		.const_bytes = 48,
		.pool_length = 40,
		.pool_holder = 24,
		.pool_source = 48,
		.pool_bytes = 64,
		.klass_name = 16,
		.klass_source = 64,
		.symbol_length = 0,
		.symbol_body = version == 8 ? 8 : 6,
		.blob_name = 0,
		.blob_size = 8,
		.blob_code = 16,
		.nmethod_bytes = 0x80,
		.nmethod_method = 24,
		.nmethod_compile_id = 32,
		.nmethod_comp_level = 36,
		.nmethod_stub = 40,
		.nmethod_metadata = 44,
		.nmethod_scopes_data = 48,
		.nmethod_scopes_pcs = 56,
		.nmethod_dependencies = 60,
		.nmethod_immutable = 64,
		.nmethod_immutable_size = 72,
		.nmethod_mutable = 80,
		.nmethod_mutable_size = 88,
		.nmethod_relocation_size = 92,
		.pc_offset = 0,
		.pc_scope = 4,
		.pc_bytes = 16,
	};
}

static inline void put_symbol(struct image *image, const struct hotspot_layout *layout, size_t at,
			      const char *text)
{
	const size_t length = strlen(text);

	if (layout->flags & HOTSPOT_LAYOUT_LENGTH_HIGH)
		put(image, at, 1 | length << 16, 4);
	else
		put(image, at, length, 2);
	memcpy(image->bytes + at + layout->symbol_body, text, length);
}

static inline void image_fill(struct image *image, const struct hotspot_layout *layout)
{
	const uint8_t more = !!(layout->flags & HOTSPOT_LAYOUT_WITHOUT_ZERO);
	const uint8_t lines[] = {0xff, more, 20 + more, 5 << 3 | 1, 0};

	*image = (struct image){.reads = 0};
	put(image, METHOD + layout->method_const, BASE + CONST, 8);
	put(image, CONST + layout->const_constants, BASE + POOL, 8);
	put(image, CONST + layout->const_size, 16, 4);
	put(image, CONST + layout->const_flags, 1, 2);
	put(image, CONST + layout->const_code_size, CODE_SIZE, 2);
	put(image, CONST + layout->const_name, 3, 2);
	put(image, CONST + layout->const_signature, 4, 2);
	memcpy(image->bytes + CONST + layout->const_bytes + CODE_SIZE, lines, sizeof lines);
	put(image, POOL + layout->pool_length, 6, 4);
	put(image, POOL + layout->pool_holder, BASE + KLASS, 8);
	put(image, layout->version == 8 ? KLASS + 64 : POOL + 48, 5, 2);
	put(image, POOL + layout->pool_bytes + 3 * 8, BASE + NAME, 8);
	put(image, POOL + layout->pool_bytes + 5 * 8, (BASE + SOURCE) | 1, 8);
	put(image, KLASS + layout->klass_name, BASE + CLASS_NAME, 8);
	put_symbol(image, layout, CLASS_NAME, "a/Main$Inner");
	put_symbol(image, layout, NAME, "run");
	put_symbol(image, layout, SOURCE, "Main.java");
}

enum { COMPILE_ID = 0x12345, LEVEL = 4, OUTER_AT = 1, INLINED_AT = 4 };

/* Two scopes: bci 6, and in it bci 1. PcDescs: up to byte 16 of the code the outer one, up to 32
 * the inner one, up to 48 none. */
static inline void image_compile(struct image *image, const struct hotspot_layout *layout)
{
	const bool is_apart = layout->flags & HOTSPOT_LAYOUT_PARTS_APART;
	const uint8_t more = !!(layout->flags & HOTSPOT_LAYOUT_WITHOUT_ZERO);
	const int32_t pc_descs[][4] = {
		{-1, 0}, {16, OUTER_AT}, {32, INLINED_AT}, {48, 0}, {1000000, 0}};
	const uint8_t data[] = {0xff, more, 1 + more, 7 + more, 1 + more, 2 + more, 2 + more};
	const uint64_t metadata = DATA, pcs = DATA + 32;
	const uint64_t scopes = is_apart ? pcs + sizeof pc_descs : DATA + 16;
	const uint64_t from = is_apart ? pcs : NMETHOD;

	put(image, NMETHOD + layout->blob_size, MEMORY - NMETHOD, 4);
	put(image, NMETHOD + layout->blob_code,
	    layout->flags & HOTSPOT_LAYOUT_CODE_POINTER ? BASE + CODE : CODE - NMETHOD, 8);
	put(image, NMETHOD + layout->nmethod_method, BASE + METHOD, 8);
	put(image, NMETHOD + layout->nmethod_compile_id, COMPILE_ID, 4);
	put(image, NMETHOD + layout->nmethod_comp_level, LEVEL, 1);
	put(image, NMETHOD + layout->nmethod_stub, CODE + 64 - NMETHOD, 4);
	put(image, NMETHOD + layout->nmethod_metadata, metadata - NMETHOD, 4);
	put(image, NMETHOD + layout->nmethod_scopes_data, scopes - from, 4);
	if (layout->flags & HOTSPOT_LAYOUT_CODE_POINTER)
		put(image, NMETHOD + layout->nmethod_scopes_data, BASE + scopes, 8);
	put(image, NMETHOD + layout->nmethod_scopes_pcs, pcs - from, 4);
	put(image, NMETHOD + layout->nmethod_dependencies, pcs + sizeof pc_descs - from, 4);
	put(image, NMETHOD + layout->nmethod_immutable, BASE + pcs, 8);
	put(image, NMETHOD + layout->nmethod_immutable_size, sizeof pc_descs + sizeof data, 4);
	put(image, NMETHOD + layout->nmethod_mutable, BASE + metadata - 8, 8);
	put(image, NMETHOD + layout->nmethod_mutable_size, 8 + 16, 4);
	put(image, NMETHOD + layout->nmethod_relocation_size, 8, 4);
	put(image, metadata, BASE + METHOD, 8);
	put(image, metadata + 8, BASE + METHOD, 8);
	memcpy(image->bytes + scopes, data, sizeof data);
	memcpy(image->bytes + pcs, pc_descs, sizeof pc_descs);
}

/* A stub, whose name is that of the method's. */
enum { STUB = 0xb80, STUB_NAME = 0xbc0 };

static inline void image_stub(struct image *image, const struct hotspot_layout *layout)
{
	put(image, STUB + layout->blob_name, BASE + STUB_NAME, 8);
	memcpy(image->bytes + STUB_NAME, "a stub", 7);
}

#endif
