/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/contexts.h"

#include <stdio.h>

#include "common/hash_table.h"

struct context_entry {
	struct context_request request;
	struct text text;
};

/* As selectors write label names. */
static bool is_key(struct text name)
{
	for (uint32_t i = 0; i < name.length; i++) {
		char c = name.at[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!is_letter && !(i && (c == '.' || (c >= '0' && c <= '9'))))
			return false;
	}
	return name.length && name.length <= CONTEXT_KEY_MAX;
}

void context_request_add(struct context_request *request, const struct dictionary *dictionary,
			 uint32_t index)
{
	const struct dictionary_attribute *attribute = &dictionary->attributes[index];

	if (attribute->value.kind == VALUE_NONE ||
	    (attribute->value.kind == VALUE_TEXT && !attribute->value.text.length))
		return;
	if (!is_key(attribute->name) ||
	    (attribute->key == KEY_PROCESS
		     ? request->of_process == CONTEXT_PROCESS_MAX
		     : request->count - request->of_process == CONTEXT_OTHERS_MAX)) {
		request->dropped++;
		return;
	}
	request->attributes[request->count++] = index;
	request->of_process += attribute->key == KEY_PROCESS;
}

static bool is_equal(const struct context_request *x, const struct context_request *y)
{
	return x->count == y->count && x->thread.length == y->thread.length &&
	       !memcmp(x->attributes, y->attributes, x->count * sizeof *x->attributes) &&
	       !memcmp(x->thread.at, y->thread.at, x->thread.length);
}

static int compare_names(struct text x, struct text y)
{
	uint32_t shorter = x.length < y.length ? x.length : y.length;
	int order = memcmp(x.at, y.at, shorter);

	return order ? order : (x.length > y.length) - (x.length < y.length);
}

/* By key: the same attributes in another order are the same context. */
static void sort(const struct dictionary *dictionary, uint32_t *list, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned k = i; k && compare_names(dictionary->attributes[list[k - 1]].name,
							dictionary->attributes[list[k]].name) > 0;
		     k--) {
			uint32_t other = list[k];

			list[k] = list[k - 1];
			list[k - 1] = other;
		}
}

/* What separates is no part of a text. */
static size_t put_text(char *to, struct text text, uint32_t limit)
{
	text = text_cut(text, limit);
	for (uint32_t i = 0; i < text.length; i++)
		to[i] = text.at[i] == CONTEXT_KEY || text.at[i] == CONTEXT_VALUE ? ' ' : text.at[i];
	return text.length;
}

static size_t write_context(const struct dictionary *dictionary,
			    const struct context_request *request, char *to)
{
	size_t length = put_text(to, request->thread, CONTEXT_VALUE_MAX);
	uint32_t list[CONTEXT_ATTRIBUTES_MAX];

	memcpy(list, request->attributes, sizeof list);
	sort(dictionary, list, request->count);
	for (unsigned i = 0; i < request->count; i++) {
		const struct dictionary_attribute *attribute = &dictionary->attributes[list[i]];

		/* The first of a key is it. */
		if (i && !compare_names(dictionary->attributes[list[i - 1]].name, attribute->name))
			continue;
		to[length++] = CONTEXT_KEY;
		length += put_text(to + length, attribute->name, CONTEXT_KEY_MAX);
		to[length++] = CONTEXT_VALUE;
		if (attribute->value.kind == VALUE_TEXT)
			length += put_text(to + length, attribute->value.text,
					   attribute->key == KEY_PROCESS ? CONTEXT_PROCESS_VALUE_MAX
									 : CONTEXT_VALUE_MAX);
		else
			length += (size_t)sprintf(to + length, "%lld",
						  (long long)attribute->value.number);
	}
	return length;
}

bool contexts_make(struct contexts *contexts, struct dictionary *dictionary,
		   const struct context_request *request, struct text *context)
{
	char text[CONTEXT_BYTES_MAX];
	struct context_entry *entry;
	uint64_t hash;

	contexts->dropped += request->dropped;
	*context = request->thread;
	if (!request->count)
		return true;
	if (!contexts->kept)
		contexts->kept = arena_array(dictionary->arena, CONTEXTS_KEPT,
					     sizeof *contexts->kept);
	if (!contexts->kept)
		return false;
	hash = hash_bytes(request->attributes, request->count * sizeof *request->attributes,
			  hash_bytes(request->thread.at, request->thread.length, 0));
	entry = &contexts->kept[hash % CONTEXTS_KEPT];
	if (!entry->text.length || !is_equal(&entry->request, request)) {
		size_t length = write_context(dictionary, request, text);

		entry->request = *request;
		entry->text = (struct text){arena_copy(dictionary->arena, text, length),
					    (uint32_t)length};
	}
	*context = entry->text;
	return entry->text.at;
}
