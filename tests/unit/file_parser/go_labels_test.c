/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's runtime keeps a goroutine's labels, in programs of the Go compilers found here with
 * and without symbols: as gdb has it from their debug information. */
#include "node-agent/file_parser/go/go_labels.h"

#include "tests/unit/file_parser/go_programs.h"

/* The offset of a member as gdb says it; −1: it does not. */
static int offset_of(const char *path, const char *type, const char *member)
{
	FILE *pipe = listing(
		"gdb -nx -batch -ex 'set language c' -ex \"print (int)&((struct '%s' *)0)->%s\" %s "
		"2>/dev/null | sed -n 's/^.1 = //p'",
		type, member, path);
	int offset = -1;

	if (pipe && fscanf(pipe, "%i", &offset) != 1)
		offset = -1;
	if (pipe)
		pclose(pipe);
	return offset;
}

static bool has_symbol(const char *path, const char *name)
{
	return run("nm %s 2>/dev/null | grep -q ' %s$'", path, name);
}

static bool look(const char *path, struct go_labels_place *place)
{
	enum row_failure failure = ROW_FAILURE_NONE;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct code_file file;
	struct go_table *table;
	bool ok = fd >= 0 && code_file_open(&file, fd);

	memset(place, 0xff, sizeof *place);
	if (ok) {
		table = go_table_open(&file, &failure);
		ok = table;
		if (table)
			go_labels_find(&file, table, place);
		go_table_close(table);
		code_file_close(&file);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool build_labels(const char *go, const struct program *program, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", folder, program->name);
	return run("out=%s && cd tests/programs/go_labels && "
		   "export GOTOOLCHAIN=local GO111MODULE=off "
		   "GOCACHE=\"${GOCACHE:-${XDG_CACHE_HOME:-${HOME:-%s}/"
		   ".cache}/go-build}\" && "
		   "CGO_ENABLED=%d %s build %s -o $out . >/dev/null 2>&1",
		   path, folder, program->cgo, go, program->options);
}

static void check_program(const char *go, const struct program *program)
{
	char path[64], stripped[64];
	struct go_labels_place place, same;

	snprintf(stripped, sizeof stripped, "%s/stripped", folder);
	if (!build_labels(go, program, path, sizeof path) ||
	    !run("strip -o %s %s", stripped, path)) {
		SKIP("the Go compiler does not build it");
		return;
	}
	CHECK(look(path, &place));
	CHECK(place.is_defined);
	CHECK_NUMBER(place.is_list, has_symbol(path, "runtime/pprof.mergeLabelSets"));
	if (run("command -v gdb >/dev/null")) {
		CHECK_NUMBER(place.labels, offset_of(path, "runtime.g", "labels"));
		CHECK_NUMBER(place.curg, offset_of(path, "runtime.m", "curg"));
		CHECK_NUMBER(0x30, offset_of(path, "runtime.g", "m")); /* GO_G_M */
	} else {
		SKIP("no gdb");
	}
	CHECK(place.tls < 0 && place.tls % 8 == 0);
	CHECK(look(stripped, &same));
	CHECK(!memcmp(&same, &place, sizeof same));
}

static void check_compiler(const char *go)
{
	static const struct program without = {"without", "", false};
	struct go_labels_place place;
	char path[64];

	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		check_program(go, &programs[i]);
	/* Of tests/programs/unwind/go: it has no labels. */
	if (build(go, &without, path, sizeof path)) {
		CHECK(look(path, &place));
		CHECK_NUMBER(place.is_defined,
			     has_symbol(path, "runtime/pprof.runtime_setProfLabel"));
	}
}

static void check_code(void)
{
	/* Go 1.26: mov %rax,0x160(%rcx); add; ret */
	static const uint8_t new[] = {0x48, 0x8b, 0x0c, 0x24, 0x48, 0x89, 0x81, 0x60,
				      0x01, 0,    0,    0x48, 0x83, 0xc4, 8,    0xc3};
	/* Go 1.20: mov %rax,0x168(%r14) */
	static const uint8_t old[] = {0x75, 0x09, 0x49, 0x89, 0x86, 0x68, 0x01, 0, 0};
	/* a store to the stack, and one elsewhere */
	static const uint8_t stack[] = {0x48, 0x89, 0x84, 0x24, 0x60, 0x01, 0, 0,
					0x48, 0x89, 0x81, 0x60, 0x11, 0,    0};

	CHECK_NUMBER(go_label_store(new, sizeof new), 0x160);
	CHECK_NUMBER(go_label_store(old, sizeof old), 0x168);
	CHECK_NUMBER(go_label_store(stack, sizeof stack), 0);
	for (size_t i = 0; i < 9; i++)
		CHECK_NUMBER(go_label_store(old, i), 0);
}

int main(void)
{
	check_code();
	each_compiler(check_compiler);
	free(pieces);
	return checks_done();
}
