/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/file_functions.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "symbol-server/symbolize/file_section.h"

enum { SYMBOLS_MAX = 1 << 21, SYMBOLS_AT_ONCE = 512, WINDOW_BYTES = 4096 };

struct search {
	int fd;
	const char *const *names;
	size_t name_count;
	struct file_search_limits *limits;
	struct error *err;
	bool is_stopped; /* err says why */
	struct file_section texts;
	struct file_function *found;
	size_t found_count;
	uint64_t window_at; /* in texts; what of them is in memory */
	size_t window_length;
	char window[WINDOW_BYTES];
};

static bool read_at(int fd, uint64_t offset, void *bytes, size_t length)
{
	return pread(fd, bytes, length, (off_t)offset) == (ssize_t)length;
}

/* As read_at(), of what may be read. */
static bool take(struct search *search, uint64_t offset, void *bytes, size_t length)
{
	uint64_t cost = length < WINDOW_BYTES ? WINDOW_BYTES : length;

	if (cost > search->limits->bytes) {
		search->is_stopped = true;
		return error_set(search->err, ERROR_LIMIT,
				 "the module's symbol tables take more reading than one question "
				 "may ask for");
	}
	search->limits->bytes -= cost;
	return read_at(search->fd, offset, bytes, length);
}

static bool can_be_searched(int fd)
{
	unsigned char header[20];

	return read_at(fd, 0, header, sizeof(header)) && !memcmp(header, ELFMAG, SELFMAG) &&
	       header[EI_CLASS] == ELFCLASS64 && header[EI_DATA] == ELFDATA2LSB &&
	       (header[16] == ET_EXEC || header[16] == ET_DYN) && !header[17];
}

/* The text at that offset with its zero, at least FILE_FUNCTION_NAME_BYTES of it where there are as
 * many; NULL: it lies outside. */
static const char *text_at(struct search *search, uint64_t offset, size_t *length)
{
	uint64_t left;

	if (offset >= search->texts.length)
		return NULL;
	left = search->texts.length - offset;
	*length = left < FILE_FUNCTION_NAME_BYTES ? (size_t)left : FILE_FUNCTION_NAME_BYTES;
	if (offset < search->window_at ||
	    offset + *length > search->window_at + search->window_length) {
		search->window_at = offset;
		search->window_length = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		if (!take(search, search->texts.offset + offset, search->window,
			  search->window_length)) {
			search->window_length = 0;
			return NULL;
		}
	}
	return search->window + (offset - search->window_at);
}

static bool is_found(const struct search *search, uint32_t name, uint64_t address)
{
	for (size_t i = 0; i < search->found_count; i++)
		if (search->found[i].name == name && search->found[i].address == address)
			return true;
	return false;
}

static void look_at(struct search *search, const Elf64_Sym *symbol)
{
	size_t room;
	const char *text;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return;
	text = text_at(search, symbol->st_name, &room);
	for (uint32_t i = 0; text && i < search->name_count; i++) {
		size_t length = strlen(search->names[i]);

		if (length >= room || memcmp(text, search->names[i], length + 1) != 0)
			continue;
		if (search->found_count < FILE_FUNCTIONS_MAX &&
		    !is_found(search, i, symbol->st_value))
			search->found[search->found_count++] =
				(struct file_function){i, symbol->st_value, symbol->st_size};
		return;
	}
}

static void search_table(struct search *search, const char *table_name, const char *texts_name)
{
	Elf64_Sym symbols[SYMBOLS_AT_ONCE];
	struct file_section table;
	uint64_t count;

	if (!file_section_find(search->fd, table_name, &table) ||
	    !file_section_find(search->fd, texts_name, &search->texts))
		return;
	search->window_at = search->window_length = 0;
	count = table.length / sizeof(*symbols);
	if (count > SYMBOLS_MAX)
		count = SYMBOLS_MAX;
	for (uint64_t at = 0; at < count; at += SYMBOLS_AT_ONCE) {
		size_t now = count - at < SYMBOLS_AT_ONCE ? (size_t)(count - at) : SYMBOLS_AT_ONCE;

		search->is_stopped |= !search->limits->goes_on(search->limits->context,
							       search->err);
		if (search->is_stopped || !take(search, table.offset + at * sizeof(*symbols),
						symbols, now * sizeof(*symbols)))
			return;
		for (size_t i = 0; i < now && !search->is_stopped; i++)
			look_at(search, &symbols[i]);
	}
}

bool file_functions_find(int fd, const char *const *names, size_t name_count,
			 struct file_search_limits *limits,
			 struct file_function found[FILE_FUNCTIONS_MAX], size_t *count,
			 struct error *err)
{
	struct search search = {.fd = fd,
				.names = names,
				.name_count = name_count,
				.limits = limits,
				.err = err,
				.found = found};

	if (can_be_searched(fd)) {
		search_table(&search, ".symtab", ".strtab");
		if (!search.is_stopped)
			search_table(&search, ".dynsym", ".dynstr");
	}
	*count = search.found_count;
	return !search.is_stopped;
}
