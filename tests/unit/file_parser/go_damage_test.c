/* SPDX-License-Identifier: Apache-2.0 */
/* Go programs whose table is damaged, or that end early. */
#include "node-agent/file_parser/go/go_table.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/file_parser/go_programs.h"

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Bytes of the table change, at its beginning more often; the file ends early. Whatever comes out
 * is in order. */
static void test_damage(const char *path)
{
	enum { MUTATIONS = 200 };
	struct code_section section = {0};
	struct code_file file;
	int fd = memfd_create("damaged", MFD_CLOEXEC), original = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = MAP_FAILED;
	uint32_t random = 1;
	unsigned refused = 0, disordered = 0;
	struct stat st;

	if (original >= 0 && fstat(original, &st) == 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, original, 0);
	CHECK(bytes != MAP_FAILED && code_file_open(&file, original) &&
	      (code_file_section(&file, ".gopclntab", &section) ||
	       code_file_section(&file, ".data.rel.ro.gopclntab", &section)));
	for (int i = 0; section.size && i < MUTATIONS; i++) {
		bool is_cut = i % 8 == 7;
		off_t length = is_cut ? (off_t)(next_random(&random) % (uint64_t)st.st_size)
				      : st.st_size;

		if (ftruncate(fd, 0) || pwrite(fd, bytes, (size_t)length, 0) != length)
			break;
		for (int j = 0; j < 64 && !is_cut; j++) {
			uint64_t at = next_random(&random) % (j % 4 && i % 2 ? 72 : section.size);
			uint8_t byte = (uint8_t)next_random(&random);

			if (pwrite(fd, &byte, 1, (off_t)(section.offset + at)) != 1)
				break;
		}
		refused += load(fd) != ROW_FAILURE_NONE;
		disordered += !ascending;
	}
	printf("# %u of %d damaged files refused\n", refused, MUTATIONS);
	CHECK(refused > MUTATIONS / 8);
	CHECK_NUMBER(disordered, 0);
	if (bytes != MAP_FAILED)
		munmap(bytes, (size_t)st.st_size);
	code_file_close(&file);
	if (original >= 0)
		close(original);
	close(fd);
}

static void test_compiler(const char *go)
{
	char path[256];

	if (build(go, &programs[0], path, sizeof path))
		test_damage(path);
	else
		SKIP("go cannot build");
}

int main(void)
{
	each_compiler(test_compiler);
	free(pieces);
	return checks_done();
}
