/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/jit/jitdump.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/file_parser/jit/jit_name.h"

enum {
	MAGIC = 0x4a695444, /* "JiTD" as a number of this machine's */
	VERSION = 1,
	HEADER_MAX = 4096,
	TIME_IS_CYCLES = 1, /* a flag: of no clock that we have */
	RECORDS_MAX = 4096, /* at a time */
	NAME_ROOM = 4096,
	DEBUG_ROOM = 64 << 10, /* of lines of one function; what is more is left out */
	ENTRY_TEXT = 2 * (JIT_NAME_MAX + 1),
	/* V8 counts lines' addresses from where an ELF file's code would begin. */
	V8_SHIFT = 64,
};

enum record { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG, RECORD_CLOSE, RECORD_UNWINDING };

struct file_header {
	uint32_t magic, version, total_size, elf_machine, padding, pid;
	uint64_t timestamp, flags;
};

struct prefix {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct load {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
	char name[NAME_ROOM];
};

struct move {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, old_address, address, size, index;
};

struct debug {
	struct prefix prefix;
	uint64_t address, count;
	uint8_t entries[DEBUG_ROOM];
};

struct debug_entry { /* then a name with a 0 behind */
	uint64_t address;
	int32_t line, discriminator;
};

struct dump {
	int fd;
	bool has_time;
	struct jit_chunk *chunk;
	/* Lines that were told of and wait for their function. */
	uint64_t lines_of; /* its address; 0: none wait */
	uint32_t first_line;
	union {
		struct load load;
		struct move move;
		struct debug debug;
	} record;
};

static struct dump the_dump; /* 64 KiB */

static size_t read_at(int fd, uint64_t offset, void *to, uint64_t bytes)
{
	ssize_t got = offset <= INT64_MAX ? pread(fd, to, bytes, (off_t)offset) : -1;

	return got > 0 ? (size_t)got : 0;
}

static bool read_header(struct dump *dump, uint64_t *end)
{
	struct file_header header;

	if (read_at(dump->fd, 0, &header, sizeof header) != sizeof header ||
	    header.magic != MAGIC || header.version != VERSION ||
	    header.total_size < sizeof header || header.total_size > HEADER_MAX)
		return false;
	dump->has_time = !(header.flags & TIME_IS_CYCLES);
	*end = header.total_size;
	return true;
}

/* --- lines --- */

/* Most lines of a function are of one file. There is always room left for the function itself. */
static uint32_t put_file(struct jit_chunk *chunk, uint32_t before, const char *name,
			 uint64_t length)
{
	const uint32_t text_bytes = chunk->head.text_bytes;
	uint32_t file;

	if (JIT_TEXT_MAX - text_bytes < 2 * ENTRY_TEXT)
		return 0;
	file = jit_chunk_text(chunk, name, length);
	if (file && length <= JIT_NAME_MAX && strcmp(chunk->text + file, name) != 0) {
		chunk->head.text_bytes = text_bytes; /* V8 has names that are none */
		return 0;
	}
	if (!before || !file || strcmp(chunk->text + before, chunk->text + file) != 0)
		return file;
	chunk->head.text_bytes = text_bytes;
	return before;
}

/* The name that an entry has, "\xff" being the one before. NULL: it is cut off. */
static const uint8_t *entry_name(const uint8_t *at, const uint8_t *end, struct jit_chunk *chunk,
				 uint32_t *file)
{
	const uint8_t *zero = memchr(at, '\0', (size_t)(end - at));

	if (!zero)
		return NULL;
	if (zero != at + 1 || *at != 0xff)
		*file = put_file(chunk, *file, (const char *)at, (uint64_t)(zero - at));
	return zero + 1;
}

static bool put_line(struct jit_chunk *chunk, uint32_t first, const struct jit_line *line)
{
	struct jit_head *head = &chunk->head;
	struct jit_line *last = head->line_count > first ? &chunk->lines[head->line_count - 1]
							 : NULL;

	if (last && line->offset < last->offset)
		return true; /* told out of order: nobody would find it */
	if (last && line->offset == last->offset) {
		*last = *line;
		return true;
	}
	if (head->line_count == JIT_LINES_MAX)
		return false;
	chunk->lines[head->line_count++] = *line;
	return true;
}

static void take_lines(struct dump *dump, size_t got)
{
	const struct debug *debug = &dump->record.debug;
	const uint8_t *at = debug->entries, *end = (const uint8_t *)debug + got;
	struct jit_chunk *chunk = dump->chunk;
	struct debug_entry entry;
	uint32_t file = 0;
	bool ok = true;

	dump->lines_of = debug->address;
	dump->first_line = chunk->head.line_count;
	for (uint64_t i = 0; ok && at && i < debug->count; i++) {
		ok = end >= at && (size_t)(end - at) > sizeof entry;
		if (!ok)
			break;
		memcpy(&entry, at, sizeof entry);
		at = entry_name(at + sizeof entry, end, chunk, &file);
		if (at && entry.line > 0 && entry.address - debug->address < JIT_CODE_MAX)
			ok = put_line(chunk, dump->first_line,
				      &(struct jit_line){(uint32_t)(entry.address - debug->address),
							 (uint32_t)entry.line, file});
	}
	chunk->head.refused += !ok || !at;
}

static void give_lines(struct dump *dump, struct jit_entry *entry)
{
	struct jit_chunk *chunk = dump->chunk;

	if (dump->lines_of != entry->start)
		return;
	entry->first_line = dump->first_line;
	entry->line_count = chunk->head.line_count - dump->first_line;
	for (uint32_t i = 0; entry->language == JIT_V8 && i < entry->line_count; i++) {
		struct jit_line *line = &chunk->lines[entry->first_line + i];

		line->offset -= line->offset < V8_SHIFT ? line->offset : V8_SHIFT;
	}
	if (entry->line_count && !entry->file)
		entry->file = chunk->lines[entry->first_line].file;
}

/* --- records --- */

static bool take_load(struct dump *dump, size_t got)
{
	const struct load *load = &dump->record.load;
	const size_t room = got - offsetof(struct load, name);
	struct jit_entry *entry = jit_chunk_add(dump->chunk, load->address, load->size);

	if (!entry)
		return false;
	if (dump->has_time)
		entry->time_ns = load->prefix.timestamp;
	if (jit_name_set(dump->chunk, entry, load->name, strnlen(load->name, room))) {
		give_lines(dump, entry);
		return true;
	}
	dump->chunk->head.count--;
	return false;
}

static bool take_move(struct dump *dump)
{
	const struct move *move = &dump->record.move;
	struct jit_entry *entry = move->old_address
					  ? jit_chunk_add(dump->chunk, move->address, move->size)
					  : NULL;

	if (!entry)
		return false;
	entry->old_start = move->old_address;
	if (dump->has_time)
		entry->time_ns = move->prefix.timestamp;
	return true;
}

/* False: it is of no use, or has no room. */
static bool take_record(struct dump *dump, uint64_t offset)
{
	const struct prefix *prefix = &dump->record.load.prefix;
	size_t most = prefix->total_size < sizeof dump->record ? prefix->total_size
							       : sizeof dump->record;
	const uint32_t id = prefix->id;

	if (id == RECORD_LOAD && most > sizeof(struct load))
		most = sizeof(struct load);
	if (id != RECORD_LOAD && id != RECORD_MOVE && id != RECORD_DEBUG)
		return true;
	if (read_at(dump->fd, offset, &dump->record, most) != most)
		return false;
	if (id == RECORD_DEBUG && most > offsetof(struct debug, entries)) {
		take_lines(dump, most);
		return true;
	}
	if (id == RECORD_LOAD && most > offsetof(struct load, name))
		return take_load(dump, most);
	return id == RECORD_MOVE && most >= sizeof(struct move) && take_move(dump);
}

static bool has_room(const struct jit_head *head)
{
	return head->count < JIT_ENTRIES_MAX && JIT_TEXT_MAX - head->text_bytes > ENTRY_TEXT &&
	       (!head->count || head->line_count < JIT_LINES_MAX / 2);
}

static bool read_prefix(struct dump *dump, uint64_t offset, uint64_t limit)
{
	struct prefix *prefix = &dump->record.load.prefix;

	return limit > offset && limit - offset >= sizeof *prefix &&
	       read_at(dump->fd, offset, prefix, sizeof *prefix) == sizeof *prefix;
}

void jitdump_read(int fd, uint64_t offset, uint64_t limit, struct jit_chunk *chunk)
{
	struct dump *dump = &the_dump;
	const struct prefix *prefix = &dump->record.load.prefix;
	uint64_t begin;

	*dump = (struct dump){.fd = fd, .chunk = chunk};
	if (!read_header(dump, &begin)) {
		chunk->head.is_wrong = 1;
		return;
	}
	if (offset < begin)
		offset = begin;
	chunk->head.next = offset;
	for (int i = 0; i < RECORDS_MAX && (dump->lines_of || has_room(&chunk->head)); i++) {
		uint32_t id, size;

		if (!read_prefix(dump, offset, limit))
			break;
		id = prefix->id;
		size = prefix->total_size;
		chunk->head.is_wrong = size < sizeof *prefix;
		if (chunk->head.is_wrong || size > limit - offset)
			break;
		chunk->head.refused += !take_record(dump, offset);
		if (id == RECORD_LOAD || id == RECORD_MOVE || id == RECORD_CLOSE)
			dump->lines_of = 0;
		/* Lines and their function have to be of the same chunk. */
		if (id == RECORD_DEBUG || !dump->lines_of)
			chunk->head.next = dump->lines_of ? offset : offset + size;
		offset += size;
	}
}
