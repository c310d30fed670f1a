/* SPDX-License-Identifier: Apache-2.0 */
/* Where C's functions that take memory are, and where in them a probe is cheap: in the C library
 * that runs this, as nm and objdump have it. */
#include "node-agent/file_parser/malloc_names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/file_parser/probe_place.h"
#include "tests/check.h"

static void check_places(void)
{
	static const struct {
		const char *code;
		size_t length, place;
	} cases[] = {
		{"\x41\x54\x55\x53", 4, 0},                     /* push %r12 */
		{"\x80\x3d\x01\x02\x14\x00\x00\x41\x54", 9, 7}, /* cmpb …(%rip); push %r12 */
		{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 8, 4},     /* endbr64; push %rbp */
		{"\x48\x89\xf8\x74\x05", 5, 3},                 /* mov %rdi,%rax; je */
		{"\x31\xc0\xeb\x10", 4, 2},                     /* xor %eax,%eax; jmp */
		{"\x49\x89\xd4\x41\x54", 5, 3},                 /* mov %rdx,%r12; push %r12 */
		{"\x48\x89\xc7\x55\x53", 5, 0},                 /* mov %rax,%rdi: an argument */
		{"\x48\x8b\x3d\x00\x00\x00\x00\x55", 8, 0},     /* mov …(%rip),%rdi */
		{"\x4c\x8b\x05\x00\x00\x00\x00\x55", 8, 0},     /* mov …(%rip),%r8 */
		{"\x48\x83\xec\x10\x55", 5, 0},                 /* sub $16,%rsp */
		{"\x48\xf7\xe2\x70\x05", 5, 0},                 /* mul %rdx; jo */
		{"\x48\x85\xff", 3, 0},                         /* test %rdi,%rdi, and no more */
		{"\x48", 1, 0},
		{"", 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK_NUMBER(probe_place((const uint8_t *)cases[i].code, cases[i].length),
			     cases[i].place);
	CHECK(probe_is_cheap((const uint8_t *)"\x41\x57", 2));
	CHECK(probe_is_cheap((const uint8_t *)"\x0f\x84", 2));
	CHECK(!probe_is_cheap((const uint8_t *)"\x0f\xaf", 2));
	CHECK(!probe_is_cheap((const uint8_t *)"\x48\x89", 2));
	CHECK(!probe_is_cheap((const uint8_t *)"\x55", 1));
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	snprintf(path, 256, "%s", info->dlpi_name);
	return 1;
}

/* What a command says, a number. */
static uint64_t __attribute__((format(printf, 1, 2))) ask(const char *format, ...)
{
	char command[512], line[64] = "";
	va_list arguments;
	FILE *pipe;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	pipe = popen(command, "r");
	if (pipe && !fgets(line, sizeof line, pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	return strtoull(line, NULL, 16);
}

static void check_libc(void)
{
	struct memory_places places = {0};
	char path[256] = "";
	struct code_file file;
	unsigned kinds = 0;
	int fd;

	dl_iterate_phdr(find_libc, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !code_file_open(&file, fd)) {
		SKIP("the C library is not a file here");
		return;
	}
	malloc_names_find(&file, &places);
	CHECK(places.count >= 4 && places.count <= 24);
	for (uint32_t i = 0; i < places.count; i++) {
		const struct memory_place *place = &places.items[i];

		kinds |= 1U << place->kind;
		/* Code lies in the file where it lies in memory, less the segment's own shift. */
		CHECK_NUMBER(ask("nm -D --defined-only %s | grep -ic '^%016" PRIx64
				 " .* \\(malloc\\|calloc\\|realloc\\|memalign\\|aligned_alloc\\|"
				 "posix_memalign\\|reallocarray\\)@'",
				 path, place->at) > 0,
			     1);
		CHECK_NUMBER(ask("objdump -d %s --start-address=0x%" PRIx64
				 " --stop-address=0x%" PRIx64
				 " | grep -o '^ *[0-9a-f]*:' | tail -1",
				 path, place->at + place->skip, place->at + place->skip + 1),
			     place->at + place->skip);
	}
	CHECK(kinds >> MEMORY_MALLOC & 1 && kinds >> MEMORY_CALLOC & 1 &&
	      kinds >> MEMORY_REALLOC & 1 && kinds >> MEMORY_POSIX_MEMALIGN & 1);
	code_file_close(&file);
	close(fd);
}

int main(void)
{
	check_places();
	check_libc();
	return checks_done();
}
