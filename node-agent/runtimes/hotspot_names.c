/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_names.h"

#include <string.h>

enum { CHARACTER_UNKNOWN = 0xfffd };

/* --- modified UTF-8 → UTF-8 --- */

/* One unit of UTF-16, or CHARACTER_UNKNOWN. */
static uint32_t unit_read(const uint8_t *bytes, size_t length, size_t *at)
{
	const uint8_t first = bytes[(*at)++];
	const size_t more = first < 0x80             ? 0
			    : (first & 0xe0) == 0xc0 ? 1
			    : (first & 0xf0) == 0xe0 ? 2
						     : 3;
	uint32_t unit = more ? first & (0x3f >> more) : first;

	if (more == 3)
		return CHARACTER_UNKNOWN;
	for (size_t i = 0; i < more; i++) {
		if (*at == length || (bytes[*at] & 0xc0) != 0x80)
			return CHARACTER_UNKNOWN;
		unit = unit << 6 | (bytes[(*at)++] & 0x3f);
	}
	return unit;
}

static bool is_low(uint32_t unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* A character; two surrogates are one. */
static uint32_t character_read(const uint8_t *bytes, size_t length, size_t *at)
{
	const uint32_t unit = unit_read(bytes, length, at);
	size_t next = *at;

	if (unit >= 0xd800 && unit < 0xdc00 && next < length) {
		const uint32_t low = unit_read(bytes, length, &next);

		if (is_low(low)) {
			*at = next;
			return 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
		}
	}
	if (unit >= 0xd800 && unit < 0xe000)
		return CHARACTER_UNKNOWN;
	return unit < ' ' || unit == 0x7f ? '?' : unit;
}

static void put(struct hotspot_text *text, uint32_t c)
{
	const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	text->is_cut |= bytes >= text->room - text->length;
	if (text->is_cut)
		return;
	for (size_t i = bytes; i-- > 1; c >>= 6)
		text->to[text->length + i] = (char)(0x80 | (c & 0x3f));
	text->to[text->length] = (char)(first[bytes] | c);
	text->length += bytes;
	text->to[text->length] = '\0';
}

static void add(struct hotspot_text *text, const uint8_t *bytes, size_t length, bool is_class)
{
	for (size_t at = 0; at < length && !text->is_cut;) {
		const uint32_t c = character_read(bytes, length, &at);

		put(text, is_class && c == '/' ? '.' : c);
	}
}

void hotspot_text_add(struct hotspot_text *text, const uint8_t *bytes, size_t length)
{
	add(text, bytes, length, false);
}

/* --- classes --- */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Without what a hidden class (15) has behind its name, +0x7f…, or other tools show, /0x7f…, /12.
 */
static size_t without_address(const uint8_t *bytes, size_t length)
{
	size_t at = length;

	while (at && is_hex(bytes[at - 1]))
		at--;
	if (at >= 2 && at < length && bytes[at - 1] == 'x' && bytes[at - 2] == '0')
		at -= 2;
	return at > 1 && at < length && (bytes[at - 1] == '+' || bytes[at - 1] == '/') &&
			       is_digit(bytes[at])
		       ? at - 1
		       : length;
}

/* What the virtual machine and libraries call the classes they make: behind it is a number, or
 * anything. */
static const struct {
	const char *what;
	bool is_number;
} made[] = {
	{"$$Lambda", false},
	{"LambdaForm$MH", false},
	{"LambdaForm$DMH", false},
	{"LambdaForm$BMH", false},
	{"GeneratedMethodAccessor", true},
	{"GeneratedConstructorAccessor", true},
	{"GeneratedSerializationConstructorAccessor", true},
	{"$Proxy", true},
	{"ByCGLIB", false},
	{"SpringCGLIB", false},
	{"$ByteBuddy", false},
	{"$HibernateProxy", false},
	{"$MockitoMock", false},
};

/* Where the last one of that text in it ends; 0: there is none. */
static size_t end_of(const uint8_t *bytes, size_t length, const char *what)
{
	const size_t size = strlen(what);

	for (size_t end = length; end >= size; end--)
		if (!memcmp(bytes + end - size, what, size))
			return end;
	return 0;
}

static bool has_digits_only(const uint8_t *bytes, size_t from, size_t to)
{
	while (from < to && is_digit(bytes[from]))
		from++;
	return from == to;
}

static size_t without_number(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		const size_t end = end_of(bytes, length, made[i].what);

		if (end && (!made[i].is_number || has_digits_only(bytes, end, length)))
			return end;
	}
	return length;
}

void hotspot_text_add_class(struct hotspot_text *text, const uint8_t *bytes, size_t length)
{
	static const char proxies[] = "jdk/proxy"; /* a package for each loader: jdk.proxy2 */
	const size_t head = sizeof proxies - 1;
	size_t skip = head;

	length = without_number(bytes, without_address(bytes, length));
	if (length > head && !memcmp(bytes, proxies, head)) {
		while (skip < length && is_digit(bytes[skip]))
			skip++;
		add(text, bytes, head, true);
		bytes += skip;
		length -= skip;
	}
	add(text, bytes, length, true);
}

/* --- Scala --- */

static const struct {
	const char *name;
	char character;
} operators[] = {
	{"tilde", '~'},   {"eq", '='},      {"less", '<'}, {"greater", '>'}, {"bang", '!'},
	{"hash", '#'},    {"percent", '%'}, {"up", '^'},   {"amp", '&'},     {"bar", '|'},
	{"times", '*'},   {"div", '/'},     {"plus", '+'}, {"minus", '-'},   {"colon", ':'},
	{"bslash", '\\'}, {"qmark", '?'},   {"at", '@'},
};

/* Behind a '$': how long the operator's name is that stands there; 0: none does. */
static size_t operator_at(const char *text, char *character)
{
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		const size_t length = strlen(operators[i].name);

		if (strncmp(text, operators[i].name, length) != 0)
			continue;
		/* No other word: the name ends, or the next one begins */
		if (text[length] >= 'a' && text[length] <= 'z')
			continue;
		*character = operators[i].character;
		return length;
	}
	return 0;
}

void hotspot_text_decode_scala(struct hotspot_text *text)
{
	size_t to = 0;

	for (size_t from = 0; from < text->length; to++) {
		const size_t length = text->to[from] == '$'
					      ? operator_at(text->to + from + 1, &text->to[to])
					      : 0;

		if (!length)
			text->to[to] = text->to[from];
		from += 1 + length;
	}
	text->length = to;
	text->to[to] = '\0';
}
