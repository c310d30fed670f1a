/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/contexts.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/hash_table.h"

struct context_entry {
	struct context_request request;
	uint32_t resource;
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

/* --- senders whose resources are processes --- */

static size_t put_attribute(char *to, struct text name, struct text value)
{
	size_t length = 0;

	to[length++] = CONTEXT_KEY;
	length += put_text(to + length, name, CONTEXT_KEY_MAX);
	to[length++] = CONTEXT_VALUE;
	return length + put_text(to + length, value, CONTEXT_PROCESS_VALUE_MAX);
}

static bool keep_text(struct arena *arena, const char *text, size_t length, struct text *to)
{
	to->at = arena_copy(arena, text, length);
	to->length = (uint32_t)length;
	return to->at;
}

bool contexts_begin_resource(struct contexts *contexts, struct arena *arena,
			     const struct batch_label *attributes, uint32_t count, struct text host)
{
	uint64_t hash = hash_bytes(host.at, host.length, 0);
	char text[CONTEXT_BYTES_MAX], id[40];
	struct text pid = {"", 0};
	size_t length = 0;

	contexts->lifetime = contexts->process = (struct text){"", 0};
	contexts->resource++;
	for (uint32_t i = 0; i < count; i++) {
		hash = hash_bytes(attributes[i].name.at, attributes[i].name.length, hash);
		hash = hash_bytes(attributes[i].value.at, attributes[i].value.length, hash);
		length += put_attribute(text + length, attributes[i].name, attributes[i].value);
		if (text_is(attributes[i].name, "process.pid"))
			pid = text_cut(attributes[i].value, 10);
	}
	for (uint32_t i = 0; i < pid.length; i++)
		if (pid.at[i] < '0' || pid.at[i] > '9')
			return true;
	if (!pid.length)
		return true;
	if (!keep_text(arena, text, length, &contexts->process))
		return false;
	snprintf(id, sizeof id, "%.*s.%012" PRIx64, (int)pid.length, pid.at, hash >> 16);
	length = put_attribute(text, text_of(CONTEXT_LIFETIME),
			       (struct text){id, (uint32_t)strlen(id)});
	return keep_text(arena, text, length, &contexts->lifetime);
}

static size_t append_process(struct contexts *contexts, char *to)
{
	size_t length = contexts->lifetime.length;

	memcpy(to, contexts->lifetime.at, length);
	memcpy(to + length, contexts->process.at, contexts->process.length);
	length += contexts->process.length;
	contexts->process = (struct text){"", 0};
	return length;
}

bool contexts_make(struct contexts *contexts, struct dictionary *dictionary,
		   const struct context_request *request, struct text *context)
{
	const bool is_by_resource = contexts->lifetime.length && !request->of_process;
	const uint32_t resource = is_by_resource ? contexts->resource : 0;
	char text[CONTEXT_BYTES_MAX];
	struct context_entry *entry;
	uint64_t hash;

	contexts->dropped += request->dropped;
	*context = request->thread;
	if (!request->count && !is_by_resource)
		return true;
	if (!contexts->kept)
		contexts->kept = arena_array(dictionary->arena, CONTEXTS_KEPT,
					     sizeof *contexts->kept);
	if (!contexts->kept)
		return false;
	hash = hash_bytes(request->attributes, request->count * sizeof *request->attributes,
			  hash_bytes(request->thread.at, request->thread.length, resource));
	entry = &contexts->kept[hash % CONTEXTS_KEPT];
	if (!entry->text.length || entry->resource != resource ||
	    (is_by_resource && contexts->process.length) || !is_equal(&entry->request, request)) {
		size_t length = write_context(dictionary, request, text);

		if (is_by_resource)
			length += append_process(contexts, text + length);
		entry->request = *request;
		entry->resource = resource;
		entry->text = (struct text){arena_copy(dictionary->arena, text, length),
					    (uint32_t)length};
	}
	*context = entry->text;
	return entry->text.at;
}
