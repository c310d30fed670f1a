/* SPDX-License-Identifier: Apache-2.0 */
/* What the golden files hold was read with eu-readelf -h -l -S -n; their makers are the .yaml files
 * beside them. */
#include "common/elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

#define LITTLE64 "tests/golden/elf/little64.elf"
#define BIG32    "tests/golden/elf/big32.elf"

static bool read_path(const char *path, struct elf_image *image, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && elf_image_read(fd, image, err);

	if (fd >= 0)
		close(fd);
	return ok;
}

static uint8_t *load(const char *path, size_t *length)
{
	static uint8_t bytes[1 << 16];
	FILE *file = fopen(path, "rb");

	*length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
	if (file)
		fclose(file);
	return bytes;
}

static void check_little64(const struct elf_image *image)
{
	char hex[BUILD_ID_HEX];

	CHECK(image->is_64bit && !image->is_big_endian);
	CHECK_NUMBER(image->type, ET_DYN);
	CHECK_NUMBER(image->machine, EM_X86_64);
	CHECK_NUMBER(image->entry, 0x2340);
	CHECK_TEXT(build_id_format(&image->gnu, hex), "00112233445566778899aabbccddeeff01234567");
	CHECK_TEXT(image->go_id, "abc123/def456/ghi78");
	CHECK_NUMBER(image->segment_count, 4);
	CHECK_NUMBER(image->segments[1].offset, 0x300);
	CHECK_NUMBER(image->segments[1].address, 0x2300);
	CHECK_NUMBER(image->segments[1].file_size, 0x100);
	CHECK_NUMBER(image->segments[2].memory_size, 0x1000);
	CHECK(image->segments[1].is_executable && !image->segments[0].is_executable);
	CHECK(image->has_symtab && !image->has_dynsym);
	CHECK(image->has_debug_info && image->has_go_pclntab);
	CHECK_TEXT(image->debuglink, "a.debug");
	CHECK_NUMBER(image->debuglink_crc, 0x12345678);
}

static void test_little64(void)
{
	struct elf_image image;
	size_t length;
	const uint8_t *bytes = load(LITTLE64, &length);

	CHECK(read_path(LITTLE64, &image, NULL));
	check_little64(&image);
	CHECK(elf_image_read_bytes(bytes, length, &image, NULL));
	check_little64(&image);
}

static void test_big32(void)
{
	struct elf_image image;
	char hex[BUILD_ID_HEX];

	CHECK(read_path(BIG32, &image, NULL));
	CHECK(!image.is_64bit && image.is_big_endian);
	CHECK_NUMBER(image.type, ET_EXEC);
	CHECK_NUMBER(image.machine, EM_PPC);
	CHECK_NUMBER(image.entry, 0x10000200);
	CHECK_TEXT(build_id_format(&image.gnu, hex), "cafebabe12345678");
	CHECK_TEXT(image.go_id, "");
	CHECK_NUMBER(image.segment_count, 1);
	CHECK_NUMBER(image.segments[0].address, 0x10000000);
	CHECK(!image.has_symtab && image.has_dynsym);
	CHECK(!image.has_debug_info); /* it is NOBITS there */
	CHECK_TEXT(image.debuglink, "b.debug");
	CHECK_NUMBER(image.debuglink_crc, 0x12345678);
}

static void test_addresses(void)
{
	static const struct {
		uint64_t offset, address;
		bool found;
	} cases[] = {
		{0, 0, true},          {0x2ff, 0x2ff, true},  {0x300, 0x2300, true},
		{0x340, 0x2340, true}, {0x3ff, 0x23ff, true}, /* the data segment has these bytes
								 too: code wins */
		{0x400, 0x9000, true}, {0x47f, 0x907f, true}, {0x480, 0xb480, true}, /* only data */
		{0x4ff, 0xb4ff, true}, {0x500, 0, false},     {UINT64_MAX, 0, false},
	};
	struct elf_image image;

	CHECK(read_path(LITTLE64, &image, NULL));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t address = 0;

		CHECK_NUMBER(elf_image_address(&image, cases[i].offset, &address), cases[i].found);
		CHECK_NUMBER(address, cases[i].address);
	}
}

static enum error_kind kind_of(const void *bytes, size_t length)
{
	struct elf_image image;
	struct error err = {0};

	return elf_image_read_bytes(bytes, length, &image, &err) ? ERROR_NONE : err.kind;
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static void test_refused(void)
{
	size_t length;
	uint8_t *bytes = load(LITTLE64, &length), saved[64];

	memcpy(saved, bytes, sizeof saved);
	CHECK_NUMBER(kind_of("", 0), ERROR_FORMAT);
	CHECK_NUMBER(kind_of("#!/bin/sh\n", 10), ERROR_FORMAT);
	CHECK_NUMBER(kind_of("!<arch>\n", 8), ERROR_FORMAT);
	CHECK_NUMBER(kind_of(bytes, 63), ERROR_FORMAT);
	CHECK_NUMBER(kind_of(bytes, 64), ERROR_FORMAT); /* headers lie outside */
	put(bytes + 32, length, 8);                     /* e_phoff */
	CHECK_NUMBER(kind_of(bytes, length), ERROR_FORMAT);
	memcpy(bytes, saved, sizeof saved);
	put(bytes + 40, UINT64_MAX - 63, 8); /* e_shoff */
	CHECK_NUMBER(kind_of(bytes, length), ERROR_FORMAT);
	memcpy(bytes, saved, sizeof saved);
	put(bytes + 60, 0, 2); /* e_shnum 0: the count would be in section 0 */
	CHECK_NUMBER(kind_of(bytes, length), ERROR_LIMIT);
	memcpy(bytes, saved, sizeof saved);
	put(bytes + 56, 0xffff, 2); /* e_phnum */
	CHECK_NUMBER(kind_of(bytes, length), ERROR_LIMIT);
	memcpy(bytes, saved, sizeof saved);
	bytes[4] = 3;
	CHECK_NUMBER(kind_of(bytes, length), ERROR_FORMAT);
	memcpy(bytes, saved, sizeof saved);
	put(bytes + 64 + 56 + 8, UINT64_MAX, 8); /* second segment's p_offset: wraps around */
	CHECK_NUMBER(kind_of(bytes, length), ERROR_FORMAT);
}

static void test_too_many_segments(void)
{
	enum { SEGMENTS = ELF_IMAGE_SEGMENTS + 1 };
	static uint8_t bytes[64 + SEGMENTS * 56];
	size_t length;

	memcpy(bytes, load(LITTLE64, &length), 64);
	put(bytes + 40, 0, 8); /* no sections */
	put(bytes + 60, 0, 4);
	put(bytes + 32, 64, 8);
	put(bytes + 56, SEGMENTS, 2);
	for (int i = 0; i < SEGMENTS; i++)
		put(bytes + 64 + 56 * i, PT_LOAD, 4);
	CHECK_NUMBER(kind_of(bytes, sizeof bytes), ERROR_LIMIT);
	put(bytes + 56, SEGMENTS - 1, 2);
	CHECK_NUMBER(kind_of(bytes, sizeof bytes), ERROR_NONE);
}

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

/* 200 files with some bytes changed or the end gone: any answer is right that comes back. */
static void test_mutations(void)
{
	static const char *const paths[] = {LITTLE64, BIG32};
	struct elf_image image;
	uint64_t address;
	int read = 0;

	for (int round = 0; round < 200; round++) {
		size_t length, cut;
		const uint8_t *golden = load(paths[round % 2], &length);
		uint8_t *bytes;

		cut = round % 5 ? length : next_random() % length;
		bytes = malloc(cut + !cut);
		memcpy(bytes, golden, cut);
		for (uint32_t i = 0; cut && i < 1 + next_random() % 8; i++)
			bytes[next_random() % (i % 2       ? cut
					       : cut < 400 ? cut
							   : 400)] = (uint8_t)next_random();
		if (elf_image_read_bytes(bytes, cut, &image, NULL)) {
			read++;
			elf_image_address(&image, next_random(), &address);
		}
		free(bytes);
	}
	CHECK(read > 20 && read < 200); /* the changes matter, and not all of them are fatal */
}

/* A sparse file of a terabyte whose header promises tables all over it: no memory, no time. */
static void test_sparse(void)
{
	char path[] = "/tmp/elf-image-XXXXXX";
	struct elf_image image;
	size_t length;
	int fd = mkstemp(path);
	const uint8_t *bytes = load(LITTLE64, &length);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length ||
	    ftruncate(fd, (off_t)1 << 40)) {
		SKIP("no sparse files in /tmp");
	} else {
		uint8_t sections[2] = {0xff, 0xff};
		struct error err = {0};

		CHECK(elf_image_read(fd, &image, NULL));
		CHECK(pwrite(fd, sections, 2, 60) == 2);
		CHECK(!elf_image_read(fd, &image, &err));
		CHECK_NUMBER(err.kind, ERROR_LIMIT);
	}
	if (fd >= 0)
		close(fd);
	unlink(path);
}

static void test_bare_notes(void)
{
	static const uint8_t notes[] = {
		6, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 'L', 'i', 'n', 'u', 'x', 0, 0, 0, 1, 2, 3, 4,
		4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,   1,   2, 3, 4, 5, 6, 7, 8,
	};
	struct build_id id = {0};
	char hex[BUILD_ID_HEX];
	int read = 0;

	CHECK(elf_notes_build_id(notes, sizeof notes, &id));
	CHECK_TEXT(build_id_format(&id, hex), "0102030405060708");
	for (size_t length = 0; length < sizeof notes; length++)
		read += elf_notes_build_id(notes, length, &id);
	CHECK_NUMBER(read, 0);
	CHECK(!elf_notes_build_id("", 0, &id));
}

/* A program's own file and the C library against eu-readelf, when that is there. */
static void test_real_file(const char *path)
{
	char command[256], line[512], hex[BUILD_ID_HEX], theirs[BUILD_ID_HEX] = "";
	struct elf_image image;
	unsigned loads = 0;
	FILE *pipe;

	snprintf(command, sizeof command, "eu-readelf -n -l %s 2>/dev/null", path);
	pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof line, pipe)) {
		loads += strstr(line, "  LOAD ") != NULL;
		sscanf(line, " Build ID: %128s", theirs);
	}
	if (!pipe || pclose(pipe) || !loads) {
		SKIP("eu-readelf (elfutils) is not installed");
		return;
	}
	CHECK(read_path(path, &image, NULL));
	CHECK_TEXT(image.gnu.length ? build_id_format(&image.gnu, hex) : "", theirs);
	CHECK_NUMBER(image.segment_count, loads);
}

int main(void)
{
	char self[64];

	test_little64();
	test_big32();
	test_addresses();
	test_refused();
	test_too_many_segments();
	test_mutations();
	test_sparse();
	test_bare_notes();
	snprintf(self, sizeof self, "/proc/%d/exe", (int)getpid());
	test_real_file(self);
	test_real_file("/bin/sh");
	return checks_done();
}
