/* SPDX-License-Identifier: Apache-2.0 */
/* The stubs through which calls of other files' functions go. They have no symbols. What their code
 * looks like is the linkers' choice; here are GNU ld's, gold's, lld's and mold's forms that begin
 * with a load from a slot of the GOT, with and without IBT, BTI and pointer authentication. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/symbolize/convert/debug_symbols.h"

enum { STUBS_MAX = 1 << 20, STUB_NAME_MAX = 32 << 10 };

struct code { /* of one section */
	const uint8_t *bytes;
	size_t length;
	uint64_t address;
	uint64_t got; /* what i386's position independent stubs count from */
};

struct stub {
	uint64_t address, slot;
	uint32_t length;
};

struct slot {
	uint64_t address;
	uint32_t name;
};

struct machine {
	unsigned number;
	unsigned step; /* stubs begin at multiples of it */
	uint32_t jump_slot, glob_dat, irelative;
	/* Length of the stub that begins there, at most what is left, and its slot; 0: none does.
	 */
	size_t (*decode)(const struct code *code, size_t at, uint64_t *slot);
};

/* ---- machines ---- */

static bool has(const struct code *code, size_t at, const char *bytes, size_t length)
{
	return at <= code->length && length <= code->length - at &&
	       !memcmp(code->bytes + at, bytes, length);
}

static uint32_t word_at(const struct code *code, size_t at)
{
	const uint8_t *b = code->bytes + at;

	if (at > code->length || code->length - at < 4)
		return 0;
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1);

	return (value ^ sign) - sign;
}

/* [endbr64] [mov $n,%r11d] [bnd] jmp *slot(%rip), or mov slot(%rip),%r11 of a retpoline. */
static size_t decode_x86_64(const struct code *code, size_t at, uint64_t *slot)
{
	size_t p = at;
	bool is_retpoline;

	if (has(code, p, "\xf3\x0f\x1e\xfa", 4))
		p += 4;
	is_retpoline = has(code, p, "\x4c\x8b\x1d", 3);
	if (is_retpoline) {
		p += 1;
	} else {
		if (has(code, p, "\x41\xbb", 2))
			p += 6;
		if (has(code, p, "\xf2", 1))
			p++;
	}
	if (!is_retpoline && !has(code, p, "\xff\x25", 2))
		return 0;
	if (p + 6 > code->length)
		return 0;
	*slot = code->address + p + 6 + sign_extend(word_at(code, p + 2), 32);
	return is_retpoline ? 32 : 16;
}

/* [endbr32] jmp *slot, or jmp *offset(%ebx), whose %ebx is the GOT's address. */
static size_t decode_386(const struct code *code, size_t at, uint64_t *slot)
{
	size_t p = at;

	if (has(code, p, "\xf3\x0f\x1e\xfb", 4))
		p += 4;
	if (p + 6 > code->length)
		return 0;
	*slot = word_at(code, p + 2);
	if (has(code, p, "\xff\xa3", 2) && code->got)
		*slot = (uint32_t)(*slot + code->got);
	else if (!has(code, p, "\xff\x25", 2))
		return 0;
	return 16;
}

/* [bti c] adrp x16, page; ldr x17, [x16, offset]; … br x17; nop… */
static size_t decode_aarch64(const struct code *code, size_t at, uint64_t *slot)
{
	enum { BTI_C = 0xd503245f, BR_X17 = 0xd61f0220, NOP = 0xd503201f, LONGEST = 24 };
	size_t p = word_at(code, at) == BTI_C ? at + 4 : at, end = p + 8;
	uint32_t adrp = word_at(code, p), ldr = word_at(code, p + 4);
	uint64_t page = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
	bool is_wide = (ldr & 0xffc003ff) == 0xf9400211;

	if ((adrp & 0x9f00001f) != 0x90000010 || (!is_wide && (ldr & 0xffc003ff) != 0xb9400211))
		return 0;
	*slot = ((code->address + p) & ~UINT64_C(0xfff)) + (sign_extend(page, 21) << 12) +
		((uint64_t)(ldr >> 10 & 0xfff) << (is_wide ? 3 : 2));
	while (end < at + LONGEST && word_at(code, end) != BR_X17)
		end += 4;
	for (end += 4; end < at + LONGEST && word_at(code, end) == NOP;)
		end += 4;
	return end - at;
}

static uint32_t arm_immediate(uint32_t instruction)
{
	unsigned turn = (instruction >> 8 & 15) * 2;
	uint32_t value = instruction & 0xff;

	return turn ? value >> turn | value << (32 - turn) : value;
}

/* [bx pc; nop] add ip, pc, …; add ip, ip, …; ldr pc, [ip, …]!, or lld's long form: ldr ip, [pc,
 * #4]; add ip, ip, pc; ldr pc, [ip]; and the distance. */
static size_t decode_arm(const struct code *code, size_t at, uint64_t *slot)
{
	size_t p = has(code, at, "\x78\x47\xc0\x46", 4) ? at + 4 : at;
	uint64_t value = code->address + p + 8;

	if (word_at(code, p) == 0xe59fc004 && word_at(code, p + 4) == 0xe08cc00f &&
	    word_at(code, p + 8) == 0xe59cf000) {
		*slot = (uint32_t)(value + 4 + word_at(code, p + 12));
		return p + 16 - at;
	}
	if ((word_at(code, p) & 0xfffff000) != 0xe28fc000)
		return 0;
	value += arm_immediate(word_at(code, p));
	for (p += 4; (word_at(code, p) & 0xfffff000) == 0xe28cc000; p += 4)
		value += arm_immediate(word_at(code, p));
	if ((word_at(code, p) & 0xfffff000) != 0xe5bcf000)
		return 0;
	*slot = (uint32_t)(value + (word_at(code, p) & 0xfff));
	return p + 4 - at;
}

/* auipc t3, high; l[wd] t3, low(t3); jalr t1, t3; nop */
static size_t decode_riscv(const struct code *code, size_t at, uint64_t *slot)
{
	uint32_t auipc = word_at(code, at), load = word_at(code, at + 4);

	if ((auipc & 0xfff) != 0xe17 ||
	    ((load & 0xfffff) != 0xe3e03 && (load & 0xfffff) != 0xe2e03))
		return 0;
	*slot = code->address + at + sign_extend(auipc & 0xfffff000, 32) +
		sign_extend(load >> 20, 12);
	if ((load & 0xfffff) == 0xe2e03)
		*slot = (uint32_t)*slot;
	return 16;
}

/* pcaddu12i $t3, high; ld.d $t3, $t3, low; jirl $t1, $t3, 0; nop */
static size_t decode_loongarch(const struct code *code, size_t at, uint64_t *slot)
{
	uint32_t high = word_at(code, at), load = word_at(code, at + 4);

	if ((high & 0xfe00001f) != 0x1c00000f || (load & 0xffc003ff) != 0x28c001ef)
		return 0;
	*slot = code->address + at + (sign_extend(high >> 5 & 0xfffff, 20) << 12) +
		sign_extend(load >> 10 & 0xfff, 12);
	return 16;
}

/* larl %r1, slot; lg %r1, 0(%r1); br %r1; … */
static size_t decode_s390(const struct code *code, size_t at, uint64_t *slot)
{
	const uint8_t *b = code->bytes + at;

	if (!has(code, at, "\xc0\x10", 2) ||
	    !has(code, at + 6, "\xe3\x10\x10\x00\x00\x04\x07\xf1", 8))
		return 0;
	*slot = code->address + at +
		2 * sign_extend((uint64_t)b[2] << 24 | b[3] << 16 | b[4] << 8 | b[5], 32);
	return 32;
}

static const struct machine machines[] = {
	{EM_X86_64, 8, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, decode_x86_64},
	{EM_386, 8, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE, decode_386},
	{EM_AARCH64, 4, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE,
	 decode_aarch64},
	{EM_ARM, 4, R_ARM_JUMP_SLOT, R_ARM_GLOB_DAT, R_ARM_IRELATIVE, decode_arm},
	{EM_RISCV, 4, R_RISCV_JUMP_SLOT, R_RISCV_64, R_RISCV_IRELATIVE, decode_riscv},
	{EM_S390, 4, R_390_JMP_SLOT, R_390_GLOB_DAT, R_390_IRELATIVE, decode_s390},
	{258 /* EM_LOONGARCH */, 4, 5 /* R_LARCH_JUMP_SLOT */, 2 /* R_LARCH_64 */,
	 12 /* R_LARCH_IRELATIVE */, decode_loongarch},
};

static const struct machine *machine_of(const struct elf_file *file)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (machines[i].number == file->header.e_machine)
			return &machines[i];
	return NULL;
}

/* ---- stubs ---- */

struct plt {
	const struct machine *machine;
	const struct elf_file *file;
	struct debug_symbols *symbols;
	struct stub *stubs; /* by slot, once sorted */
	size_t stub_count, stub_room;
	uint64_t got;
};

static void add_stub(struct plt *plt, const struct stub *stub)
{
	if (plt->stub_count == STUBS_MAX ||
	    !ARRAY_GROW(plt->stubs, plt->stub_count, plt->stub_room))
		return;
	plt->stubs[plt->stub_count++] = *stub;
}

/* A stub ends where the next one begins at the latest: those of 8 bytes look like those of 16. */
static void find_stubs(struct plt *plt, const struct code *code)
{
	unsigned step = plt->machine->step;
	uint64_t slot, next_slot;
	size_t length, next;

	for (size_t at = 0; at < code->length; at = next) {
		next = at + step;
		length = plt->machine->decode(code, at, &slot);
		if (!length)
			continue;
		if (length > code->length - at)
			length = code->length - at;
		while (next < at + length && !plt->machine->decode(code, next, &next_slot))
			next += step;
		add_stub(plt, &(struct stub){.address = code->address + at,
					     .slot = slot,
					     .length = (uint32_t)(next < at + length ? next - at
										     : length)});
	}
}

static bool is_plt(const char *name)
{
	return !strncmp(name, ".plt", 4) ? !name[4] || name[4] == '.' : !strcmp(name, ".iplt");
}

/* The GOT that i386's code counts from is .got.plt, or .got where there is no other. */
static void find_got(struct plt *plt, const GElf_Shdr *header, const char *name)
{
	if (!strcmp(name, ".got.plt") || (!strcmp(name, ".got") && !plt->got))
		plt->got = header->sh_addr;
}

static void read_sections(struct plt *plt)
{
	Elf *elf = plt->file->elf;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	for (unsigned pass = 0; pass < 2; pass++)
		while ((section = elf_nextscn(elf, section)) != NULL) {
			size_t number = elf_ndxscn(section);
			const char *name;
			Elf_Data *data;

			if (!gelf_getshdr(section, &header) ||
			    !(name = elf_strptr(elf, names, header.sh_name)))
				continue;
			if (!pass)
				find_got(plt, &header, name);
			else if (is_plt(name) && number < plt->file->section_count &&
				 plt->file->code[number].end &&
				 (data = elf_rawdata(section, NULL)) != NULL && data->d_buf)
				find_stubs(plt, &(struct code){.bytes = data->d_buf,
							       .length = data->d_size,
							       .address = header.sh_addr,
							       .got = plt->got});
		}
}

/* ---- names ---- */

static int compare_stubs(const void *left, const void *right)
{
	const struct stub *a = left, *b = right;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* The first stub of that slot, or NULL; there may be more than one. */
static const struct stub *stub_of(const struct plt *plt, uint64_t slot)
{
	size_t low = 0, high = plt->stub_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (plt->stubs[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < plt->stub_count && plt->stubs[low].slot == slot ? &plt->stubs[low] : NULL;
}

/* Name of the IFUNC whose resolver is there; NULL: none is known. */
static const char *indirect_at(const struct debug_symbols *symbols, uint64_t resolver)
{
	size_t low = 0, high = symbols->indirect_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->indirect[middle].address < resolver)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == symbols->indirect_count || symbols->indirect[low].address != resolver)
		return NULL;
	return table_builder_text_at(symbols->builder, symbols->indirect[low].name);
}

static void name_stubs(struct plt *plt, uint64_t slot, const char *name)
{
	const struct stub *stub = stub_of(plt, slot), *end = plt->stubs + plt->stub_count;
	size_t length = strcspn(name, "@"); /* without its version */
	struct buffer text;

	if (!stub || !length || length > STUB_NAME_MAX)
		return;
	buffer_init(&text, STUB_NAME_MAX + 8);
	buffer_append(&text, name, length);
	buffer_append(&text, "@plt", 5);
	for (; stub < end && stub->slot == slot && !text.failed; stub++)
		table_builder_symbol(plt->symbols->builder,
				     &(struct code_symbol){
					     .address = stub->address,
					     .size = stub->length,
					     .name = table_builder_text(plt->symbols->builder,
									(const char *)text.bytes),
					     .is_function = true,
					     .binding = BINDING_LOCAL,
				     });
	buffer_release(&text);
}

/* A relocation without an addend of its own has it in the slot. */
static uint64_t content_of(const struct plt *plt, uint64_t slot)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(plt->file->elf, section)) != NULL) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    slot < header.sh_addr || slot - header.sh_addr >= header.sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return 0;
		return word_at(&(struct code){.bytes = data->d_buf, .length = data->d_size},
			       slot - header.sh_addr);
	}
	return 0;
}

static void take_relocation(struct plt *plt, const GElf_Shdr *header, Elf_Data *dynsym,
			    const GElf_Rela *row)
{
	uint32_t type = (uint32_t)GELF_R_TYPE(row->r_info);
	char resolver[32];
	GElf_Sym symbol;
	const char *name = NULL;

	if (type == plt->machine->irelative) {
		uint64_t at = (uint64_t)row->r_addend;

		if (header->sh_type == SHT_REL)
			at = content_of(plt, row->r_offset);
		name = indirect_at(plt->symbols, at);
		if (!name) {
			snprintf(resolver, sizeof(resolver), "*ABS*+0x%llx",
				 (unsigned long long)at);
			name = resolver;
		}
	} else if ((type == plt->machine->jump_slot || type == plt->machine->glob_dat) && dynsym &&
		   !row->r_addend && gelf_getsym(dynsym, (int)GELF_R_SYM(row->r_info), &symbol)) {
		Elf_Scn *section = elf_getscn(plt->file->elf, header->sh_link);
		GElf_Shdr of;

		if (section && gelf_getshdr(section, &of))
			name = elf_strptr(plt->file->elf, of.sh_link, symbol.st_name);
	}
	if (name)
		name_stubs(plt, row->r_offset, name);
}

static void read_relocations(struct plt *plt, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL), *dynsym = NULL;
	bool has_addend = header->sh_type == SHT_RELA;
	size_t size = gelf_fsize(plt->file->elf, has_addend ? ELF_T_RELA : ELF_T_REL, 1,
				 EV_CURRENT);

	if (header->sh_link)
		dynsym = elf_getdata(elf_getscn(plt->file->elf, header->sh_link), NULL);
	for (size_t i = 0; data && size && i < data->d_size / size; i++) {
		GElf_Rela row = {0};
		GElf_Rel plain;

		if (has_addend ? !gelf_getrela(data, (int)i, &row)
			       : !gelf_getrel(data, (int)i, &plain))
			return;
		if (!has_addend) {
			row.r_offset = plain.r_offset;
			row.r_info = plain.r_info;
		}
		take_relocation(plt, header, dynsym, &row);
	}
}

void debug_plt_read(struct debug_symbols *symbols, const struct elf_file *file)
{
	struct plt plt = {.machine = machine_of(file), .file = file, .symbols = symbols};
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (!plt.machine || file->is_relocatable || symbols->quality == QUALITY_NONE)
		return;
	read_sections(&plt);
	symbols->indirect_count = code_symbols_sort(symbols->indirect, symbols->indirect_count,
						    table_builder_text_at(symbols->builder, 0));
	if (plt.stub_count)
		qsort(plt.stubs, plt.stub_count, sizeof(*plt.stubs), compare_stubs);
	while (plt.stub_count && (section = elf_nextscn(file->elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && (header.sh_flags & SHF_ALLOC) &&
		    (header.sh_type == SHT_REL || header.sh_type == SHT_RELA))
			read_relocations(&plt, section, &header);
	free(plt.stubs);
}
