/* SPDX-License-Identifier: Apache-2.0 */
/* This very program: what the linker says of it is known by its symbols, and by readelf. */
#include "node-agent/file_parser/code/code_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

extern const char __ehdr_start[];
static const char marker[] = "bytes that are found again in the file";

static void test_bytes(int fd)
{
	uint64_t address = (uint64_t)(marker - __ehdr_start), offset = 0;
	struct code_file file;
	char got[sizeof marker];

	CHECK(code_file_open(&file, fd));
	CHECK(code_file_offset(&file, address, &offset) >= sizeof got);
	CHECK(code_file_read(&file, offset, got, sizeof got));
	CHECK_TEXT(got, marker);
	CHECK_NUMBER(code_file_offset(&file, UINT64_MAX, &offset), 0);
	CHECK_NUMBER(code_file_offset(&file, UINT64_C(1) << 47, &offset), 0);
	CHECK(code_file_read(&file, file.bytes - 1, got, 1));
	CHECK(!code_file_read(&file, file.bytes - 1, got, 2));
	CHECK(!code_file_read(&file, file.bytes, got, 1));
	CHECK(!code_file_read(&file, UINT64_MAX, got, 2));
	CHECK(code_file_read(&file, file.bytes, got, 0));
	code_file_close(&file);
}

/* Every section with bytes that readelf lists by a name of its own. */
static void test_sections(int fd)
{
	/* By its name: where this runs emulated, /proc has the emulator. */
	char path[256] = "", command[384];
	struct code_section section;
	struct code_file file;
	unsigned found = 0, differ = 0;
	char line[512];
	FILE *list;

	CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
	snprintf(command, sizeof command,
		 "readelf -SW %s 2>/dev/null | sed 's/^ *\\[ *[0-9]*\\]//'", path);
	list = popen(command, "r");
	CHECK(code_file_open(&file, fd));
	while (list && fgets(line, sizeof line, list)) {
		char name[64], type[32];
		uint64_t address, offset, size;

		if (sscanf(line, " %63s %31s %" SCNx64 " %" SCNx64 " %" SCNx64, name, type,
			   &address, &offset, &size) != 5 ||
		    !strcmp(type, "NOBITS") || !strcmp(name, "NULL"))
			continue;
		found++;
		if (!code_file_section(&file, name, &section) || section.address != address ||
		    section.offset != offset || section.size != size) {
			printf("# %s", line);
			differ++;
		}
	}
	if (list)
		pclose(list);
	if (!found)
		SKIP("no readelf");
	CHECK(!found || (found > 20 && !differ));
	CHECK(!code_file_section(&file, ".bss", &section)); /* it has no bytes in the file */
	CHECK(!code_file_section(&file, ".eh_fram", &section));
	CHECK(!code_file_section(&file, ".eh_frame_", &section));
	CHECK(!code_file_section(&file, "", &section) || section.size == 0);
	code_file_close(&file);
}

/* A copy of the headers with some changed: refused, or as if it had no sections. */
static void test_refused(int self)
{
	static const struct {
		const char *what;
		size_t at;
		uint16_t value;
		bool opens;
	} cases[] = {
		{"nothing changed", 4, ELFCLASS64 | ELFDATA2LSB << 8, true},
		{"32-bit", 4, ELFCLASS32 | ELFDATA2LSB << 8, false},
		{"big-endian", 4, ELFCLASS64 | ELFDATA2MSB << 8, false},
		{"arm64", offsetof(Elf64_Ehdr, e_machine), EM_AARCH64, true},
		{"another machine", offsetof(Elf64_Ehdr, e_machine), EM_S390, false},
		{"too many segments", offsetof(Elf64_Ehdr, e_phnum), CODE_SEGMENTS_MAX + 1, false},
		{"small segment headers", offsetof(Elf64_Ehdr, e_phentsize), 32, false},
		{"segment headers outside", offsetof(Elf64_Ehdr, e_phoff) + 4, 1, false},
		{"section headers outside", offsetof(Elf64_Ehdr, e_shoff) + 4, 1, true},
		{"names outside", offsetof(Elf64_Ehdr, e_shstrndx), 9999, true},
		{"too many sections", offsetof(Elf64_Ehdr, e_shnum), CODE_SECTIONS_MAX + 1, true},
	};
	struct code_section section;
	struct code_file file;
	uint8_t bytes[8192];
	int fd = memfd_create("headers", MFD_CLOEXEC);

	CHECK(pread(self, bytes, sizeof bytes, 0) == sizeof bytes);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		printf("# %s\n", cases[i].what);
		CHECK(pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes);
		CHECK(pwrite(fd, &cases[i].value, 2, (off_t)cases[i].at) == 2);
		CHECK_NUMBER(code_file_open(&file, fd), cases[i].opens);
		if (cases[i].opens)
			CHECK(!code_file_section(&file, ".text", &section));
		if (cases[i].opens)
			code_file_close(&file);
	}
	CHECK(ftruncate(fd, 60) == 0 && !code_file_open(&file, fd));
	CHECK(ftruncate(fd, 0) == 0 && !code_file_open(&file, fd));
	CHECK(!code_file_open(&file, -1));
	close(fd);
}

/* A file that shrinks under its reader. */
static void test_shrinks(int self)
{
	int fd = memfd_create("shrinks", MFD_CLOEXEC);
	struct code_file file;
	uint8_t bytes[8192];

	CHECK(pread(self, bytes, sizeof bytes, 0) == sizeof bytes);
	CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes && code_file_open(&file, fd));
	CHECK(code_file_read(&file, 4096, bytes, 4096));
	CHECK(ftruncate(fd, 6000) == 0);
	CHECK(!code_file_read(&file, 4096, bytes, 4096));
	code_file_close(&file);
	close(fd);
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	test_bytes(fd);
	test_sections(fd);
	test_refused(fd);
	test_shrinks(fd);
	close(fd);
	return checks_done();
}
