/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/jit/jit_name.h"

#include <string.h>

/* A borrowed run of characters. */
struct run {
	const char *at;
	size_t length;
};

struct name {
	struct run function, file;
	uint32_t line;
	enum jit_language language;
};

static bool take_prefix(struct run *from, const char *prefix)
{
	const size_t length = strlen(prefix);

	if (from->length < length || memcmp(from->at, prefix, length) != 0)
		return false;
	from->at += length;
	from->length -= length;
	return true;
}

static bool ends_with(const struct run *run, const char *end)
{
	const size_t length = strlen(end);

	return run->length >= length && !memcmp(run->at + run->length - length, end, length);
}

static const char *find(const struct run *run, const char *what)
{
	return memmem(run->at, run->length, what, strlen(what));
}

static struct run until(const struct run *run, const char *end)
{
	return (struct run){run->at, (size_t)(end - run->at)};
}

static struct run behind(const struct run *run, const char *at)
{
	return (struct run){at, run->length - (size_t)(at - run->at)};
}

enum cut { CUT_NONE, CUT_NUMBER, CUT_TOO_LARGE };

/* Takes ":123" off the end. */
static enum cut cut_number(struct run *run, uint32_t *number)
{
	size_t at = run->length;
	uint64_t value = 0, unit = 1;

	for (; at && run->at[at - 1] >= '0' && run->at[at - 1] <= '9'; at--) {
		value += (uint64_t)(run->at[at - 1] - '0') * unit;
		if (value > INT32_MAX)
			return CUT_TOO_LARGE;
		unit = unit < 10000000000 ? 10 * unit : unit;
	}
	if (unit == 1 || !at || run->at[at - 1] != ':')
		return CUT_NONE;
	run->length = at - 1;
	*number = (uint32_t)value;
	return CUT_NUMBER;
}

/* "function file:line:column", before V8 11 without the column; a file's path may have spaces, and
 * a function's name, too ("get size"). */
static void split_script(struct run rest, struct name *name)
{
	static const char *const begins[] = {" /", " file:", " node:", " internal/", " "};
	const char *space = NULL;
	uint32_t line;

	if (rest.length && strchr("*~^+", *rest.at)) {
		rest.at++;
		rest.length--;
	}
	name->function = rest;
	if (cut_number(&rest, &line) != CUT_NUMBER || cut_number(&rest, &line) == CUT_TOO_LARGE)
		return; /* by the second it was the column that the first has cut */
	for (size_t i = 0; i < sizeof begins / sizeof *begins && !space; i++)
		space = find(&rest, begins[i]);
	if (!space)
		return;
	name->line = line;
	name->function = until(&rest, space);
	name->file = behind(&rest, space + 1);
}

static bool is_v8(const struct run *all, struct name *name)
{
	static const char *const scripts[] = {
		"JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "Wasm:"};
	static const char *const others[] = {"Builtin:", "BytecodeHandler:", "Stub:", "RegExp:"};
	struct run rest = *all;

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		if (take_prefix(&rest, scripts[i])) {
			split_script(rest, name);
			if (!name->function.length)
				name->function = (struct run){"(anonymous)", 11};
			return true;
		}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (take_prefix(&rest, others[i]))
			return true; /* called so as a whole */
	return false;
}

static bool is_python(const struct run *all, struct name *name)
{
	struct run rest = *all;
	const char *colon;

	if (!take_prefix(&rest, "py::"))
		return false;
	colon = memchr(rest.at, ':', rest.length);
	name->function = colon ? until(&rest, colon) : rest;
	if (colon)
		name->file = behind(&rest, colon + 1);
	return true;
}

static bool is_luajit(const struct run *all, struct name *name)
{
	struct run rest = *all;
	const char *colons;

	if (!take_prefix(&rest, "TRACE_") || !(colons = find(&rest, "::")))
		return false;
	for (const char *at = rest.at; at < colons; at++)
		if (*at < '0' || *at > '9')
			return false;
	name->function = name->file = behind(&rest, colons + 2);
	if (cut_number(&name->file, &name->line) != CUT_NUMBER)
		name->file = (struct run){0};
	return true;
}

static bool is_beam(const struct run *all, struct name *name)
{
	struct run rest = *all;

	if (!take_prefix(&rest, "$") || !memchr(rest.at, ':', rest.length))
		return false;
	name->function = rest;
	return true;
}

static bool is_dotnet(const struct run *all, struct name *name)
{
	static const char *const tiers[] = {"[PreJIT]",
					    "[Tier0]",
					    "[OptimizedTier1]",
					    "[MinOptJitted]",
					    "[Optimized]",
					    "[QuickJitted]",
					    "[ReJIT]",
					    "[OptimizedTier1OSR]",
					    "[InstrumentedTier0]",
					    "[InstrumentedTier1]"};

	for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
		if (ends_with(all, tiers[i]) && all->length > strlen(tiers[i])) {
			name->function.length -= strlen(tiers[i]);
			return true;
		}
	return false;
}

static struct name take_apart(const struct run *all)
{
	struct name name = {.function = *all};

	if (is_v8(all, &name))
		name.language = JIT_V8;
	else if (is_python(all, &name))
		name.language = JIT_PYTHON;
	else if (is_luajit(all, &name))
		name.language = JIT_LUAJIT;
	else if (is_beam(all, &name))
		name.language = JIT_BEAM;
	else if (is_dotnet(all, &name))
		name.language = JIT_DOTNET;
	return name;
}

bool jit_name_set(struct jit_chunk *chunk, struct jit_entry *entry, const char *text,
		  uint64_t length)
{
	const struct run all = {text, (size_t)length};
	const struct name name = take_apart(&all);

	entry->name = jit_chunk_text(chunk, name.function.at, name.function.length);
	entry->file = jit_chunk_text(chunk, name.file.at, name.file.length);
	entry->line = name.line;
	entry->language = name.language;
	return entry->name && (entry->file || !name.file.length);
}
