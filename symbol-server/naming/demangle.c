/* SPDX-License-Identifier: Apache-2.0 */
/* Door to libiberty. Names are strangers' texts: the demangled one is cut off at a limit by leaving
 * from inside of libiberty's callback, since a few hundred bytes can ask for an endless one. What
 * libiberty calls its recursion limit refuses every C++ name of more than 1024 bytes, and those of
 * templates have several thousand: there the length is the limit. Reading one takes at most 190
 * bytes of stack per byte (measured, of nested pointers to functions), and writing has a limit of
 * depth of its own. */
#include "symbol-server/naming/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

enum {
	MANGLED_MAX = 8 << 10, /* bytes; longer ones are shown as they are */
	PLAIN_MAX = 64 << 10,
	CHUNKS_MAX = 1 << 20, /* calls of the callback */
};

struct style {
	int cxx, rust;
};

/* What c++filt -p sets; and for Rust c++filt -p -i, without a name's hash and its crate's. */
static const struct style shown = {DMGL_ANSI | DMGL_VERBOSE | DMGL_NO_RECURSE_LIMIT, DMGL_ANSI};
/* What c++filt sets. */
static const struct style whole = {DMGL_ANSI | DMGL_VERBOSE | DMGL_PARAMS | DMGL_NO_RECURSE_LIMIT,
				   DMGL_ANSI | DMGL_VERBOSE | DMGL_PARAMS};

struct text {
	char bytes[PLAIN_MAX];
	size_t length;
	unsigned chunks;
	jmp_buf too_long;
};

/* A suffix compilers add to a function's parts and clones: ".isra.0", ".cold". Those that never
 * come without digits are names where there are none: Go's pkg.(*T).clone. */
static const struct {
	const char *text;
	bool has_digits;
} suffixes[] = {
	{"cold", false},    {"isra", true},     {"part", true},        {"constprop", true},
	{"lto_priv", true}, {"llvm", true},     {"localalias", false}, {"warm", false},
	{"hot", true},      {"unlikely", true}, {"clone", true},       {"cfi_jt", false},
};

static bool is_number(const char *text, size_t length)
{
	return length && strspn(text, "0123456789") >= length;
}

static bool is_suffix(const char *text, size_t length, bool has_digits)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (strlen(suffixes[i].text) == length && !memcmp(suffixes[i].text, text, length))
			return has_digits || !suffixes[i].has_digits;
	return false;
}

/* Compilers of C, C++ and Rust name nothing like Go's "path/pkg.(*T).cold". */
static bool is_go(const char *name)
{
	return name[strcspn(name, "/([")] != '\0';
}

/* Length of the name without compiler suffixes and without its version. */
static size_t bare_length(const char *name)
{
	const char *version = strchr(name, '@');
	size_t length = version && version != name ? (size_t)(version - name) : strlen(name);

	while (!is_go(name)) {
		size_t dot = length, end;
		bool has_digits;

		while (dot && name[dot - 1] != '.')
			dot--;
		if (dot < 2)
			return length;
		end = length;
		has_digits = is_number(name + dot, end - dot);
		if (has_digits) { /* ".isra.0": the word is before it */
			end = dot - 1;
			for (dot = end; dot && name[dot - 1] != '.';)
				dot--;
			if (dot < 2)
				return length;
		}
		if (!is_suffix(name + dot, end - dot, has_digits))
			return length;
		length = dot - 1;
	}
	return length;
}

static void add_chunk(const char *bytes, size_t length, void *context)
{
	struct text *text = context;

	if (++text->chunks > CHUNKS_MAX || length >= sizeof(text->bytes) - text->length)
		longjmp(text->too_long, 1);
	if (length) /* with nothing to add, bytes can be NULL */
		memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
}

/* The order of cplus_demangle(): Rust's old mangling looks like C++'s and is tried first. Leaving
 * by longjmp() loses nothing in the C++ part, which has its memory on the stack, and at most one
 * identifier's buffer in the Rust part. */
static bool demangle_text(const char *mangled, struct style style, struct text *text)
{
	if (setjmp(text->too_long))
		return false;
	text->length = text->chunks = 0;
	if (rust_demangle_callback(mangled, style.rust, add_chunk, text))
		return true;
	text->length = text->chunks = 0;
	return cplus_demangle_v3_callback(mangled, style.cxx, add_chunk, text);
}

/* "_ZdlPv@plt": a stub's name is the one of what it calls, and says that it is a stub. */
static const char stub_mark[] = "@plt";

static bool is_stub(const char *name)
{
	const char *version = strchr(name, '@');

	return version && version != name && !strcmp(version, stub_mark);
}

static const char *bare_name(const char *name, size_t length, struct arena *arena)
{
	return name[length] ? arena_text(arena, name, length) : name;
}

/* NULL: it is not mangled, or memory. */
static const char *plain_name(const char *bare, size_t mark, struct style style,
			      struct arena *arena)
{
	struct text text;

	if (bare[0] != '_' || (bare[1] != 'Z' && bare[1] != 'R') ||
	    !demangle_text(bare, style, &text) || text.length + mark > sizeof(text.bytes))
		return NULL;
	memcpy(text.bytes + text.length, stub_mark, mark);
	return arena_text(arena, text.bytes, text.length + mark);
}

static size_t mark_length(const char *name)
{
	return is_stub(name) ? sizeof(stub_mark) - 1 : 0;
}

const char *demangle(const char *name, struct arena *arena)
{
	size_t length = bare_length(name), mark = mark_length(name);
	const char *bare, *plain;

	if (length > MANGLED_MAX)
		return name;
	bare = bare_name(name, length, arena);
	if (!bare)
		return name;
	plain = plain_name(bare, mark, shown, arena);
	if (!plain && mark)
		plain = arena_text(arena, name, length + mark);
	return plain ? plain : bare;
}

const char *demangle_signature(const char *name, struct arena *arena)
{
	size_t length = bare_length(name);
	const char *bare = length > MANGLED_MAX ? NULL : bare_name(name, length, arena);

	return bare ? plain_name(bare, mark_length(name), whole, arena) : NULL;
}

/* --- without template arguments --- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "operator<", "operator<<", "operator->" … at: the first character after the word. */
static size_t operator_length(const char *name, const char *at)
{
	static const char word[] = "operator";
	size_t length = sizeof(word) - 1;

	if ((size_t)(at - name) < length || strncmp(at - length, word, length) ||
	    ((size_t)(at - name) > length && is_word(at[-(ptrdiff_t)length - 1])))
		return 0;
	return strspn(at, "<>=-");
}

/* Template arguments follow a word or "::"; Rust's "<T as Trait>::f" does not and stays. */
static bool opens_arguments(const char *name, const char *at)
{
	return at > name && (is_word(at[-1]) || at[-1] == ':');
}

const char *demangle_simple(const char *name, struct arena *arena)
{
	size_t length = strlen(name), used = 0;
	unsigned depth = 0;
	char *out;

	if (!strchr(name, '<'))
		return name;
	out = arena_alloc(arena, length + 1);
	if (!out)
		return name;
	for (const char *at = name; *at;) {
		size_t operator_signs = depth ? 0 : operator_length(name, at);

		if (operator_signs) {
			memcpy(out + used, at, operator_signs);
			used += operator_signs;
			at += operator_signs;
			continue;
		}
		if (*at == '<' && (depth || opens_arguments(name, at))) {
			if (!depth && at[-1] == ':' && used > 2)
				used -= 2; /* Rust's "Vec::<T>::new" */
			depth++;
		} else if (*at == '>' && depth && at[-1] != '-') {
			depth--;
		} else if (!depth) {
			out[used++] = *at;
		}
		at++;
	}
	out[used] = 0;
	return depth ? name : out; /* unbalanced: not what we thought it was */
}
