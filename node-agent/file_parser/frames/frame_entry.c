/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/frame_entry.h"

#include <stdlib.h>

/* LSB 10.5: how the number is written, and what it counts from. */
enum {
	FORM_ABSOLUTE = 0x0,
	FORM_ULEB = 0x1,
	FORM_U2 = 0x2,
	FORM_U4 = 0x3,
	FORM_U8 = 0x4,
	FORM_SIGNED = 0x8,
	FORM_SLEB = 0x9,
	FORM_S2 = 0xa,
	FORM_S4 = 0xb,
	FORM_S8 = 0xc,
	FORM = 0x0f,
	BASE_NONE = 0x00,
	BASE_HERE = 0x10,
	BASE_ALIGNED = 0x50,
	BASE = 0xf0, /* with the bit for "the address of it" */
	ENCODING_OMITTED = 0xff,
};

void frame_commons_release(struct frame_commons *commons)
{
	free(commons->entries);
	*commons = (struct frame_commons){0};
}

/* False: of no known size. */
static bool read_form(struct frame_bytes *bytes, uint8_t form, uint64_t *value)
{
	switch (form) {
	case FORM_ULEB:
		*value = frame_number(bytes);
		return true;
	case FORM_SLEB:
		*value = (uint64_t)frame_number_signed(bytes);
		return true;
	case FORM_U2:
		*value = frame_fixed(bytes, 2);
		return true;
	case FORM_U4:
		*value = frame_fixed(bytes, 4);
		return true;
	case FORM_S2:
		*value = (uint64_t)frame_fixed_signed(bytes, 2);
		return true;
	case FORM_S4:
		*value = (uint64_t)frame_fixed_signed(bytes, 4);
		return true;
	case FORM_ABSOLUTE:
	case FORM_SIGNED:
	case FORM_U8:
	case FORM_S8:
		*value = frame_fixed(bytes, 8);
		return true;
	}
	return false;
}

bool frame_pointer_read(struct frame_bytes *bytes, uint8_t encoding, uint64_t *value)
{
	uint64_t here = frame_address(bytes);

	if ((encoding & BASE) != BASE_NONE && (encoding & BASE) != BASE_HERE)
		return false;
	if (!read_form(bytes, encoding & FORM, value) || bytes->bad)
		return false;
	if ((encoding & BASE) == BASE_HERE)
		*value += here;
	return true;
}

/* --- one entry's extent --- */

struct extent {
	struct frame_bytes rest; /* behind the identity */
	uint64_t next;
	uint64_t identity_at, identity; /* the CIE's mark, or the distance to the CIE */
	bool is_common;
};

/* Length and identity. FRAME_BAD with next set: too long for us, but the next one can be found. */
static enum frame_kind read_extent(struct frame_section *section, uint64_t at, struct extent *out)
{
	const uint8_t *bytes = frame_section_bytes(section, at, 4);
	uint64_t length, head = 4, word = 4;
	uint32_t short_length;

	out->next = at;
	if (at == section->size)
		return FRAME_END;
	if (!bytes)
		return FRAME_BAD;
	memcpy(&short_length, bytes, 4);
	length = short_length;
	if (short_length == UINT32_MAX) { /* the 64-bit format */
		bytes = frame_section_bytes(section, at, 12);
		if (!bytes)
			return FRAME_BAD;
		memcpy(&length, bytes + 4, 8);
		head = 12;
		/* .eh_frame's identity keeps its four bytes (LSB 10.6.1) */
		word = section->is_debug ? 8 : 4;
	}
	if (length > section->size - at - head)
		return FRAME_BAD;
	out->next = at + head + length;
	if (!length)
		return FRAME_END;
	bytes = frame_section_bytes(section, at, head + length);
	if (!bytes)
		return FRAME_BAD;
	out->rest = (struct frame_bytes){.at = bytes + head,
					 .end = bytes + head + length,
					 .end_address = section->address + out->next};
	out->identity_at = at + head;
	out->identity = frame_fixed(&out->rest, word);
	out->is_common = out->identity == (!section->is_debug ? 0
					   : word == 8        ? UINT64_MAX
							      : UINT32_MAX);
	if (out->rest.bad)
		return FRAME_BAD;
	return out->is_common ? FRAME_CIE : FRAME_FDE;
}

/* --- CIE --- */

static bool read_letters(struct frame_common *common, const char *letters, struct frame_bytes *data)
{
	uint64_t ignored;
	uint8_t encoding;

	for (; *letters; letters++)
		switch (*letters) {
		case 'R':
			common->encoding = (uint8_t)frame_fixed(data, 1);
			break;
		case 'P': /* of the personality routine: where it ends is all that counts */
			encoding = (uint8_t)frame_fixed(data, 1);
			if (encoding != ENCODING_OMITTED &&
			    ((encoding & BASE) == BASE_ALIGNED ||
			     !read_form(data, encoding & FORM, &ignored)))
				return false;
			break;
		case 'L':
			frame_fixed(data, 1);
			break;
		case 'S':
			common->is_signal = true;
			break;
		case 'B': /* arm64: signed with key B; memory tags */
		case 'G':
			break;
		default: /* unknown, and what follows it too; its length is known */
			return !data->bad;
		}
	return !data->bad;
}

static bool read_common(struct frame_common *common, struct frame_bytes rest, bool is_debug)
{
	const char *letters = (const char *)rest.at + 1;
	uint8_t version = (uint8_t)frame_fixed(&rest, 1);
	struct frame_bytes data;

	if ((version != 1 && version != 3 && version != 4) ||
	    !memchr(rest.at, '\0', frame_left(&rest)))
		return false;
	frame_part(&rest, strlen(letters) + 1);
	/* version 4: sizes of an address and of a segment selector */
	if (version == 4 && (frame_fixed(&rest, 1) != 8 || frame_fixed(&rest, 1) != 0))
		return false;
	common->code_factor = frame_number(&rest);
	common->data_factor = frame_number_signed(&rest);
	common->return_register = version == 1 ? frame_fixed(&rest, 1) : frame_number(&rest);
	if (*letters && *letters != 'z')
		return false;
	if (*letters) {
		common->has_sizes = true;
		data = frame_part(&rest, frame_number(&rest));
		if (!read_letters(common, letters + 1, &data))
			return false;
	}
	if (is_debug && common->encoding != FORM_ABSOLUTE)
		return false;
	common->instructions = rest;
	return !rest.bad;
}

/* NULL: want of memory, or not there. What is there and damaged is remembered as that. */
static const struct frame_common *find_common(struct frame_section *section,
					      struct frame_commons *commons, uint64_t at)
{
	struct frame_common *common;
	struct extent extent;

	for (unsigned i = 0; i < commons->count; i++)
		if (commons->entries[i].at == at)
			return &commons->entries[i];
	if (!commons->entries)
		commons->entries = calloc(FRAME_COMMONS, sizeof *commons->entries);
	if (!commons->entries || read_extent(section, at, &extent) != FRAME_CIE)
		return NULL;
	common = &commons->entries[commons->next];
	commons->next = (commons->next + 1) % FRAME_COMMONS;
	if (commons->count < FRAME_COMMONS)
		commons->count++;
	memset(common, 0, sizeof *common);
	common->at = at;
	if (frame_left(&extent.rest) > sizeof common->bytes)
		return common;
	common->bytes_length = (uint16_t)frame_left(&extent.rest);
	memcpy(common->bytes, extent.rest.at, common->bytes_length);
	extent.rest.at = common->bytes;
	extent.rest.end = common->bytes + common->bytes_length;
	common->is_good = read_common(common, extent.rest, section->is_debug);
	return common;
}

/* --- FDE --- */

static bool read_range(struct frame_entry *entry, struct frame_bytes *rest)
{
	const struct frame_common *common = entry->common;
	uint64_t length;

	if (!frame_pointer_read(rest, common->encoding, &entry->start) ||
	    !frame_pointer_read(rest, common->encoding & FORM, &length) ||
	    length > UINT64_MAX - entry->start)
		return false;
	entry->end = entry->start + length;
	if (common->has_sizes)
		frame_part(rest, frame_number(rest));
	entry->instructions = *rest;
	return !rest->bad;
}

enum frame_kind frame_entry_read(struct frame_section *section, struct frame_commons *commons,
				 uint64_t at, struct frame_entry *entry, uint64_t *next)
{
	struct extent extent;
	enum frame_kind kind = read_extent(section, at, &extent);
	uint64_t common_at;

	*next = extent.next;
	if (kind != FRAME_FDE)
		return kind;
	/* .eh_frame counts back from the distance itself, .debug_frame from its own start */
	common_at = section->is_debug ? extent.identity : extent.identity_at - extent.identity;
	entry->common = find_common(section, commons, common_at);
	/* The window may be elsewhere now. */
	if (!entry->common || !entry->common->is_good ||
	    read_extent(section, at, &extent) != FRAME_FDE || !read_range(entry, &extent.rest))
		return FRAME_BAD;
	return FRAME_FDE;
}
