/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/frame_rule.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/hash_table.h"

enum {
	SEGMENTS_MAX = 64,
	ENTRY_BYTES_MAX = 8192, /* of one FDE or CIE; larger ones are unknown */
	STATES_MAX = 8,         /* DW_CFA_remember_state, nested */
	INSTRUCTIONS_MAX = 4096,
	REGISTER_FP = 6, /* System V ABI for x86-64, figure 3.36 */
	REGISTER_SP = 7,
	REGISTER_RETURN = 16,
};

/* Encodings of pointers (LSB 10.5). */
enum { ENCODED_OMIT = 0xff };
/* What every linker writes into .eh_frame_hdr: its tables are otherwise not understood. */
enum { HDR_POINTER = 0x1b, HDR_COUNT = 0x03, HDR_TABLE = 0x3b };

/* --- the file --- */

struct image {
	int fd;
	unsigned count;
	Elf64_Phdr segments[SEGMENTS_MAX];
};

static bool read_at(int fd, uint64_t offset, void *to, size_t length)
{
	ssize_t got;

	if (offset > INT64_MAX - length)
		return false;
	do
		got = pread(fd, to, length, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)length;
}

static bool image_read(int fd, struct image *image)
{
	Elf64_Ehdr header;

	image->fd = fd;
	if (fd < 0 || !read_at(fd, 0, &header, sizeof header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_machine != EM_X86_64 || header.e_phentsize != sizeof image->segments[0] ||
	    header.e_phnum > SEGMENTS_MAX)
		return false;
	image->count = header.e_phnum;
	return read_at(fd, header.e_phoff, image->segments,
		       image->count * sizeof image->segments[0]);
}

/* What is left of the segment's bytes at the address; 0: none has it. */
static uint64_t image_offset(const struct image *image, uint64_t address, uint64_t *offset)
{
	for (unsigned i = 0; i < image->count; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz) {
			*offset = segment->p_offset + (address - segment->p_vaddr);
			return segment->p_filesz - (address - segment->p_vaddr);
		}
	}
	return 0;
}

enum { TABLE_ROWS = 64 };

struct table_row {
	int32_t start, entry; /* first instruction and FDE, from the table's own address */
};

/* The FDE that the table's last entry at or below the address names. */
static bool find_entry(const struct image *image, uint64_t address, uint64_t *start,
		       uint64_t *entry)
{
	const Elf64_Phdr *table = NULL;
	struct {
		uint8_t version, pointer, count, table;
		int32_t eh_frame;
		uint32_t entries;
	} header;
	struct table_row rows[TABLE_ROWS];
	uint64_t low = 0, high, base;
	bool is_found = false;

	for (unsigned i = 0; i < image->count; i++)
		if (image->segments[i].p_type == PT_GNU_EH_FRAME)
			table = &image->segments[i];
	if (!table || table->p_filesz < sizeof header ||
	    !read_at(image->fd, table->p_offset, &header, sizeof header) || header.version != 1 ||
	    header.pointer != HDR_POINTER || header.count != HDR_COUNT ||
	    header.table != HDR_TABLE ||
	    header.entries > (table->p_filesz - sizeof header) / sizeof rows[0])
		return false;
	base = table->p_offset + sizeof header;
	for (high = header.entries; low < high;) { /* up to the first one behind the address */
		uint64_t middle = low + (high - low) / 2, count = 1, i = 0;

		if (high - low <= TABLE_ROWS) { /* the rest in one read */
			middle = low;
			count = high - low;
		}
		if (!read_at(image->fd, base + middle * sizeof rows[0], rows,
			     count * sizeof rows[0]))
			return false;
		while (i < count && table->p_vaddr + (uint64_t)(int64_t)rows[i].start <= address)
			i++;
		if (i) {
			*start = table->p_vaddr + (uint64_t)(int64_t)rows[i - 1].start;
			*entry = table->p_vaddr + (uint64_t)(int64_t)rows[i - 1].entry;
			is_found = true;
		}
		if (middle == low && count == high - low)
			break;
		if (i)
			low = middle + 1;
		else
			high = middle;
	}
	return is_found;
}

/* --- bytes --- */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t take(struct cursor *cursor, size_t length)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < length) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	memcpy(&value, cursor->at, length);
	cursor->at += length;
	return value;
}

static void skip(struct cursor *cursor, uint64_t length)
{
	if ((uint64_t)(cursor->end - cursor->at) < length) {
		cursor->bad = true;
		length = (uint64_t)(cursor->end - cursor->at);
	}
	cursor->at += length;
}

static uint64_t take_number(struct cursor *cursor)
{
	uint64_t value = 0;

	if (!varint_read(&cursor->at, cursor->end, &value)) {
		cursor->bad = true;
		cursor->at = cursor->end;
	}
	return value;
}

static int64_t take_signed(struct cursor *cursor)
{
	const uint8_t *before = cursor->at;
	uint64_t value = take_number(cursor);
	unsigned bits = 7 * (unsigned)(cursor->at - before);

	if (!cursor->bad && bits < 64 && value >> (bits - 1) & 1)
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

/* 0: of no fixed size, or nothing at all. */
static size_t encoded_size(uint8_t encoding)
{
	static const uint8_t sizes[16] = {
		[0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8};

	return encoding == ENCODED_OMIT ? 0 : sizes[encoding & 15];
}

/* --- CIE and FDE --- */

struct entry {
	uint8_t bytes[ENTRY_BYTES_MAX];
	uint64_t address; /* of its length field */
	struct cursor rest;
};

/* The entry at the address, rest behind the length. */
static bool entry_read(const struct image *image, uint64_t address, struct entry *entry)
{
	uint64_t offset, room = image_offset(image, address, &offset);
	uint32_t length;

	if (room <= sizeof length || !read_at(image->fd, offset, &length, sizeof length) ||
	    !length || length > sizeof entry->bytes || length > room - sizeof length ||
	    !read_at(image->fd, offset + sizeof length, entry->bytes, length))
		return false;
	entry->address = address;
	entry->rest = (struct cursor){.at = entry->bytes, .end = entry->bytes + length};
	return true;
}

struct common_part {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of addresses in FDEs */
	bool has_sizes;   /* FDEs say how long their own augmentation is */
	bool is_signal;
};

/* Leaves rest at the first instruction. */
static bool common_read(struct entry *entry, struct common_part *common)
{
	struct cursor *rest = &entry->rest, data;
	const char *letters;
	uint8_t version;
	uint64_t size;

	*common = (struct common_part){0};
	if (take(rest, 4) != 0)
		return false; /* that is an FDE */
	version = (uint8_t)take(rest, 1);
	letters = (const char *)rest->at;
	if ((version != 1 && version != 3) ||
	    !memchr(letters, '\0', (size_t)(rest->end - rest->at)))
		return false;
	skip(rest, strlen(letters) + 1);
	common->code_factor = take_number(rest);
	common->data_factor = take_signed(rest);
	if ((version == 1 ? take(rest, 1) : take_number(rest)) != REGISTER_RETURN)
		return false;
	if (!*letters)
		return !rest->bad;
	if (*letters != 'z')
		return false;
	common->has_sizes = true;
	size = take_number(rest);
	data = *rest;
	skip(rest, size);
	data.end = rest->at;
	for (letters++; *letters; letters++)
		switch (*letters) {
		case 'R':
			common->encoding = (uint8_t)take(&data, 1);
			break;
		case 'P':
			skip(&data, encoded_size((uint8_t)take(&data, 1)));
			break;
		case 'L':
			skip(&data, 1);
			break;
		case 'S':
			common->is_signal = true;
			break;
		default:
			return false;
		}
	return !rest->bad && !data.bad;
}

/* --- instructions --- */

struct state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool is_computed; /* the CFA is an expression's result */
	bool is_return_elsewhere;
	enum { FP_KEPT, FP_SAVED, FP_OTHER } fp;
	int64_t fp_offset; /* FP_SAVED: from the CFA */
};

struct machine {
	struct common_part common;
	struct state now, initial, stack[STATES_MAX];
	unsigned depth;
	uint64_t at, address; /* the row that is being made; the one wanted */
	bool is_unknown;
};

static void set_register(struct machine *machine, uint64_t number, int fp, int64_t offset)
{
	if (number == REGISTER_RETURN)
		machine->now.is_return_elsewhere = fp != FP_SAVED || offset != -8;
	if (number != REGISTER_FP)
		return;
	machine->now.fp = fp;
	machine->now.fp_offset = offset;
}

static void restore_register(struct machine *machine, uint64_t number)
{
	set_register(machine, number, machine->initial.fp, machine->initial.fp_offset);
}

static void set_cfa(struct machine *machine, uint64_t number, int64_t offset)
{
	machine->now.cfa_register = number;
	machine->now.cfa_offset = offset;
	machine->now.is_computed = false;
}

static void remember(struct machine *machine, bool back)
{
	if (back ? !machine->depth : machine->depth == STATES_MAX)
		machine->is_unknown = true;
	else if (back)
		machine->now = machine->stack[--machine->depth];
	else
		machine->stack[machine->depth++] = machine->now;
}

/* The ones about registers' values. False: it is none of them. */
static bool run_register(struct machine *machine, uint8_t code, struct cursor *rest)
{
	int64_t factor = machine->common.data_factor;
	uint64_t number = take_number(rest);

	switch (code) {
	case 0x05: /* offset_extended */
		set_register(machine, number, FP_SAVED, (int64_t)take_number(rest) * factor);
		return true;
	case 0x11: /* offset_extended_sf */
		set_register(machine, number, FP_SAVED, take_signed(rest) * factor);
		return true;
	case 0x06: /* restore_extended */
		restore_register(machine, number);
		return true;
	case 0x08: /* same_value */
		set_register(machine, number, FP_KEPT, 0);
		return true;
	case 0x07: /* undefined */
		set_register(machine, number, FP_OTHER, 0);
		return true;
	case 0x09: /* register */
	case 0x14: /* val_offset, _sf */
	case 0x15:
		take_number(rest);
		set_register(machine, number, FP_OTHER, 0);
		return true;
	case 0x10: /* expression, val_expression */
	case 0x16:
		skip(rest, take_number(rest));
		set_register(machine, number, FP_OTHER, 0);
		return true;
	}
	return false;
}

/* False: it is none of those about the CFA. */
static bool run_cfa(struct machine *machine, uint8_t code, struct cursor *rest)
{
	struct state *now = &machine->now;
	uint64_t number;

	switch (code) {
	case 0x0c: /* def_cfa */
		number = take_number(rest);
		set_cfa(machine, number, (int64_t)take_number(rest));
		return true;
	case 0x12: /* def_cfa_sf */
		number = take_number(rest);
		set_cfa(machine, number, take_signed(rest) * machine->common.data_factor);
		return true;
	case 0x0d: /* def_cfa_register */
		now->cfa_register = take_number(rest);
		return true;
	case 0x0e: /* def_cfa_offset */
		now->cfa_offset = (int64_t)take_number(rest);
		return true;
	case 0x13: /* def_cfa_offset_sf */
		now->cfa_offset = take_signed(rest) * machine->common.data_factor;
		return true;
	case 0x0f: /* def_cfa_expression */
		skip(rest, take_number(rest));
		now->is_computed = true;
		return true;
	case 0x0a: /* remember_state, restore_state */
	case 0x0b:
		remember(machine, code == 0x0b);
		return true;
	}
	return false;
}

static void run_one(struct machine *machine, struct cursor *rest)
{
	uint8_t code = (uint8_t)take(rest, 1), low = code & 0x3f;
	uint64_t step = machine->common.code_factor;

	switch (code & 0xc0) {
	case 0x40: /* advance_loc */
		machine->at += low * step;
		return;
	case 0x80: /* offset */
		set_register(machine, low, FP_SAVED,
			     (int64_t)take_number(rest) * machine->common.data_factor);
		return;
	case 0xc0: /* restore */
		restore_register(machine, low);
		return;
	}
	switch (code) {
	case 0x00: /* nop */
		return;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		machine->at += take(rest, (size_t)1 << (code - 2)) * step;
		return;
	case 0x2e: /* GNU_args_size */
		take_number(rest);
		return;
	}
	if (!run_cfa(machine, code, rest) && !run_register(machine, code, rest))
		machine->is_unknown = true;
}

/* Up to the row of the wanted address. */
static bool run(struct machine *machine, struct cursor rest)
{
	for (int i = 0; i < INSTRUCTIONS_MAX && rest.at < rest.end; i++) {
		struct state before = machine->now;

		run_one(machine, &rest);
		if (rest.bad || machine->is_unknown)
			return false;
		if (machine->at > machine->address) {
			machine->now = before; /* an advance changes nothing else */
			return true;
		}
	}
	return rest.at == rest.end;
}

/* --- the answer --- */

static struct frame_rule rule_of(const struct machine *machine)
{
	const struct state *state = &machine->now;
	struct frame_rule rule = {.kind = FRAME_RULE_OTHER};

	if (machine->common.is_signal)
		rule.kind = FRAME_RULE_SIGNAL;
	else if (state->is_computed || state->is_return_elsewhere)
		rule.kind = FRAME_RULE_UNKNOWN;
	else if (state->cfa_register == REGISTER_FP && state->cfa_offset == 16 &&
		 state->fp == FP_SAVED && state->fp_offset == -16)
		rule.kind = FRAME_RULE_FRAME_POINTER;
	else if (state->cfa_register == REGISTER_SP && state->cfa_offset >= 8 &&
		 state->cfa_offset <= UINT16_MAX && state->fp != FP_OTHER) {
		int64_t fp_offset = state->cfa_offset + state->fp_offset;

		rule.kind = FRAME_RULE_STACK;
		rule.return_offset = (uint16_t)(state->cfa_offset - 8);
		/* what was saved below the stack pointer has been taken back already */
		rule.keeps_fp = state->fp == FP_KEPT || fp_offset < 0;
		if (!rule.keeps_fp)
			rule.fp_offset = (uint16_t)fp_offset;
	}
	return rule;
}

struct frame_rule frame_rule_read(int fd, uint64_t address)
{
	const struct frame_rule unknown = {.kind = FRAME_RULE_UNKNOWN};
	struct machine machine = {.now.fp = FP_KEPT};
	struct entry fde, cie;
	uint64_t start, at, length;
	struct image image;
	size_t size;

	if (!image_read(fd, &image) || !find_entry(&image, address, &start, &at) ||
	    !entry_read(&image, at, &fde))
		return unknown;
	/* The distance back to the CIE counts from its own place. */
	at = fde.address + 4 - take(&fde.rest, 4);
	if (!entry_read(&image, at, &cie) || !common_read(&cie, &machine.common))
		return unknown;
	size = encoded_size(machine.common.encoding);
	skip(&fde.rest, size); /* the table told where it starts */
	length = take(&fde.rest, size);
	if (!size || fde.rest.bad || address - start >= length)
		return unknown;
	if (machine.common.has_sizes)
		skip(&fde.rest, take_number(&fde.rest));
	machine.at = start;
	machine.address = UINT64_MAX; /* all of the CIE's */
	if (!run(&machine, cie.rest))
		return unknown;
	machine.initial = machine.now;
	machine.at = start;
	machine.address = address;
	return run(&machine, fde.rest) ? rule_of(&machine) : unknown;
}

/* --- memory --- */

enum { PLACES = 2048 }; /* of 24 bytes; a later one takes the place of an earlier */

struct frame_rules {
	struct {
		uint64_t address;
		uint32_t file;
		struct frame_rule rule;
	} places[PLACES];
};

struct frame_rules *frame_rules_new(struct error *err)
{
	struct frame_rules *rules = calloc(1, sizeof *rules);

	if (!rules)
		error_set(err, ERROR_MEMORY, "no memory for frame rules");
	return rules;
}

struct frame_rule frame_rules_find(struct frame_rules *rules, uint32_t file, int fd,
				   uint64_t address)
{
	uint64_t at = hash_word(file, address) % PLACES;

	if (rules->places[at].file != file || rules->places[at].address != address) {
		if (fd < 0)
			return (struct frame_rule){.kind = FRAME_RULE_UNKNOWN};
		rules->places[at].file = file;
		rules->places[at].address = address;
		rules->places[at].rule = frame_rule_read(fd, address);
	}
	return rules->places[at].rule;
}

void frame_rules_free(struct frame_rules *rules)
{
	free(rules);
}
