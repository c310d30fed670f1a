/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/lifetimes.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"

static const char lifetime_mark[] = "\x1f" CONTEXT_LIFETIME "\x1e";
static const char pid_mark[] = "\x1fprocess.pid\x1e";
static const char path_mark[] = "\x1fprocess.executable.path\x1e";
static const char program_mark[] = "\x1f"
				   "farflame.program\x1e";

struct lifetimes {
	lifetimes_text_fn *text;
	const void *texts;
	struct hash_table index; /* lifetime → number of the context that tells of it */
};

struct lifetime_name { /* in a context */
	const char *at;
	size_t length;
};

static bool find_lifetime(const char *context, struct lifetime_name *name)
{
	const char *at = strstr(context, lifetime_mark);

	if (!at)
		return false;
	name->at = at + sizeof lifetime_mark - 1;
	name->length = strcspn(name->at, "\x1f");
	return name->length > 0;
}

/* Calls for each attribute of the process but its lifetime: from its \x1f on. NULL: no more. */
static const char *next_of_process(const char *at, size_t *length)
{
	for (at = strchr(at, CONTEXT_KEY); at; at = strchr(at + 1, CONTEXT_KEY)) {
		size_t key = strcspn(at + 1, "\x1e\x1f");

		if (at[1 + key] != CONTEXT_VALUE || !sample_context_is_process_key(at + 1, key) ||
		    (key == sizeof CONTEXT_LIFETIME - 1 && !memcmp(at + 1, CONTEXT_LIFETIME, key)))
			continue;
		*length = 1 + strcspn(at + 1, "\x1f");
		return at;
	}
	return NULL;
}

static uint64_t hash_of(const struct lifetime_name *name)
{
	return hash_bytes(name->at, name->length, 0);
}

/* The context that tells of it; 0: none. */
static uint32_t find(const struct lifetimes *lifetimes, const struct lifetime_name *name)
{
	const uint64_t hash = hash_of(name);
	struct lifetime_name other;

	HASH_TABLE_EACH (n, &lifetimes->index, hash) {
		const char *text = lifetimes->text(lifetimes->texts, n);

		if (find_lifetime(text, &other) && other.length == name->length &&
		    !memcmp(other.at, name->at, name->length))
			return n;
	}
	return 0;
}

struct lifetimes *lifetimes_new(lifetimes_text_fn *text, const void *texts, uint32_t numbers)
{
	struct lifetimes *lifetimes = calloc(1, sizeof *lifetimes);

	if (!lifetimes)
		return NULL;
	lifetimes->text = text;
	lifetimes->texts = texts;
	hash_table_init(&lifetimes->index, numbers);
	return lifetimes;
}

const char *lifetime_of_teller(const char *context, size_t *length)
{
	struct lifetime_name name;
	size_t unused;

	if (!find_lifetime(context, &name) || !next_of_process(context, &unused))
		return NULL;
	*length = name.length;
	return name.at;
}

bool lifetimes_add(struct lifetimes *lifetimes, uint32_t number)
{
	struct lifetime_name name;

	name.at = lifetime_of_teller(lifetimes->text(lifetimes->texts, number), &name.length);
	return !name.at || find(lifetimes, &name) ||
	       hash_table_add(&lifetimes->index, hash_of(&name), number);
}

void lifetimes_free(struct lifetimes *lifetimes)
{
	if (!lifetimes)
		return;
	hash_table_release(&lifetimes->index);
	free(lifetimes);
}

static void append(char out[CONTEXT_BYTES_MAX], size_t *used, const char *text, size_t length)
{
	if (length >= CONTEXT_BYTES_MAX - *used)
		return;
	memcpy(out + *used, text, length);
	*used += length;
	out[*used] = '\0';
}

uint32_t lifetimes_teller(const struct lifetimes *lifetimes, const char *context)
{
	struct lifetime_name name;
	size_t length;

	return find_lifetime(context, &name) && !next_of_process(context, &length)
		       ? find(lifetimes, &name)
		       : 0;
}

static bool is_pid(const char *attribute)
{
	return !strncmp(attribute, pid_mark, sizeof pid_mark - 1);
}

bool lifetime_is_told(const char *joined)
{
	size_t length;
	const char *at = next_of_process(joined, &length);

	while (at && is_pid(at))
		at = next_of_process(at + 1, &length);
	return at;
}

void lifetime_reduce(const char *context, char out[CONTEXT_BYTES_MAX])
{
	struct lifetime_name name;
	size_t used = 0, length;

	out[0] = '\0';
	if (!find_lifetime(context, &name))
		return;
	append(out, &used, lifetime_mark, sizeof lifetime_mark - 1);
	append(out, &used, name.at, name.length);
	for (const char *at = next_of_process(context, &length); at;
	     at = next_of_process(at + 1, &length))
		append(out, &used, at, length);
}

static void append_program(char out[CONTEXT_BYTES_MAX], size_t *used)
{
	const char *path = strstr(out, path_mark), *name;
	size_t length;

	if (!path || strstr(out, program_mark))
		return;
	path += sizeof path_mark - 1;
	length = strcspn(path, "\x1f");
	name = memrchr(path, '/', length);
	name = name ? name + 1 : path;
	length -= (size_t)(name - path);
	if (!length || *used + sizeof program_mark + length >= CONTEXT_BYTES_MAX)
		return;
	append(out, used, program_mark, sizeof program_mark - 1);
	append(out, used, name, length);
}

const char *lifetimes_join(const struct lifetimes *lifetimes, const char *context,
			   char out[CONTEXT_BYTES_MAX])
{
	struct lifetime_name name;
	size_t used = 0, length;
	const char *told;
	uint32_t teller;

	if (!find_lifetime(context, &name) || strlen(context) >= CONTEXT_BYTES_MAX)
		return context;
	append(out, &used, context, strlen(context));
	if (!strstr(context, pid_mark) &&
	    used + sizeof pid_mark + name.length < CONTEXT_BYTES_MAX) {
		append(out, &used, pid_mark, sizeof pid_mark - 1);
		append(out, &used, name.at, strcspn(name.at, ".\x1f"));
	}
	teller = lifetimes_teller(lifetimes, context);
	told = teller ? lifetimes->text(lifetimes->texts, teller) : "";
	for (told = next_of_process(told, &length); told; told = next_of_process(told + 1, &length))
		if (!is_pid(told))
			append(out, &used, told, length);
	append_program(out, &used);
	return out;
}
