/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "symbol-server/naming/named_stacks.h"

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

const char *name_simplify(const char *name, struct arena *arena)
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
