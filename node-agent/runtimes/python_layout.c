/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_layout.h"

#include <stdio.h>
#include <string.h>

#define NONE PYTHON_LAYOUT_NONE

enum {
	OBJECT_SIZE = 16, /* ob_size of a PyVarObject with a head of 16 bytes */
	MEMBER_MAX = 4096,
};

/* What has not changed since 3.6. */
#define HEADS                                                                                      \
	.tstate_next = 8, .tstate_interp = 16, .unicode_length = 16, .unicode_state = 32,          \
	.unicode_kind_bit = 2, .bytes_size = OBJECT_SIZE, .bytes_data = 32,                        \
	.tuple_size = OBJECT_SIZE, .tuple_items = 24

/* ≤ 3.10: the frame is an object, and each has its own call of the loop. */
#define FRAME_OBJECTS                                                                              \
	.tstate_frame = 24, .tstate_native_thread_id = NONE, .cframe_frame = NONE,                 \
	.interp_next = 0, .interp_threads_head = 8, .frame_code = 32, .frame_previous = 24,        \
	.frame_entry = NONE, .entry_value = NONE, .code_qualname = NONE, .code_bytes = NONE,       \
	.unicode_ascii_data = 48, .unicode_compact_data = 72

#define CODE_3_6                                                                                   \
	.code_argcount = 16, .code_kwonly = 20, .code_flags = 32, .code_firstline = 36,            \
	.code_code = 40, .code_varnames = 64, .code_filename = 96, .code_name = 104,               \
	.code_lines = 112

/* With co_posonlyargcount. */
#define CODE_3_8                                                                                   \
	.code_argcount = 16, .code_kwonly = 24, .code_flags = 36, .code_firstline = 40,            \
	.code_code = 48, .code_varnames = 72, .code_filename = 104, .code_name = 112,              \
	.code_lines = 120

#define CODE_3_11                                                                                  \
	.code_varnames = 96, .code_filename = 112, .code_name = 120, .code_qualname = 128,         \
	.code_lines = 136, .code_code = NONE

static const struct python_layout layouts[] = {
	{ .version = 0x0306, HEADS, FRAME_OBJECTS, CODE_3_6,
	  .tstate_thread_id = 152, .frame_instr = 120, .frame_locals = 376 },
	{ .version = 0x0307, HEADS, FRAME_OBJECTS, CODE_3_6,
	  .runtime_interpreters_head = 24, .runtime_tstate_current = 1480,
	  .tstate_thread_id = 176, .frame_instr = 104, .frame_locals = 360 },
	{ .version = 0x0308, HEADS, FRAME_OBJECTS, CODE_3_8,
	  .runtime_interpreters_head = 32, .runtime_tstate_current = 1368,
	  .tstate_thread_id = 176, .frame_instr = 104, .frame_locals = 360 },
	{ .version = 0x0309, HEADS, FRAME_OBJECTS, CODE_3_8,
	  .runtime_interpreters_head = 32, .runtime_tstate_current = 568,
	  .tstate_thread_id = 176, .frame_instr = 104, .frame_locals = 360 },
	{ .version = 0x030a, HEADS, FRAME_OBJECTS, CODE_3_8,
	  .flags = PYTHON_INSTR_IS_UNITS, .lines = PYTHON_LINES_RANGES,
	  .runtime_interpreters_head = 32, .runtime_tstate_current = 568,
	  .tstate_thread_id = 176, .frame_instr = 96, .frame_locals = 352 },
	{ .version = 0x030b, HEADS, CODE_3_11,
	  .flags = PYTHON_INSTR_IS_POINTER, .lines = PYTHON_LINES_LOCATIONS,
	  .runtime_interpreters_head = 40, .runtime_tstate_current = 576,
	  .interp_next = 0, .interp_threads_head = 16,
	  .tstate_thread_id = 152, .tstate_native_thread_id = 160,
	  .tstate_frame = 56, .cframe_frame = 8,
	  .frame_code = 32, .frame_previous = 48, .frame_instr = 56, .frame_locals = 72,
	  .frame_entry = 68, .entry_value = 1, /* is_entry */
	  .code_argcount = 56, .code_kwonly = 64, .code_flags = 48, .code_firstline = 72,
	  .code_bytes = 184, .unicode_ascii_data = 48, .unicode_compact_data = 72 },
	{ .version = 0x030c, HEADS, CODE_3_11,
	  .flags = PYTHON_INSTR_IS_POINTER | PYTHON_ENTRY_IS_SHIM, .lines = PYTHON_LINES_LOCATIONS,
	  .runtime_interpreters_head = 40,
	  .interp_next = 0, .interp_threads_head = 72,
	  .tstate_thread_id = 136, .tstate_native_thread_id = 144,
	  .tstate_frame = 56, .cframe_frame = 0,
	  .frame_code = 0, .frame_previous = 8, .frame_instr = 56, .frame_locals = 72,
	  .frame_entry = 70, .entry_value = 3, /* FRAME_OWNED_BY_CSTACK */
	  .code_argcount = 52, .code_kwonly = 60, .code_flags = 48, .code_firstline = 68,
	  .code_bytes = 192, .unicode_ascii_data = 40, .unicode_compact_data = 56 },
};

bool python_layout_find(uint32_t version, struct python_layout *out)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version == version >> 16) {
			*out = layouts[i];
			out->version = version;
			return true;
		}
	}
	return false;
}

void python_layout_trace(struct python_layout *layout)
{
	enum { TRACED_BYTES = 16 };
	uint16_t *const of_objects[] = {
		&layout->code_argcount,	     &layout->code_kwonly,
		&layout->code_flags,	     &layout->code_firstline,
		&layout->code_filename,	     &layout->code_name,
		&layout->code_qualname,	     &layout->code_lines,
		&layout->code_varnames,	     &layout->code_bytes,
		&layout->code_code,	     &layout->unicode_length,
		&layout->unicode_state,	     &layout->unicode_ascii_data,
		&layout->unicode_compact_data, &layout->bytes_size,
		&layout->bytes_data,	     &layout->tuple_size,
		&layout->tuple_items,	     &layout->frame_code,
		&layout->frame_previous,     &layout->frame_instr,
		&layout->frame_locals, /* frames last: of 3.11 on they are no objects */
	};
	const size_t count = sizeof of_objects / sizeof *of_objects;

	for (size_t i = 0; i < (layout->frame_entry == NONE ? count : count - 4); i++)
		if (*of_objects[i] != NONE)
			*of_objects[i] += TRACED_BYTES;
}

/* The lowest byte: 0xa to 0xc are the levels before a release, which is 0xf, with a number each. */
void python_version_text(uint32_t version, char text[PYTHON_VERSION_TEXT])
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *level = levels[version >> 4 & 0xf];
	const int length = snprintf(text, PYTHON_VERSION_TEXT, "%u.%u.%u", version >> 24,
				    version >> 16 & 0xff, version >> 8 & 0xff);

	if (level)
		snprintf(text + length, PYTHON_VERSION_TEXT - (size_t)length, "%s%u", level,
			 version & 0xf);
}

/* --- _Py_DebugOffsets: "xdebugpy", then words in groups, each of which begins with the size of the
 * structure that it is of --- */

enum offsets_group {
	GROUP_RUNTIME,
	GROUP_INTERPRETER,
	GROUP_THREAD,
	GROUP_FRAME,
	GROUP_CODE,
	GROUP_OBJECT,
	GROUP_TYPE,
	GROUP_TUPLE,
	GROUP_LIST,
	GROUP_SET, /* 3.14 */
	GROUP_DICT,
	GROUP_FLOAT,
	GROUP_LONG,
	GROUP_BYTES,
	GROUP_UNICODE,
	GROUP_COUNT
};

enum { WORD_VERSION = 1, WORD_FREE_THREADED = 2, WORD_GROUPS = 3 };

static const struct offsets_shape {
	uint32_t from, until; /* versions; before its first candidate 3.14 was laid out otherwise */
	uint8_t thread_id;    /* its word in GROUP_THREAD; behind it the kernel's */
	uint8_t words[GROUP_COUNT];
} shapes[] = {
	{ 0x030d00c0, 0x030e0000, 5, { 3, 13, 9, 6, 10, 2, 4, 3, 3, 0, 3, 2, 3, 3, 4 } },
	{ 0x030e00c0, 0x030f0000, 5, { 3, 16, 9, 8, 11, 2, 4, 3, 3, 4, 3, 2, 3, 3, 4 } },
	{ 0x030f00f0, 0x03100000, 8, { 3, 16, 17, 8, 11, 2, 8, 3, 3, 4, 3, 2, 3, 3, 4 } },
};

/* Words of small structures that become members. */
#define MEMBER(name, group, word) { offsetof(struct python_layout, name), group, word }
static const struct offsets_member {
	uint8_t at, group, word;
} members[] = {
	MEMBER(tstate_next, GROUP_THREAD, 2),
	MEMBER(tstate_interp, GROUP_THREAD, 3),
	MEMBER(tstate_frame, GROUP_THREAD, 4),
	MEMBER(frame_previous, GROUP_FRAME, 1),
	MEMBER(frame_code, GROUP_FRAME, 2),
	MEMBER(frame_instr, GROUP_FRAME, 3),
	MEMBER(frame_locals, GROUP_FRAME, 4),
	MEMBER(frame_entry, GROUP_FRAME, 5),
	MEMBER(code_filename, GROUP_CODE, 1),
	MEMBER(code_name, GROUP_CODE, 2),
	MEMBER(code_qualname, GROUP_CODE, 3),
	MEMBER(code_lines, GROUP_CODE, 4),
	MEMBER(code_firstline, GROUP_CODE, 5),
	MEMBER(code_argcount, GROUP_CODE, 6),
	MEMBER(code_varnames, GROUP_CODE, 7),
	MEMBER(code_bytes, GROUP_CODE, 9),
	MEMBER(tuple_items, GROUP_TUPLE, 1),
	MEMBER(tuple_size, GROUP_TUPLE, 2),
	MEMBER(bytes_size, GROUP_BYTES, 1),
	MEMBER(bytes_data, GROUP_BYTES, 2),
	MEMBER(unicode_state, GROUP_UNICODE, 1),
	MEMBER(unicode_length, GROUP_UNICODE, 2),
};

static const struct offsets_shape *shape_find(uint32_t version)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (version >= shapes[i].from && version < shapes[i].until)
			return &shapes[i];
	}
	return NULL;
}

/* Each member lies inside its structure, which is not larger than a page. */
static bool take_member(struct python_layout *out, size_t at, const uint64_t *words, unsigned word)
{
	if (words[0] > MEMBER_MAX || words[word] >= words[0])
		return false;
	const uint16_t value = (uint16_t)words[word];
	memcpy((char *)out + at, &value, sizeof(value));
	return true;
}

static bool take_members(struct python_layout *out, const struct offsets_shape *shape,
			 const uint64_t *const *group)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!take_member(out, members[i].at, group[members[i].group], members[i].word))
			return false;
	return take_member(out, offsetof(struct python_layout, tstate_thread_id),
			   group[GROUP_THREAD], shape->thread_id) &&
	       take_member(out, offsetof(struct python_layout, tstate_native_thread_id),
			   group[GROUP_THREAD], shape->thread_id + 1);
}

/* What the description leaves out, from what it says. PyCodeObject has in all of them flags,
 * argcount, posonlyargcount, kwonlyargcount, stacksize and firstlineno, one int after the other. */
static bool take_rest(struct python_layout *out, const uint64_t *const *group)
{
	const uint64_t ascii = group[GROUP_UNICODE][3];

	if (out->code_argcount < 4 || out->code_firstline != out->code_argcount + 16)
		return false;
	out->code_flags = out->code_argcount - 4;
	out->code_kwonly = out->code_argcount + 8;
	/* PyCompactUnicodeObject adds utf8_length and utf8. */
	if (ascii + 16 > group[GROUP_UNICODE][0] || out->unicode_state + 4u > ascii ||
	    out->unicode_length + 8u > ascii || out->bytes_size + 8u > out->bytes_data)
		return false;
	out->unicode_ascii_data = (uint16_t)ascii;
	out->unicode_compact_data = (uint16_t)ascii + 16;
	return out->bytes_size == group[GROUP_OBJECT][0] && out->tuple_size == out->bytes_size;
}

bool python_layout_decode(const void *bytes, size_t size, struct python_layout *out)
{
	uint64_t words[PYTHON_DEBUG_OFFSETS_BYTES / 8];
	const uint64_t *group[GROUP_COUNT];
	const size_t count = size < sizeof(words) ? size / 8 : sizeof(words) / 8;
	size_t at = WORD_GROUPS;

	memcpy(words, bytes, count * 8);
	if (count < WORD_GROUPS || memcmp(words, "xdebugpy", 8) != 0 || words[WORD_VERSION] > UINT32_MAX)
		return false;
	const struct offsets_shape *shape = shape_find((uint32_t)words[WORD_VERSION]);
	if (!shape)
		return false;
	for (int i = 0; i < GROUP_COUNT; at += shape->words[i++])
		group[i] = &words[at];
	if (at > count)
		return false;
	const uint64_t *runtime = group[GROUP_RUNTIME], *interpreter = group[GROUP_INTERPRETER];
	if (runtime[0] > UINT32_MAX || runtime[2] >= runtime[0] || interpreter[0] > UINT32_MAX ||
	    interpreter[2] >= interpreter[0] || interpreter[3] >= interpreter[0])
		return false;
	const bool is_free_threaded = words[WORD_FREE_THREADED] != 0;
	const bool is_3_14 = words[WORD_VERSION] >= 0x030e0000;
	*out = (struct python_layout){
		.version = (uint32_t)words[WORD_VERSION],
		.flags = PYTHON_INSTR_IS_POINTER | PYTHON_ENTRY_IS_SHIM |
			 (is_free_threaded && is_3_14 ? PYTHON_CODE_IS_COPIED : 0),
		.lines = PYTHON_LINES_LOCATIONS,
		.runtime_interpreters_head = (uint32_t)runtime[2],
		.interp_next = (uint32_t)interpreter[2],
		.interp_threads_head = (uint32_t)interpreter[3],
		.cframe_frame = NONE,
		.entry_value = 3, /* 3.13 FRAME_OWNED_BY_CSTACK, 3.14 …_BY_INTERPRETER */
		.code_code = NONE,
		.unicode_kind_bit = is_free_threaded && is_3_14 ? 8 : 2, /* behind `interned` */
	};
	return take_members(out, shape, group) && take_rest(out, group);
}
