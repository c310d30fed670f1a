/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/command_line.h"

#include <string.h>
#include <strings.h>

#include "node-agent/processes/printed_text.h"

enum { COMM_LENGTH = 15 };

static const char hidden[] = "***";

bool command_line_is_secret(const char *name, size_t length)
{
	static const char *const words[] = {"password", "passwd", "passphrase",
					    "secret",   "token",  "api-key",
					    "api_key",  "apikey", "credential"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (size_t at = 0; at + strlen(words[i]) <= length; at++)
			if (!strncasecmp(name + at, words[i], strlen(words[i])))
				return true;
	return false;
}

/* Where a word of an argument ends: an argument may be a whole command for a shell, or a URL. */
static size_t word_length(const char *at, size_t length)
{
	size_t i = 0;

	while (i < length && !strchr(" ;&?\t\n", at[i]))
		i++;
	return i;
}

/* The X of scheme://user:X@. */
static bool find_url_password(const char *at, size_t length, size_t *from, size_t *until)
{
	const char *start = memmem(at, length, "://", 3), *end = at + length, *colon, *host;

	if (!start)
		return false;
	start += 3;
	host = memchr(start, '@', (size_t)(end - start));
	colon = host ? memchr(start, ':', (size_t)(host - start)) : NULL;
	if (!colon)
		return false;
	*from = (size_t)(colon + 1 - at);
	*until = (size_t)(host - at);
	return true;
}

static void put_word(struct printed_text *line, const char *at, size_t length)
{
	const char *equals = memchr(at, '=', length);
	size_t name = equals ? (size_t)(equals - at) : 0, from, until;

	if (equals && command_line_is_secret(at, name)) {
		printed_text_put(line, at, name + 1);
		printed_text_put(line, hidden, sizeof hidden - 1);
	} else if (find_url_password(at, length, &from, &until)) {
		printed_text_put(line, at, from);
		printed_text_put(line, hidden, sizeof hidden - 1);
		printed_text_put(line, at + until, length - until);
	} else {
		printed_text_put(line, at, length);
	}
}

/* Returns whether the next one is the secret. */
static bool put_argument(struct printed_text *line, const char *at, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t word = word_length(at + i, length - i);

		put_word(line, at + i, word);
		i += word;
		if (i < length)
			printed_text_put(line, at + i++, 1);
	}
	return length && *at == '-' && !memchr(at, '=', length) &&
	       command_line_is_secret(at, length);
}

void command_line_write(const char *bytes, size_t length, enum command_lines what,
			char out[COMMAND_LINE_ROOM])
{
	struct printed_text line = {
		.to = out, .room = COMMAND_LINE_ROOM, .is_cut = length == COMMAND_LINE_READ};
	bool is_hidden = false;

	if (what == COMMAND_LINES_OFF)
		length = 0;
	while (length && !bytes[length - 1])
		length--;
	for (size_t at = 0; at < length;) {
		size_t size = strnlen(bytes + at, length - at);

		if (at)
			printed_text_put(&line, " ", 1);
		if (is_hidden && bytes[at] != '-')
			printed_text_put(&line, hidden, sizeof hidden - 1), is_hidden = false;
		else
			is_hidden = put_argument(&line, bytes + at, size);
		at += size + 1;
		if (what == COMMAND_LINES_NAME)
			break;
	}
	printed_text_end(&line);
}

static size_t name_length(const char *at, size_t length, bool has_spaces)
{
	size_t i = 0;

	while (i < length && (has_spaces || at[i] != ' '))
		i++;
	return i;
}

bool command_line_name(const char *bytes, size_t length, const char *comm,
		       char out[COMMAND_NAME_ROOM])
{
	const bool has_spaces = strchr(comm, ' ');

	if (strlen(comm) != COMM_LENGTH)
		return false;
	for (size_t at = 0, number = 0; at < length && number < 2; number++) {
		size_t all = strnlen(bytes + at, length - at);
		size_t size = name_length(bytes + at, all, has_spaces);
		const char *slash = memrchr(bytes + at, '/', size);
		const char *name = slash ? slash + 1 : bytes + at;

		size -= (size_t)(name - (bytes + at));
		if (size > COMM_LENGTH && !memcmp(name, comm, COMM_LENGTH)) {
			struct printed_text line = {.to = out, .room = COMMAND_NAME_ROOM};

			printed_text_put(&line, name, size);
			out[line.length] = '\0';
			return true;
		}
		at += all + 1;
	}
	return false;
}

bool environment_value(const char *bytes, size_t length, const char *name, char *out, size_t room)
{
	const size_t name_size = strlen(name);

	for (size_t at = 0; at < length;) {
		size_t size = strnlen(bytes + at, length - at);

		if (size > name_size + 1 && bytes[at + name_size] == '=' &&
		    !memcmp(bytes + at, name, name_size)) {
			struct printed_text line = {.to = out, .room = room};

			printed_text_put(&line, bytes + at + name_size + 1, size - name_size - 1);
			out[line.length] = '\0';
			return true;
		}
		at += size + 1;
	}
	return false;
}
