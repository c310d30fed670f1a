/* SPDX-License-Identifier: Apache-2.0 */
#include "common/elf_image.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* libelf allocates ~200 bytes per section and reads whole tables before anybody can look at
	 * them, so their size is bounded before it is asked. Linked files have under 100 of each.
	 */
	SECTIONS_MAX = 16384,
	PROGRAM_HEADERS_MAX = 1024,
	NAMES_MAX = 1 << 20, /* bytes of .shstrtab */
	NOTES_MAX = 1 << 20, /* bytes of one note segment or section */
	NOTE_REGIONS_MAX = 64,
	DEBUGLINK_MAX = 4096, /* bytes of .gnu_debuglink */
	NOTE_GO_BUILD_ID = 4, /* Go's cmd/internal/buildid: name "Go", type 4 */
};

/* --- tables' sizes, before libelf sees the file --- */

static uint64_t read_number(const uint8_t *at, size_t bytes, bool big_endian)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * (big_endian ? bytes - 1 - i : i);
	return value;
}

struct table_sizes {
	uint64_t section_offset, program_offset;
	uint64_t sections, programs;
	size_t section_bytes, program_bytes; /* of one entry */
};

static bool table_fits(uint64_t offset, uint64_t count, size_t entry, uint64_t length)
{
	return !count || (offset <= length && count <= (length - offset) / entry);
}

/* The fields' places: System V gABI, chapter 4, "ELF Header". */
static bool read_table_sizes(const uint8_t *header, size_t length, struct table_sizes *sizes,
			     struct error *err)
{
	bool wide, big;

	if (length < EI_NIDENT || memcmp(header, ELFMAG, SELFMAG))
		return error_set(err, ERROR_FORMAT, "not an ELF file");
	wide = header[EI_CLASS] == ELFCLASS64;
	big = header[EI_DATA] == ELFDATA2MSB;
	if (!wide && header[EI_CLASS] != ELFCLASS32)
		return error_set(err, ERROR_FORMAT, "ELF class %u is unknown", header[EI_CLASS]);
	if (!big && header[EI_DATA] != ELFDATA2LSB)
		return error_set(err, ERROR_FORMAT, "ELF byte order %u is unknown",
				 header[EI_DATA]);
	if (length < (wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		return error_set(err, ERROR_FORMAT, "shorter than an ELF header");

	sizes->program_offset = read_number(header + (wide ? 32 : 28), wide ? 8 : 4, big);
	sizes->section_offset = read_number(header + (wide ? 40 : 32), wide ? 8 : 4, big);
	sizes->programs = read_number(header + (wide ? 56 : 44), 2, big);
	sizes->sections = read_number(header + (wide ? 60 : 48), 2, big);
	sizes->program_bytes = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	sizes->section_bytes = wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	return true;
}

static bool check_table_sizes(const struct table_sizes *sizes, uint64_t length, struct error *err)
{
	/* Counts that do not fit 16 bits live in section 0: more than anything linked ever has. */
	if (sizes->section_offset && !sizes->sections)
		return error_set(err, ERROR_LIMIT, "more than 65279 sections");
	if (sizes->sections > SECTIONS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d sections", SECTIONS_MAX);
	if (sizes->programs > PROGRAM_HEADERS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d program headers",
				 PROGRAM_HEADERS_MAX);
	if (!table_fits(sizes->program_offset, sizes->programs, sizes->program_bytes, length))
		return error_set(err, ERROR_FORMAT, "program headers lie outside the file");
	if (!table_fits(sizes->section_offset, sizes->sections, sizes->section_bytes, length))
		return error_set(err, ERROR_FORMAT, "section headers lie outside the file");
	return true;
}

/* --- notes --- */

static void read_one_note(struct elf_image *image, const GElf_Nhdr *note, const char *name,
			  const char *text)
{
	if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(ELF_NOTE_GNU) &&
	    !memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) && !image->gnu.length)
		build_id_set(&image->gnu, text, note->n_descsz);
	if (note->n_type == NOTE_GO_BUILD_ID && note->n_namesz == sizeof("Go") &&
	    !memcmp(name, "Go", sizeof("Go")) && !image->go_id[0] &&
	    note->n_descsz < sizeof(image->go_id) && !memchr(text, 0, note->n_descsz))
		memcpy(image->go_id, text, note->n_descsz); /* the image was zeroed */
}

static void read_notes(Elf *elf, uint64_t offset, uint64_t size, uint64_t align,
		       struct elf_image *image)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t at = 0, name, text, next;

	if (!size || size > NOTES_MAX || offset > INT64_MAX)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)offset, size,
				    align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (next = gelf_getnote(data, at, &note, &name, &text)) > 0) {
		read_one_note(image, &note, (const char *)data->d_buf + name,
			      (const char *)data->d_buf + text);
		at = next;
	}
}

bool elf_notes_build_id(const void *notes, size_t length, struct build_id *id)
{
	const uint8_t *bytes = notes;
	size_t at = 0;

	while (length - at >= sizeof(Elf32_Nhdr)) {
		Elf32_Nhdr note;
		uint64_t name = at + sizeof(note), text, end;

		memcpy(&note, bytes + at, sizeof(note));
		text = name + (((uint64_t)note.n_namesz + 3) & ~3ull);
		end = text + (((uint64_t)note.n_descsz + 3) & ~3ull);
		if (text + note.n_descsz > length)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(bytes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			return build_id_set(id, bytes + text, note.n_descsz);
		if (end > length)
			return false;
		at = (size_t)end;
	}
	return false;
}

/* --- sections and segments --- */

static bool read_debuglink(Elf *elf, const GElf_Shdr *section, struct elf_image *image)
{
	Elf_Data *data;
	const uint8_t *bytes;
	size_t name, crc;

	if (!section->sh_size || section->sh_size > DEBUGLINK_MAX || section->sh_offset > INT64_MAX)
		return false;
	data = elf_getdata_rawchunk(elf, (int64_t)section->sh_offset, section->sh_size, ELF_T_BYTE);
	if (!data)
		return false;
	bytes = data->d_buf;
	name = strnlen((const char *)bytes, data->d_size);
	crc = (name + 1 + 3) & ~(size_t)3; /* the checksum stands at the next multiple of 4 */
	if (!name || name >= sizeof(image->debuglink) || crc + 4 > data->d_size ||
	    memchr(bytes, '/', name))
		return false;
	memcpy(image->debuglink, bytes, name + 1);
	image->debuglink_crc = (uint32_t)read_number(bytes + crc, 4, image->is_big_endian);
	return true;
}

static void read_section(Elf *elf, const GElf_Shdr *section, const char *name,
			 struct elf_image *image)
{
	image->has_symtab |= section->sh_type == SHT_SYMTAB;
	image->has_dynsym |= section->sh_type == SHT_DYNSYM;
	if (section->sh_type == SHT_NOBITS)
		return; /* what a debug file says it left in the program */
	image->has_code |= section->sh_flags & SHF_EXECINSTR && section->sh_size;
	image->has_debug_info |= !strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info");
	image->has_split_info |= !strcmp(name, ".debug_info.dwo") ||
				 !strcmp(name, ".zdebug_info.dwo");
	image->has_unit_index |= !strcmp(name, ".debug_cu_index") ||
				 !strcmp(name, ".debug_tu_index");
	image->has_alt_link |= !strcmp(name, ".gnu_debugaltlink");
	image->has_go_pclntab |= !strcmp(name, ".gopclntab") ||
				 !strcmp(name, ".data.rel.ro.gopclntab");
	if (!strcmp(name, ".gnu_debuglink"))
		read_debuglink(elf, section, image);
}

/* .shstrtab, or NULL: then sections have no names. Not through elf_strptr(), which would inflate a
 * compressed string section of any size. */
static const Elf_Data *section_names(Elf *elf)
{
	Elf_Data *names;
	GElf_Shdr header;
	Elf_Scn *section;
	size_t index;

	if (elf_getshdrstrndx(elf, &index) || !(section = elf_getscn(elf, index)) ||
	    !gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS || !header.sh_size ||
	    header.sh_size > NAMES_MAX || header.sh_offset > INT64_MAX)
		return NULL;
	names = elf_getdata_rawchunk(elf, (int64_t)header.sh_offset, header.sh_size, ELF_T_BYTE);
	if (names && ((const char *)names->d_buf)[names->d_size - 1])
		return NULL; /* the last name does not end */
	return names;
}

static void read_sections(Elf *elf, struct elf_image *image)
{
	const Elf_Data *names = section_names(elf);
	unsigned note_regions = 0;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		const char *name = "";

		if (!gelf_getshdr(section, &header))
			continue;
		if (names && header.sh_name < names->d_size)
			name = (const char *)names->d_buf + header.sh_name;
		read_section(elf, &header, name, image);
		if (header.sh_type == SHT_NOTE && note_regions++ < NOTE_REGIONS_MAX)
			read_notes(elf, header.sh_offset, header.sh_size, header.sh_addralign,
				   image);
	}
}

static bool read_load(const GElf_Phdr *header, struct elf_image *image, struct error *err)
{
	if (header->p_offset + header->p_filesz < header->p_offset ||
	    header->p_vaddr + header->p_memsz < header->p_vaddr)
		return error_set(err, ERROR_FORMAT, "a loadable segment wraps around");
	if (image->segment_count == ELF_IMAGE_SEGMENTS)
		return error_set(err, ERROR_LIMIT, "more than %d loadable segments",
				 ELF_IMAGE_SEGMENTS);
	image->segments[image->segment_count++] = (struct elf_segment){
		.offset = header->p_offset,
		.file_size = header->p_filesz,
		.address = header->p_vaddr,
		.memory_size = header->p_memsz,
		.is_executable = header->p_flags & PF_X,
	};
	return true;
}

static bool read_segments(Elf *elf, struct elf_image *image, struct error *err)
{
	unsigned note_regions = 0;
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return error_set(err, ERROR_FORMAT, "program headers: %s", elf_errmsg(-1));
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header))
			return error_set(err, ERROR_FORMAT, "program header %zu: %s", i,
					 elf_errmsg(-1));
		if (header.p_type == PT_LOAD && !read_load(&header, image, err))
			return false;
		/* Sections were asked first: in a debug file the segments' offsets point nowhere.
		 */
		if (header.p_type == PT_NOTE && note_regions++ < NOTE_REGIONS_MAX)
			read_notes(elf, header.p_offset, header.p_filesz, header.p_align, image);
	}
	return true;
}

static bool read_image(Elf *elf, struct elf_image *image, struct error *err)
{
	GElf_Ehdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return error_set(err, ERROR_FORMAT, "not a readable ELF file: %s", elf_errmsg(-1));
	memset(image, 0, sizeof(*image));
	image->is_64bit = header.e_ident[EI_CLASS] == ELFCLASS64;
	image->is_big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
	image->type = header.e_type;
	image->machine = header.e_machine;
	image->entry = header.e_entry;
	read_sections(elf, image);
	return read_segments(elf, image, err);
}

static void start_libelf(void)
{
	elf_version(EV_CURRENT);
}

static pthread_once_t libelf_once = PTHREAD_ONCE_INIT;

bool elf_image_read(int fd, struct elf_image *image, struct error *err)
{
	struct table_sizes sizes;
	struct elf_image read = {0};
	uint8_t header[sizeof(Elf64_Ehdr)];
	struct stat st;
	ssize_t got;
	Elf *elf;
	bool ok;

	pthread_once(&libelf_once, start_libelf);
	if (fstat(fd, &st))
		return error_set_system(err, errno, "ask for the file's length");
	do
		got = pread(fd, header, sizeof(header), 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_set_system(err, errno, "read the ELF header");
	if (!read_table_sizes(header, (size_t)got, &sizes, err) ||
	    !check_table_sizes(&sizes, (uint64_t)st.st_size, err))
		return false;

	elf = elf_begin(fd, ELF_C_READ, NULL);
	ok = read_image(elf, &read, err);
	elf_end(elf);
	if (ok)
		*image = read;
	return ok;
}

bool elf_image_read_bytes(const void *bytes, size_t length, struct elf_image *image,
			  struct error *err)
{
	struct table_sizes sizes;
	struct elf_image read = {0};
	Elf *elf;
	bool ok;

	pthread_once(&libelf_once, start_libelf);
	if (!read_table_sizes(bytes, length, &sizes, err) ||
	    !check_table_sizes(&sizes, length, err))
		return false;
	/* elf_memory() promises not to write unless asked to */
	elf = elf_memory((char *)(uintptr_t)bytes, length);
	ok = read_image(elf, &read, err);
	elf_end(elf);
	if (ok)
		*image = read;
	return ok;
}

static bool find_address(const struct elf_segment *segments, unsigned count, uint64_t file_offset,
			 bool executable, uint64_t *address)
{
	for (unsigned i = 0; i < count; i++) {
		const struct elf_segment *segment = &segments[i];

		if (segment->is_executable == executable && file_offset >= segment->offset &&
		    file_offset - segment->offset < segment->file_size) {
			*address = segment->address + (file_offset - segment->offset);
			return true;
		}
	}
	return false;
}

/* Linkers let segments share a page of the file, and some let them share bytes: code wins. */
bool elf_segments_address(const struct elf_segment *segments, unsigned count, uint64_t file_offset,
			  uint64_t *address)
{
	return find_address(segments, count, file_offset, true, address) ||
	       find_address(segments, count, file_offset, false, address);
}

bool elf_image_address(const struct elf_image *image, uint64_t file_offset, uint64_t *address)
{
	return elf_segments_address(image->segments, image->segment_count, file_offset, address);
}
