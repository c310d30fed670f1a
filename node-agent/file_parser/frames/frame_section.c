/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/frame_section.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/gzip.h"

enum {
	WINDOW_BYTES = 16 << 10,
	DEFLATED_BYTES_MAX = 16 << 20,
	INFLATED_BYTES_MAX = 32 << 20,
};

/* System V ABI, chapter 4, "Section Compression". */
static bool inflate_section(struct frame_section *section, enum row_failure *failure)
{
	struct buffer inflated;
	Elf64_Chdr header;
	uint8_t *deflated = NULL;
	uint64_t length;

	*failure = ROW_FAILURE_LIMIT;
	buffer_init(&inflated, INFLATED_BYTES_MAX);
	if (section->size < sizeof header ||
	    !code_file_read(section->file, section->offset, &header, sizeof header)) {
		*failure = ROW_FAILURE_DAMAGED;
		return false;
	}
	length = section->size - sizeof header;
	if (header.ch_type != ELFCOMPRESS_ZLIB || length > DEFLATED_BYTES_MAX ||
	    header.ch_size > INFLATED_BYTES_MAX)
		return false; /* zstd is one format more than we take */
	deflated = malloc(length ? length : 1);
	if (deflated) {
		*failure = ROW_FAILURE_DAMAGED;
		if (code_file_read(section->file, section->offset + sizeof header, deflated,
				   length) &&
		    zlib_inflate(deflated, length, &inflated, NULL))
			section->content = buffer_take(&inflated, &length);
	}
	free(deflated);
	buffer_release(&inflated);
	section->size = length;
	return section->content != NULL;
}

bool frame_section_open(struct frame_section *section, const struct code_file *file,
			const char *name, enum row_failure *failure)
{
	struct code_section found;

	memset(section, 0, sizeof *section);
	if (!code_file_section(file, name, &found) || !found.size)
		return false;
	section->file = file;
	section->address = found.address;
	section->offset = found.offset;
	section->size = found.size;
	return !(found.flags & SHF_COMPRESSED) || inflate_section(section, failure);
}

bool frame_section_open_at(struct frame_section *section, const struct code_file *file,
			   uint64_t address)
{
	memset(section, 0, sizeof *section);
	section->file = file;
	section->address = address;
	section->size = code_file_offset(file, address, &section->offset);
	section->ends_at_zero = true;
	return section->size != 0;
}

void frame_section_release(struct frame_section *section)
{
	free(section->content);
	free(section->window);
	section->content = section->window = NULL;
	section->window_room = section->window_length = 0;
}

static bool fill_window(struct frame_section *section, uint64_t at, size_t length)
{
	uint64_t room = length > WINDOW_BYTES ? length : WINDOW_BYTES;

	section->window_length = 0;
	if (room > section->size - at)
		room = section->size - at;
	if (!ARRAY_RESERVE(section->window, room, section->window_room))
		return false;
	if (!code_file_read(section->file, section->offset + at, section->window, room)) {
		section->is_unreadable = true;
		return false;
	}
	section->window_at = at;
	section->window_length = room;
	section->bytes_read += room;
	return true;
}

const uint8_t *frame_section_bytes(struct frame_section *section, uint64_t at, uint64_t length)
{
	if (at > section->size || length > section->size - at || length > FRAME_ENTRY_BYTES_MAX)
		return NULL;
	if (section->content)
		return section->content + at;
	if ((at < section->window_at || at - section->window_at > section->window_length ||
	     length > section->window_length - (at - section->window_at)) &&
	    !fill_window(section, at, length))
		return NULL;
	return section->window + (at - section->window_at);
}

size_t frame_section_memory(const struct frame_section *section)
{
	return section->window_room + (section->content ? section->size : 0);
}
