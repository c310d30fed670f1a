/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sample_context.h"

#include <stdio.h>
#include <string.h>

#include "symbol-server/store/attribute_labels.h"

static const char id_key[] = "thread.id", id_name[] = "thread_id", any_prefix[] = "attr.";
static const char folded_prefix[] = "attr_"; /* of a key with _ for its dots */

static const struct {
	const char *name, *key;
} of_process[] = {
#define LABEL(name_, key_) {name_, key_},
	PROCESS_LABELS(LABEL)
#undef LABEL
};

enum { OF_PROCESS = sizeof of_process / sizeof *of_process };

static const char *process_key(const char *name)
{
	for (size_t i = 0; i < OF_PROCESS; i++)
		if (!strcmp(name, of_process[i].name))
			return of_process[i].key;
	return NULL;
}

/* NULL: not of a process. */
static const char *process_name(const char *key)
{
	for (size_t i = 0; i < OF_PROCESS; i++)
		if (!strcmp(key, of_process[i].key))
			return of_process[i].name;
	return NULL;
}

bool sample_context_has_name(const char *name)
{
	return !strcmp(name, "thread") || !strcmp(name, id_name) || strchr(name, '.') ||
	       process_key(name) || !strncmp(name, folded_prefix, sizeof folded_prefix - 1);
}

static const char *key_of(const char *name)
{
	if (!strcmp(name, id_name))
		return id_key;
	if (process_key(name))
		return process_key(name);
	if (strncmp(name, any_prefix, sizeof any_prefix - 1) &&
	    strncmp(name, folded_prefix, sizeof folded_prefix - 1))
		return name;
	return name + sizeof any_prefix - 1;
}

bool sample_context_is_process_key(const char *key, size_t length)
{
	char text[CONTEXT_KEY_MAX + 1];

	if (length >= sizeof text)
		return false;
	memcpy(text, key, length);
	text[length] = '\0';
	return process_name(text) || !strcmp(text, CONTEXT_LIFETIME);
}

static bool is_key(const char *at, const char *key, size_t length, bool is_folded)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != key[i] && !(is_folded && at[i] == '.' && key[i] == '_'))
			return false;
	return at[length] == CONTEXT_VALUE;
}

/* The same with _ for any of its dots. */
static bool is_key_as_written(const char *key, const char *written)
{
	for (; *key && (*key == *written || (*key == '.' && *written == '_')); key++)
		written++;
	return !*key && !*written;
}

struct found {
	const char *key, *value; /* in the context; NULL: none */
	size_t key_length, length;
};

static bool find_key(const char *context, const char *key, bool is_folded, struct found *found)
{
	found->key_length = strlen(key);
	for (const char *at = strchr(context, CONTEXT_KEY); at; at = strchr(at, CONTEXT_KEY)) {
		at++;
		if (!is_key(at, key, found->key_length, is_folded))
			continue;
		found->key = at;
		found->value = at + found->key_length + 1;
		found->length = strcspn(found->value, "\x1f");
		return true;
	}
	*found = (struct found){0};
	return false;
}

/* The key as written first: user_id and user.id are two. Only attr_KEY may say _ for a dot. */
static bool find(const char *context, const char *name, struct found *found)
{
	return find_key(context, key_of(name), false, found) ||
	       (!strncmp(name, folded_prefix, sizeof folded_prefix - 1) &&
		find_key(context, key_of(name), true, found));
}

bool sample_context_is_of_process(const char *name)
{
	char key[CONTEXT_KEY_MAX + 1];

	snprintf(key, sizeof key, "%s", key_of(name));
	if (!strncmp(name, folded_prefix, sizeof folded_prefix - 1))
		for (size_t i = 0; i < OF_PROCESS; i++)
			if (is_key_as_written(of_process[i].key, key))
				return true;
	return process_name(key);
}

void sample_context_get(const char *context, const char *name, char *out, size_t room)
{
	struct found found = {.value = context, .length = strcspn(context, "\x1f")};

	if (strcmp(name, "thread") != 0)
		find(context, name, &found);
	if (found.length >= room)
		found.length = room - 1;
	if (found.length)
		memcpy(out, found.value, found.length);
	out[found.length] = 0;
}

void sample_context_reduce(const char *context, const char *const *names, unsigned count,
			   char out[CONTEXT_BYTES_MAX])
{
	size_t used = 0;

	out[0] = 0;
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(names[i], "thread")) {
			sample_context_get(context, names[i], out, CONTEXT_BYTES_MAX / 2);
			used = strlen(out);
			break;
		}
	for (unsigned i = 0; i < count; i++) {
		struct found found;

		if (!strcmp(names[i], "thread") || !find(context, names[i], &found) ||
		    used + found.key_length + found.length + 3 > CONTEXT_BYTES_MAX)
			continue;
		used += (size_t)snprintf(out + used, CONTEXT_BYTES_MAX - used, "%c%.*s%c%.*s",
					 CONTEXT_KEY, (int)found.key_length, found.key,
					 CONTEXT_VALUE, (int)found.length, found.value);
	}
}

bool sample_context_each(const char *context,
			 bool (*fn)(void *to, const char *name, const char *value), void *to)
{
	char name[CONTEXT_KEY_MAX + 8], label[LABEL_NAME_BYTES], value[CONTEXT_BYTES_MAX];

	sample_context_get(context, "thread", value, sizeof value);
	if (*value && !fn(to, "thread", value))
		return false;
	for (const char *at = strchr(context, CONTEXT_KEY); at; at = strchr(at, CONTEXT_KEY)) {
		const char *key = ++at;
		size_t length = strcspn(key, "\x1e\x1f");
		bool is_plain;

		if (key[length] != CONTEXT_VALUE || length > CONTEXT_KEY_MAX)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)length, key);
		if (!strcmp(name, CONTEXT_LIFETIME))
			continue;
		label_name_resolve(name, label);
		is_plain = !strchr(name, '.') || strcmp(name, label) != 0;
		snprintf(name, sizeof name, "%s%.*s", is_plain ? any_prefix : "", (int)length, key);
		if (!strcmp(name, id_key))
			strcpy(name, id_name);
		if (process_name(name))
			strcpy(name, process_name(name));
		at += length + 1;
		length = strcspn(at, "\x1f");
		snprintf(value, sizeof value, "%.*s", (int)length, at);
		if (!fn(to, name, value))
			return false;
	}
	return true;
}
