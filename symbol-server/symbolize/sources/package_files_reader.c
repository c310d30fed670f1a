/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side: libarchive over one package. A .deb is an ar with a packed tar in it, a .rpm
 * has a packed cpio behind its header. Only decompressors that are linked in: no other program is
 * run. */
#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/file_hash.h"
#include "symbol-server/symbolize/sources/file_index.h"
#include "symbol-server/symbolize/sources/package_files.h"

enum {
	BLOCK_BYTES = 256 << 10,
	LINE_ROOM = PATH_MAX + BUILD_ID_HEX + 32,
	LINES_ROOM = 64 << 10,
	/* Of larger members their start, their end and their notes are kept while they pass: that
	 * is where a linked file says what it is. */
	KEPT_START = 1 << 20,
	KEPT_END = 16 << 20,
	DROP_BYTES = 4 << 20, /* at a time */
	NOTES_MAX = 16,
	ELF_MIN = 52, /* bytes of a 32-bit header */
};

struct range {
	uint64_t from, to;
};

/* The member that is looked at. */
struct member_image {
	uint8_t *bytes; /* address space for the largest one so far */
	size_t room, length;
	uint64_t filled;  /* bytes up to here are there, but for what was dropped */
	uint64_t dropped; /* up to here it has been decided what to keep */
	struct range notes[NOTES_MAX];
	unsigned note_count;
	bool is_all_kept;
};

struct reading {
	const struct package_reading *what;
	struct archive *outer;
	uint64_t offset, left; /* of the package; of the limit */
	uint8_t block[BLOCK_BYTES];
	char lines[LINES_ROOM];
	size_t lines_used;
	struct member_image image;
	bool is_found;
};

static bool archive_fail(struct archive *archive, const char *what, struct error *err)
{
	const char *reason = archive_error_string(archive);

	return error_set(err, ERROR_FORMAT, "%s: %.200s", what, reason ? reason : "unknown error");
}

/* ---- bytes in ---- */

static ssize_t read_package(struct archive *archive, void *context, const void **bytes)
{
	struct reading *reading = context;
	ssize_t got;

	do
		got = pread(reading->what->package, reading->block, sizeof(reading->block),
			    (off_t)reading->offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		archive_set_error(archive, errno, "reading the package");
	else
		reading->offset += (uint64_t)got;
	*bytes = reading->block;
	return got;
}

static ssize_t read_inner(struct archive *archive, void *context, const void **bytes)
{
	struct reading *reading = context;
	size_t length;
	int64_t offset;

	switch (archive_read_data_block(reading->outer, bytes, &length, &offset)) {
	case ARCHIVE_OK:
	case ARCHIVE_WARN:
		return (ssize_t)length;
	case ARCHIVE_EOF:
		return 0;
	default:
		archive_set_error(archive, EIO, "%s", archive_error_string(reading->outer));
		return -1;
	}
}

/* ARCHIVE_WARN would mean that libarchive wants to run a program for it. */
static bool allow_filters(struct archive *archive, struct error *err)
{
	static int (*const filters[])(struct archive *) = {
		archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
		archive_read_support_filter_xz,   archive_read_support_filter_lzma,
		archive_read_support_filter_zstd,
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
		if (filters[i](archive) != ARCHIVE_OK)
			return archive_fail(archive, "libarchive", err);
	return true;
}

/* ---- lines out ---- */

static bool write_all(int fd, const void *bytes, size_t length, struct error *err)
{
	const uint8_t *at = bytes;

	while (length) {
		ssize_t done = write(fd, at, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set_system(err, errno, "write");
		at += done;
		length -= (size_t)done;
	}
	return true;
}

static bool flush_lines(struct reading *reading, struct error *err)
{
	size_t length = reading->lines_used;

	reading->lines_used = 0;
	return write_all(reading->what->output, reading->lines, length, err);
}

static bool tell_member(struct reading *reading, const struct package_member *member,
			struct error *err)
{
	if (sizeof(reading->lines) - reading->lines_used < LINE_ROOM && !flush_lines(reading, err))
		return false;
	reading->lines_used += package_member_format(member, reading->lines + reading->lines_used,
						     sizeof(reading->lines) - reading->lines_used);
	return true;
}

/* ---- a member's image ---- */

static bool image_start(struct member_image *image, uint64_t length, struct error *err)
{
	if (length > image->room) {
		size_t room = (size_t)length + length / 4 + KEPT_END;

		if (image->bytes)
			munmap(image->bytes, image->room);
		image->room = image->length = 0;
		image->bytes = mmap(NULL, room, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (image->bytes == MAP_FAILED) {
			image->bytes = NULL;
			return error_set(err, ERROR_LIMIT, "a file of %llu MB in it is too large",
					 (unsigned long long)length >> 20);
		}
		image->room = room;
	}
	if (image->length > KEPT_START + KEPT_END) /* what is left of the one before */
		madvise(image->bytes, image->room, MADV_DONTNEED);
	image->length = (size_t)length;
	image->filled = image->dropped = 0;
	image->note_count = 0;
	image->is_all_kept = length <= KEPT_START + KEPT_END;
	return true;
}

/* Which parts hold notes, from the program headers at the start; files of other machines, whose
 * bytes are not in our order, are kept whole. */
static void image_find_notes(struct member_image *image)
{
	Elf64_Ehdr header;
	Elf64_Phdr program;

	memcpy(&header, image->bytes, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] !=
		    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
	    header.e_phentsize != sizeof(program)) {
		image->is_all_kept = header.e_phnum != 0;
		return;
	}
	for (unsigned i = 0; i < header.e_phnum && image->note_count < NOTES_MAX; i++) {
		uint64_t at = header.e_phoff + i * sizeof(program);

		if (at < header.e_phoff || at > KEPT_START - sizeof(program))
			return;
		memcpy(&program, image->bytes + at, sizeof(program));
		if (program.p_type == PT_NOTE && program.p_filesz <= KEPT_START &&
		    program.p_offset < image->length)
			image->notes[image->note_count++] = (struct range){
				program.p_offset, program.p_offset + program.p_filesz};
	}
}

static void image_drop(struct member_image *image, uint64_t to)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = image->dropped;

	if (!from) {
		image_find_notes(image);
		from = KEPT_START;
	}
	to &= ~(page - 1);
	image->dropped = to;
	if (image->is_all_kept)
		return;
	for (unsigned i = 0; i < image->note_count; i++) /* what touches a note is kept whole */
		if (image->notes[i].from < to && image->notes[i].to > from)
			return;
	madvise(image->bytes + from, to - from, MADV_DONTNEED);
}

/* Blocks come in order; between them there may be holes. */
static bool image_add(struct member_image *image, const void *bytes, size_t length, uint64_t offset)
{
	uint64_t done = image->dropped ? image->dropped : KEPT_START;

	if (offset < image->filled || offset > image->length || length > image->length - offset)
		return false;
	memset(image->bytes + image->filled, 0, offset - image->filled);
	memcpy(image->bytes + offset, bytes, length);
	image->filled = offset + length;
	if (!image->is_all_kept && image->filled > done + DROP_BYTES &&
	    image->filled < image->length - KEPT_END)
		image_drop(image, image->filled);
	return true;
}

static void image_end(struct member_image *image)
{
	if (image->filled < image->length)
		memset(image->bytes + image->filled, 0, image->length - image->filled);
}

static bool look_at_image(struct reading *reading, const char *path, struct error *err)
{
	const struct member_image *image = &reading->image;
	struct package_member member = {.path = path};
	struct elf_image *elf = malloc(sizeof(*elf));
	bool ok = true;

	if (!elf)
		return error_set(err, ERROR_MEMORY, "no memory to read an ELF file");
	if (elf_image_read_bytes(image->bytes, image->length, elf, NULL)) {
		member.content = file_content(elf);
		member.id = elf->gnu;
		if (!elf->gnu.length && elf->has_code)
			file_hash_bytes(image->bytes, image->length, &member.id);
		ok = tell_member(reading, &member, err);
	}
	free(elf);
	return ok;
}

/* ---- members ---- */

static const char *path_of(struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);

	if (!path)
		path = archive_entry_pathname_utf8(entry);
	while (path && (*path == '/' || !strncmp(path, "./", 2)))
		path += *path == '/' ? 1 : 2;
	return path;
}

/* Blocks of a member whose bytes are ELF; a member of something else is passed over. */
static bool each_block(struct reading *reading, struct archive *archive,
		       bool (*block)(struct reading *, const void *, size_t, uint64_t,
				     struct error *),
		       bool *is_elf, struct error *err)
{
	const void *bytes;
	size_t length;
	int64_t offset;
	bool is_first = true;
	int rc;

	*is_elf = false;
	while ((rc = archive_read_data_block(archive, &bytes, &length, &offset)) == ARCHIVE_OK ||
	       rc == ARCHIVE_WARN) {
		if (!length)
			continue;
		if (is_first && (offset || length < ELF_MIN || memcmp(bytes, ELFMAG, SELFMAG) != 0))
			return true;
		is_first = false;
		*is_elf = true;
		if (!block(reading, bytes, length, (uint64_t)offset, err))
			return false;
	}
	return rc == ARCHIVE_EOF || archive_fail(archive, "it is damaged", err);
}

static bool add_block(struct reading *reading, const void *bytes, size_t length, uint64_t offset,
		      struct error *err)
{
	return image_add(&reading->image, bytes, length, offset) ||
	       error_set(err, ERROR_FORMAT, "it is damaged: a member's blocks are in disorder");
}

static bool list_member(struct reading *reading, struct archive *archive,
			struct archive_entry *entry, const char *path, struct error *err)
{
	bool is_elf;

	if (!image_start(&reading->image, (uint64_t)archive_entry_size(entry), err) ||
	    !each_block(reading, archive, add_block, &is_elf, err))
		return false;
	if (!is_elf)
		return true;
	image_end(&reading->image);
	return look_at_image(reading, path, err);
}

static bool put_block(struct reading *reading, const void *bytes, size_t length, uint64_t offset,
		      struct error *err)
{
	const uint8_t *at = bytes;

	while (length) {
		ssize_t done = pwrite(reading->what->output, at, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set_system(err, errno, "store a file from the package");
		at += done;
		offset += (uint64_t)done;
		length -= (size_t)done;
	}
	return true;
}

static bool unpack_member(struct reading *reading, struct archive *archive, struct error *err)
{
	return each_block(reading, archive, put_block, &reading->is_found, err);
}

static bool read_member(struct reading *reading, struct archive *archive,
			struct archive_entry *entry, struct error *err)
{
	int64_t size = archive_entry_size(entry);
	const char *path = path_of(entry);

	if (size > 0 && (uint64_t)size > reading->left)
		return error_set(err, ERROR_LIMIT, "it unpacks to more than %llu MB",
				 (unsigned long long)reading->what->limit_bytes >> 20);
	if (size > 0)
		reading->left -= (uint64_t)size;
	/* Hard links of a cpio: only the last one comes with the bytes. */
	if (archive_entry_filetype(entry) != AE_IFREG || size < ELF_MIN || !path || !*path)
		return true;
	if (!reading->what->wanted)
		return list_member(reading, archive, entry, path, err);
	return strcmp(path, reading->what->wanted) != 0 || unpack_member(reading, archive, err);
}

static bool each_member(struct reading *reading, struct archive *archive,
			bool (*member)(struct reading *, struct archive *, struct archive_entry *,
				       struct error *),
			struct error *err)
{
	struct archive_entry *entry;
	int rc = ARCHIVE_EOF;

	while (!reading->is_found &&
	       ((rc = archive_read_next_header(archive, &entry)) == ARCHIVE_OK ||
		rc == ARCHIVE_WARN)) {
		/* What lies between members is unpacked as well. */
		if ((uint64_t)archive_filter_bytes(archive, 0) / 2 > reading->what->limit_bytes)
			return error_set(err, ERROR_LIMIT, "it unpacks to more than %llu MB",
					 (unsigned long long)reading->what->limit_bytes >> 20);
		if (!member(reading, archive, entry, err))
			return false;
	}
	return reading->is_found || rc == ARCHIVE_EOF ||
	       archive_fail(archive, "it is damaged", err);
}

static bool read_tar(struct reading *reading, struct error *err)
{
	struct archive *tar = archive_read_new();
	bool ok;

	if (!tar)
		return error_set(err, ERROR_MEMORY, "no memory for a tar's reader");
	ok = allow_filters(tar, err) && archive_read_support_format_tar(tar) == ARCHIVE_OK &&
	     (archive_read_open(tar, reading, NULL, read_inner, NULL) == ARCHIVE_OK ||
	      archive_fail(tar, "its data.tar", err)) &&
	     each_member(reading, tar, read_member, err);
	archive_read_free(tar);
	return ok;
}

/* What the package's outer layer has: parts of a .deb, or a .rpm's files. */
static bool read_part(struct reading *reading, struct archive *archive, struct archive_entry *entry,
		      struct error *err)
{
	const char *name = archive_entry_pathname(entry);

	if ((archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_AR)
		return read_member(reading, archive, entry, err);
	return !name || strncmp(name, "data.tar", 8) != 0 || read_tar(reading, err);
}

static bool read_outer(struct reading *reading, struct error *err)
{
	struct archive *outer = reading->outer;

	return (archive_read_support_filter_rpm(outer) == ARCHIVE_OK ||
		archive_fail(outer, "libarchive", err)) &&
	       allow_filters(outer, err) && archive_read_support_format_ar(outer) == ARCHIVE_OK &&
	       archive_read_support_format_cpio(outer) == ARCHIVE_OK &&
	       (archive_read_open(outer, reading, NULL, read_package, NULL) == ARCHIVE_OK ||
		archive_fail(outer, "it is neither a .deb nor a .rpm", err)) &&
	       each_member(reading, outer, read_part, err) && flush_lines(reading, err);
}

bool package_read(const struct package_reading *what, struct error *err)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	bool ok = false;

	if (!reading || !(reading->outer = archive_read_new())) {
		free(reading);
		return error_set(err, ERROR_MEMORY, "no memory for a package's reader");
	}
	reading->what = what;
	reading->left = what->limit_bytes;
	ok = read_outer(reading, err);
	if (ok && what->wanted && !reading->is_found)
		ok = error_set(err, ERROR_NOT_FOUND, "it no longer has that file");
	archive_read_free(reading->outer);
	if (reading->image.bytes)
		munmap(reading->image.bytes, reading->image.room);
	free(reading);
	return ok;
}
