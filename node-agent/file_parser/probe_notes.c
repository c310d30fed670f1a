/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/probe_notes.h"

#include <stdlib.h>
#include <string.h>

enum {
	NOTES_BYTES_MAX = 256 << 10, /* libc has 3 KiB of them */
	NOTE_PROBE = 3,
	ADDRESSES = 3,
};

static const char owner[] = "stapsdt";

static size_t aligned(size_t length)
{
	return (length + 3) & ~(size_t)3;
}

/* Of the string that begins at *at; NULL: it does not end. */
static const char *string_next(const uint8_t *bytes, size_t length, size_t *at)
{
	const char *text = (const char *)bytes + *at;
	size_t size = strnlen(text, length - *at);

	if (size == length - *at)
		return NULL;
	*at += size + 1;
	return text;
}

static bool description_read(const uint8_t *bytes, size_t length, struct probe_note *note)
{
	uint64_t addresses[ADDRESSES];
	size_t at = sizeof addresses;

	if (length < at)
		return false;
	memcpy(addresses, bytes, at);
	note->location = addresses[0];
	note->base = addresses[1];
	note->semaphore = addresses[2];
	note->provider = string_next(bytes, length, &at);
	note->name = note->provider ? string_next(bytes, length, &at) : NULL;
	note->arguments = note->name ? string_next(bytes, length, &at) : NULL;
	return note->arguments;
}

bool probe_note_next(const uint8_t *bytes, size_t length, size_t *at, struct probe_note *note)
{
	Elf64_Nhdr header;

	while (*at <= length && length - *at >= sizeof header) {
		const uint8_t *name = bytes + *at + sizeof header;
		size_t left = length - *at - sizeof header, name_bytes, description_bytes;

		memcpy(&header, bytes + *at, sizeof header);
		name_bytes = aligned(header.n_namesz);
		description_bytes = aligned(header.n_descsz);
		if (name_bytes > left || description_bytes > left - name_bytes)
			return false;
		*at += sizeof header + name_bytes + description_bytes;
		if (header.n_type == NOTE_PROBE && header.n_namesz == sizeof owner &&
		    !memcmp(name, owner, sizeof owner) &&
		    description_read(name + name_bytes, header.n_descsz, note))
			return true;
	}
	return false;
}

/* --- the three that are wanted; older libraries have no batch --- */

static const struct wanted {
	const char *name;
	const char *arguments[2]; /* x86-64, arm64 */
	enum memory_place_kind place;
} wanted[] = {
	{"alloc", {"8@%rdi 8@%rsi 8@%rdx", "8@x0 8@x1 8@x2"}, MEMORY_LIBRARY_TAKEN},
	{"free", {"8@%rdi", "8@x0"}, MEMORY_LIBRARY_GIVEN},
	{"batch", {"8@%rdi 8@%rsi 8@%rdx", "8@x0 8@x1 8@x2"}, MEMORY_LIBRARY_BATCH},
};

enum { WANTED = sizeof wanted / sizeof *wanted };

/* The offset in the file; 0: it is not in there. */
static uint64_t offset_of(const struct code_file *file, uint64_t address)
{
	uint64_t offset;

	return code_file_offset(file, address, &offset) >= sizeof(uint16_t) ? offset : 0;
}

/* moved: by how much prelinking has moved what the note says. */
static bool place_of(const struct code_file *file, const struct probe_note *note, uint64_t moved,
		     struct memory_place *place)
{
	uint64_t semaphore = note->semaphore ? offset_of(file, note->semaphore + moved) : 0;

	place->at = offset_of(file, note->location + moved);
	place->semaphore = (uint32_t)semaphore;
	return place->at && semaphore <= UINT32_MAX && !note->semaphore == !semaphore;
}

static void add_notes(const struct code_file *file, const uint8_t *bytes, size_t length,
		      struct memory_places *places)
{
	const unsigned machine = file->machine == EM_AARCH64;
	struct memory_place found[WANTED] = {{0}};
	struct code_section base = {0};
	struct probe_note note;
	size_t at = 0;

	code_file_section(file, ".stapsdt.base", &base);
	while (probe_note_next(bytes, length, &at, &note)) {
		const uint64_t moved = base.address ? base.address - note.base : 0;

		for (int i = 0; i < WANTED; i++)
			if (!strcmp(note.provider, "otel_memory") &&
			    !strcmp(note.name, wanted[i].name) &&
			    !strcmp(note.arguments, wanted[i].arguments[machine]) &&
			    place_of(file, &note, moved, &found[i]))
				found[i].kind = wanted[i].place;
	}
	if (!found[0].kind || !found[1].kind || places->count > MEMORY_PLACES_MAX - WANTED)
		return;
	for (int i = 0; i < WANTED; i++)
		if (found[i].kind)
			places->items[places->count++] = found[i];
}

void probe_notes_places(const struct code_file *file, struct memory_places *places)
{
	struct code_section section;
	uint8_t *bytes;

	if (!code_file_section(file, ".note.stapsdt", &section) || !section.size ||
	    section.size > NOTES_BYTES_MAX || section.flags & SHF_COMPRESSED)
		return;
	bytes = malloc((size_t)section.size);
	if (bytes && code_file_read(file, section.offset, bytes, (size_t)section.size))
		add_notes(file, bytes, (size_t)section.size, places);
	free(bytes);
}
