/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's runtime remembers and forgets memory, in programs of the Go compilers found here with
 * and without symbols: as nm and objdump have it. */
#include "node-agent/file_parser/go/go_memory.h"

#include "tests/unit/file_parser/go_programs.h"

/* The hexadecimal number that a listing begins with, and ends it; 0: none. */
static uint64_t first_number(FILE *pipe)
{
	uint64_t number = 0;

	if (pipe && fscanf(pipe, "%" SCNx64, &number) != 1)
		number = 0;
	if (pipe)
		pclose(pipe);
	return number;
}

/* The address nm has for the name; 0: none. */
static uint64_t symbol(const char *path, const char *name)
{
	return first_number(listing("nm %s 2>/dev/null | grep ' %s$'", path, name));
}

/* The first instruction behind the function's first jump. */
static uint64_t behind_check(const char *path, const char *name)
{
	return first_number(listing("objdump -d --no-show-raw-insn --disassemble='%s' %s | "
				    "grep -A1 -m1 jbe | tail -1",
				    name, path));
}

static bool look(const char *path, struct memory_places *places)
{
	enum row_failure failure = ROW_FAILURE_NONE;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct code_file file;
	struct go_table *table;
	bool ok = fd >= 0 && code_file_open(&file, fd);

	memset(places, 0, sizeof *places);
	if (ok) {
		table = go_table_open(&file, &failure);
		ok = table;
		if (table)
			go_memory_places(&file, table, places);
		go_table_close(table);
		code_file_close(&file);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static uint64_t at(const struct memory_places *places, enum memory_place_kind kind)
{
	const struct memory_place *place = memory_place_find(places, kind);

	return place ? place->at : 0;
}

/* Go's executables have their first segment at offset 0; its code follows in one piece. */
static void check_program(const char *path, const char *stripped)
{
	struct memory_places places;
	uint64_t base = symbol(path, "runtime.text") & ~UINT64_C(0xffff) & -UINT64_C(0x400000);

	CHECK(look(path, &places));
	CHECK_NUMBER(at(&places, MEMORY_GO_TAKEN) + base,
		     behind_check(path, "runtime.setprofilebucket"));
	CHECK_NUMBER(at(&places, MEMORY_GO_GIVEN) + base, behind_check(path, "runtime.mProf_Free"));
	CHECK_NUMBER(at(&places, MEMORY_GO_RATE), symbol(path, "runtime.MemProfileRate"));
	if (stripped) {
		struct memory_places same;

		CHECK(look(stripped, &same));
		CHECK(!memcmp(&same, &places, sizeof same));
	}
}

static void check_compiler(const char *go)
{
	static const struct program whole = {"whole", "", false};
	static const struct program pie = {"pie", "-buildmode=pie", false};
	char path[64], stripped[64], pie_path[64];

	snprintf(stripped, sizeof stripped, "%s/stripped", folder);
	if (!build(go, &whole, path, sizeof path) || !run("strip -o %s %s", stripped, path)) {
		SKIP("the Go compiler builds nothing");
		return;
	}
	check_program(path, stripped);
	if (build(go, &pie, pie_path, sizeof pie_path))
		check_program(pie_path, NULL);
}

static void check_code(void)
{
	/* Go 1.16: mov rcx, fs:-8; cmp sp, 16(rcx); jbe, short and long */
	static const uint8_t old[] = {0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48,
				      0x3b, 0x61, 0x10, 0x0f, 0x86, 1,    2,    3,    4,    0x90};
	static const uint8_t new[] = {0x49, 0x3b, 0x66, 0x10, 0x76, 0x3e, 0x55, 0x48, 0x89, 0xe5};
	static const uint8_t large[] = {0x4c, 0x8d, 0x64, 0x24, 0x80, 0x4d, 0x3b, 0x66, 0x10, 0x76};
	/* mov rdx, 16(rip); call */
	static const uint8_t reads[] = {0x48, 0x8b, 0x15, 0x10, 0,    0,    0, 0xe8, 0, 0,
					0,    0,    0x48, 0x8b, 0x15, 0x10, 0, 0,    0};
	bool is_by_stack;

	CHECK_NUMBER(go_stack_check(old, sizeof old, &is_by_stack), 19);
	CHECK(is_by_stack);
	CHECK_NUMBER(go_stack_check(new, sizeof new, &is_by_stack), 6);
	CHECK(!is_by_stack);
	CHECK(!go_stack_check(large, sizeof large, &is_by_stack));
	for (size_t i = 0; i < sizeof new; i++)
		CHECK(!go_stack_check(new, i, &is_by_stack));
	CHECK_NUMBER(go_variable_read(reads, sizeof reads, 0x1000), 0x1017);
	CHECK(!go_variable_read(reads, 6, 0x1000));
}

int main(void)
{
	check_code();
	each_compiler(check_compiler);
	free(pieces);
	return checks_done();
}
