/* SPDX-License-Identifier: Apache-2.0 */
/* Searching a file for functions ends at its limits, however the file is made; within them it finds
 * what is there. */
#include "symbol-server/symbolize/file_functions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

enum { SYMBOLS = 4000, TEXT_BYTES = 1 << 20, COST = 4096 };

static const char section_names[] = "\0.symtab\0.strtab\0.shstrtab";

/* Every symbol's name lies far from the one before: a read each. The last one is called f. */
static int make_file(void)
{
	const uint64_t texts = sizeof(Elf64_Ehdr), symbols = texts + TEXT_BYTES,
		       names = symbols + SYMBOLS * sizeof(Elf64_Sym), sections = names + 64;
	Elf64_Ehdr header = {.e_type = ET_DYN,
			     .e_shoff = sections,
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 4,
			     .e_shstrndx = 3};
	Elf64_Shdr table[4] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_SYMTAB,
		 .sh_offset = symbols,
		 .sh_size = SYMBOLS * sizeof(Elf64_Sym)},
		{.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = texts, .sh_size = TEXT_BYTES},
		{.sh_name = 17,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = names,
		 .sh_size = sizeof section_names}};
	Elf64_Sym *all = calloc(SYMBOLS, sizeof *all);
	int fd = memfd_create("file", MFD_CLOEXEC);

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	for (unsigned i = 0; all && i < SYMBOLS; i++)
		all[i] = (Elf64_Sym){.st_name = i % 2 ? TEXT_BYTES / 2 : 1,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value = 0x1000 + i};
	if (all)
		all[SYMBOLS - 1].st_name = TEXT_BYTES / 2 + 1;
	CHECK(all && pwrite(fd, &header, sizeof header, 0) == sizeof header);
	CHECK(pwrite(fd, "f", 2, (off_t)texts + TEXT_BYTES / 2 + 1) == 2);
	CHECK(pwrite(fd, all, SYMBOLS * sizeof *all, (off_t)symbols) > 0);
	CHECK(pwrite(fd, section_names, sizeof section_names, (off_t)names) > 0);
	CHECK(pwrite(fd, table, sizeof table, (off_t)sections) == sizeof table);
	free(all);
	return fd;
}

static unsigned asked, stops_at; /* 0: never */

static bool goes_on(void *context, struct error *err)
{
	CHECK(context == &asked);
	return ++asked != stops_at || error_set(err, ERROR_BUSY, "enough");
}

static bool search(int fd, uint64_t *bytes, size_t *count, struct error *err)
{
	static const char *const names[] = {"g", "f"};
	struct file_function found[FILE_FUNCTIONS_MAX];
	struct file_search_limits limits = {*bytes, goes_on, &asked};
	bool ok;

	asked = 0;
	*err = (struct error){0};
	ok = file_functions_find(fd, names, 2, &limits, found, count, err);
	*bytes -= limits.bytes;
	CHECK(!*count || (found[0].name == 1 && found[0].address == 0x1000 + SYMBOLS - 1));
	return ok;
}

int main(void)
{
	int fd = make_file();
	uint64_t bytes = 1 << 30, needed;
	struct error err;
	size_t count;

	CHECK(search(fd, &bytes, &count, &err) && count == 1);
	CHECK(bytes >= (SYMBOLS - 1) * (uint64_t)COST); /* each read is paid for */
	CHECK(asked >= SYMBOLS / 1000);
	needed = bytes;
	CHECK(search(fd, &bytes, &count, &err) && count == 1 && bytes == needed);
	bytes = needed - 1;
	CHECK(!search(fd, &bytes, &count, &err) && err.kind == ERROR_LIMIT && !count);
	bytes = 100 * COST;
	CHECK(!search(fd, &bytes, &count, &err) && err.kind == ERROR_LIMIT);
	CHECK(bytes <= 100 * COST && strstr(err.message, "symbol tables"));
	stops_at = 2;
	bytes = needed;
	CHECK(!search(fd, &bytes, &count, &err) && err.kind == ERROR_BUSY && asked == 2);
	CHECK(bytes < needed / 4);
	close(fd);
	return checks_done();
}
