/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/runtime_file.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/file_parser/code/x86_code.h"
#include "node-agent/file_parser/symbol_names.h"

#define LOOP "_PyEval_EvalFrameDefault"

enum {
	LOOP_BYTES_MAX = 1 << 20, /* 40 to 90 KB */
	TARGETS_MAX = 64,         /* pieces of code that the loop jumps into */
	THREAD_BYTES_MAX = 4096,  /* some 2000 */
	LOCK_BYTES_MAX = 1024,    /* 3.6: 176, and some words of the lock's between them */
};

/* --- which one it is --- */

/* Part of the public interface since that version. */
static const struct {
	const char *name;
	uint32_t version;
} first_seen[] = {
	{"PyIter_Send", 0x030a0000},
	{"PyFrame_GetCode", 0x03090000},
	{"PyConfig_InitPythonConfig", 0x03080000},
	{"_PyRuntime", 0x03070000},
	{"_PyThreadState_Current", 0x03060000},
};

static bool read_int(const struct code_file *file, const Elf64_Sym *symbol, uint32_t *value)
{
	uint64_t offset;

	return code_file_offset(file, symbol->st_value, &offset) >= sizeof *value &&
	       code_file_read(file, offset, value, sizeof *value);
}

static uint32_t read_version(const struct code_file *file, const Elf64_Shdr *table)
{
	Elf64_Sym symbol;
	uint32_t version;

	if (symbol_find(file, table, "Py_Version", &symbol))
		return read_int(file, &symbol, &version) && version >> 24 == 3 ? version : 0;
	for (size_t i = 0; i < sizeof first_seen / sizeof *first_seen; i++)
		if (symbol_find(file, table, first_seen[i].name, &symbol))
			return first_seen[i].version;
	return 0;
}

static bool is_range(uint64_t start, uint64_t bytes)
{
	return start && bytes && start + bytes > start;
}

static bool read_table(const struct code_file *file, const Elf64_Shdr *table,
		       struct runtime_symbols *out)
{
	Elf64_Sym loop, state, symbol;

	if (!table || !symbol_find(file, table, LOOP, &loop) ||
	    (!symbol_find(file, table, "_PyRuntime", &state) &&
	     !symbol_find(file, table, "_PyThreadState_Current", &state)) ||
	    !is_range(loop.st_value, loop.st_size) || !is_range(state.st_value, state.st_size))
		return false;
	*out = (struct runtime_symbols){
		.language = RUNTIME_CPYTHON,
		.version = read_version(file, table),
		.state = state.st_value,
		.state_bytes = state.st_size,
		.loop_count = 1,
		.loop = {{loop.st_value, loop.st_value + loop.st_size}},
	};
	/* Of the public interface, by which extensions of another kind of build are refused. */
	if (symbol_find(file, table, "PyModule_Create2TraceRefs", &symbol))
		out->flags |= RUNTIME_TRACES_REFERENCES;
	return true;
}

/* As libthread_db asks for it (glibc's nptl_db/structs.def). */
static uint32_t read_thread_bytes(const struct code_file *file, const Elf64_Shdr *table)
{
	Elf64_Sym symbol;
	uint32_t bytes;

	if (file->machine != EM_AARCH64 || !table ||
	    !symbol_find(file, table, "_thread_db_sizeof_pthread", &symbol) ||
	    !read_int(file, &symbol, &bytes))
		return 0;
	return bytes <= THREAD_BYTES_MAX && bytes % 16 == 0 ? bytes : 0;
}

/* From 3.7 on the lock is in _PyRuntime, whose other locks' threads wait elsewhere: each for a
 * semaphore that is allocated, or on its own stack (Python/thread_pthread.h, parking_lot.c). 3.6
 * has four variables, which are told of where the file has all of its symbols. */
static void read_lock(const struct code_file *file, struct runtime_symbols *out)
{
	static const char *const names[] = {"gil_cond", "gil_mutex", "switch_cond", "switch_mutex"};
	const Elf64_Shdr *table = symbol_table(file, SHT_SYMTAB);
	uint64_t start = UINT64_MAX, end = 0;
	Elf64_Sym symbol;

	if (out->version >= 0x03070000) {
		out->lock = out->state;
		out->lock_bytes = out->state_bytes;
		return;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!table || !symbol_find(file, table, names[i], &symbol) ||
		    !is_range(symbol.st_value, symbol.st_size))
			return;
		start = symbol.st_value < start ? symbol.st_value : start;
		if (symbol.st_value + symbol.st_size > end)
			end = symbol.st_value + symbol.st_size;
	}
	if (end - start > LOCK_BYTES_MAX)
		return;
	out->lock = start;
	out->lock_bytes = end - start;
}

/* By the function that Python calls when it loads it; without the line before greenlet 1.0. */
static bool has_greenlets(const struct code_file *file)
{
	const Elf64_Shdr *table = symbol_table(file, SHT_DYNSYM);
	Elf64_Sym symbol;

	return table && (symbol_find(file, table, "PyInit__greenlet", &symbol) ||
			 symbol_find(file, table, "PyInit_greenlet", &symbol));
}

/* --- HotSpot --- */

static const char *const hotspot_names[HOTSPOT_SYMBOL_COUNT] = {
#define HOTSPOT_SYMBOL(number, name) name,
	HOTSPOT_SYMBOLS(HOTSPOT_SYMBOL)
#undef HOTSPOT_SYMBOL
};

/* They are exported for debuggers, of programs that have it linked in as well. */
static bool read_hotspot(const struct code_file *file, const Elf64_Shdr *table,
			 struct runtime_symbols *out)
{
	struct runtime_symbols found = {.language = RUNTIME_HOTSPOT};
	Elf64_Sym symbol;

	for (size_t i = 0; i < HOTSPOT_SYMBOL_COUNT; i++) {
		if (!table || !symbol_find(file, table, hotspot_names[i], &symbol) ||
		    !symbol.st_value)
			return false;
		found.hotspot[i] = symbol.st_value;
	}
	*out = found;
	return true;
}

/* By what each has that can be embedded: HotSpot has been told by its tables. */
static bool is_other_jvm(const struct code_file *file)
{
	const Elf64_Shdr *table = symbol_table(file, SHT_DYNSYM);
	Elf64_Sym symbol;

	return table && symbol_find(file, table, "JNI_CreateJavaVM", &symbol) &&
	       symbol_find(file, table, "JNI_GetCreatedJavaVMs", &symbol);
}

/* --- a file --- */

void runtime_file_read(const struct code_file *file, struct runtime_symbols *out)
{
	const Elf64_Shdr *table = symbol_table(file, SHT_DYNSYM);

	*out = (struct runtime_symbols){0};
	if (read_hotspot(file, table, out))
		return;
	if (read_table(file, table, out) || read_table(file, symbol_table(file, SHT_SYMTAB), out)) {
		read_lock(file, out);
		return;
	}
	out->thread_bytes = read_thread_bytes(file, table);
	if (has_greenlets(file))
		out->flags = RUNTIME_HAS_GREENLETS;
	if (is_other_jvm(file))
		out->flags |= RUNTIME_IS_OTHER_JVM;
}

/* --- the loop's parts --- */

static bool is_in(const struct runtime_symbols *out, uint64_t address)
{
	for (uint32_t i = 0; i < out->loop_count; i++)
		if (address >= out->loop[i].start && address < out->loop[i].end)
			return true;
	return false;
}

static void add_part(struct runtime_symbols *out, uint64_t start, uint64_t end)
{
	if (out->loop_count == RUNTIME_LOOP_PARTS_MAX || start >= end || is_in(out, start))
		return;
	out->loop[out->loop_count].start = start;
	out->loop[out->loop_count++].end = end;
}

struct part_search {
	struct symbol_names names;
	struct runtime_symbols *out;
};

/* gcc, clang and BOLT call a part by the function's name, a dot, and what it is. */
static bool look_at_part(void *context, const void *row, uint32_t number)
{
	struct part_search *search = context;
	Elf64_Sym symbol;

	(void)number;
	memcpy(&symbol, row, sizeof symbol);
	if (symbol.st_shndx != SHN_UNDEF && symbol_names_have(&search->names, symbol.st_name) &&
	    is_range(symbol.st_value, symbol.st_size))
		add_part(search->out, symbol.st_value, symbol.st_value + symbol.st_size);
	return true;
}

static void add_named(const struct code_file *file, const Elf64_Shdr *table,
		      struct runtime_symbols *out)
{
	struct part_search search = {.out = out};

	symbol_names_find(file, &file->sections[table->sh_link], LOOP ".", strlen(LOOP "."),
			  &search.names);
	if (search.names.count)
		symbol_rows_each(file, table, sizeof(Elf64_Sym), SYMBOL_ROWS_MAX, look_at_part,
				 &search);
}

static bool take_rule(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	(void)start;
	(void)end;
	*(struct unwind_rule *)context = *rule;
	return false;
}

/* Where a function is jumped to, its caller's frame lies just below the return address; in a part
 * of the loop it lies below the loop's own. */
static bool is_function(struct call_frames *frames, uint64_t target)
{
	struct unwind_rule rule = {.cfa = UNWIND_CFA_NONE};

	call_frames_pieces(frames, target, target + 1, take_rule, &rule);
	return rule.cfa != UNWIND_CFA_REGISTER ||
	       (rule.cfa_register == UNWIND_REGISTER_SP && rule.cfa_offset == 8);
}

struct jumps {
	struct call_frames *frames;
	struct runtime_symbols *out;
	unsigned count; /* what it jumps into */
	struct {
		uint64_t start, end;
	} seen[TARGETS_MAX];
};

static void jump_to(struct jumps *jumps, uint64_t target)
{
	uint64_t start, end;

	if (is_in(jumps->out, target) || jumps->count == TARGETS_MAX)
		return;
	for (unsigned i = 0; i < jumps->count; i++)
		if (target >= jumps->seen[i].start && target < jumps->seen[i].end)
			return;
	if (!call_frames_function(jumps->frames, target, &start, &end))
		return;
	jumps->seen[jumps->count].start = start;
	jumps->seen[jumps->count++].end = end;
	if (!is_function(jumps->frames, target))
		add_part(jumps->out, start, end);
}

static void follow_jumps(const uint8_t *code, size_t length, uint64_t address, struct jumps *jumps)
{
	for (size_t at = 0; at < length;) {
		const struct x86_instruction done = x86_decode(code + at, length - at);

		at += done.length;
		if (done.effect == X86_JUMP || done.effect == X86_BRANCH)
			jump_to(jumps, address + at + (uint64_t)(int64_t)done.value);
	}
}

static void add_jumped(const struct code_file *file, struct call_frames *frames,
		       struct runtime_symbols *out)
{
	struct jumps *jumps = calloc(1, sizeof *jumps);
	const uint64_t start = out->loop[0].start, length = out->loop[0].end - start;
	uint8_t *code = jumps && length <= LOOP_BYTES_MAX ? malloc(length) : NULL;
	uint64_t offset;

	if (code && code_file_offset(file, start, &offset) >= length &&
	    code_file_read(file, offset, code, length)) {
		jumps->frames = frames;
		jumps->out = out;
		follow_jumps(code, length, start, jumps);
	}
	free(code);
	free(jumps);
}

void runtime_file_loop(const struct code_file *file, struct call_frames *frames,
		       struct runtime_symbols *out)
{
	const Elf64_Shdr *table = symbol_table(file, SHT_SYMTAB);

	if (out->language != RUNTIME_CPYTHON)
		return;
	if (table)
		add_named(file, table, out);
	else if (frames && file->machine == EM_X86_64)
		add_jumped(file, frames, out);
}
