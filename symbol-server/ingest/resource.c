/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/resource.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/hex.h"
#include "symbol-server/store/attribute_labels.h"

enum { REASON_MAX = 32, FACT_MAX = 120 }; /* bytes */
enum { CPUS_MAX = 1 << 20 };              /* of a host; more is nonsense */

static const char label_prefix[] = "farflame.label.";
static const char farflame_prefix[] = "farflame.";
static const char lost_prefix[] = "lost.";
static const char stacks_prefix[] = "stacks.";
static const char lacks_prefix[] = "lacks.";

void resource_init(struct resource *resource)
{
	struct text none = {"", 0};

	memset(resource, 0, sizeof *resource);
	resource->service = resource->host = resource->process = none;
	resource->executable_path = resource->executable_name = none;
	resource->container = resource->pod = resource->namespace_name = none;
	resource->kernel_release = resource->version = none;
}

static bool has_prefix(struct text text, const char *prefix, struct text *rest)
{
	size_t length = strlen(prefix);

	if (text.length <= length || memcmp(text.at, prefix, length))
		return false;
	*rest = (struct text){text.at + length, text.length - (uint32_t)length};
	return true;
}

static struct text *field_of(struct resource *resource, struct text key)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{"service.name", offsetof(struct resource, service)},
		{"host.name", offsetof(struct resource, host)},
		{"farflame.process", offsetof(struct resource, process)},
		{"process.executable.path", offsetof(struct resource, executable_path)},
		{"process.executable.name", offsetof(struct resource, executable_name)},
		{"container.id", offsetof(struct resource, container)},
		{"k8s.pod.name", offsetof(struct resource, pod)},
		{"k8s.namespace.name", offsetof(struct resource, namespace_name)},
		{"os.version", offsetof(struct resource, kernel_release)},
		{"service.version", offsetof(struct resource, version)},
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (text_is(key, fields[i].key))
			return (struct text *)((char *)resource + fields[i].offset);
	return NULL;
}

static bool parse_agent_id(struct text hex, uint8_t id[16])
{
	uint8_t bytes[16];

	if (hex.length != 32)
		return false;
	for (int i = 0; i < 16; i++) {
		int high = hex_digit(hex.at[2 * i]), low = hex_digit(hex.at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(id, bytes, sizeof bytes);
	return true;
}

static bool is_same(struct text a, struct text b)
{
	return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

/* As keys are. Others, a NUL (repaired) in them too, would all be one when cleaned. */
static bool is_ascii(struct text key)
{
	for (uint32_t i = 0; i < key.length; i++)
		if (key.at[i] & 0x80)
			return false;
	return true;
}

/* The last value of a key counts; one that is too long leaves the one before. */
static void keep_attribute(struct resource *resource, struct text key, struct text value)
{
	uint32_t at = 0;

	if (!value.length || !label_is_of_attribute(key.at, key.length))
		return;
	if (!is_ascii(key) || value.length > ATTRIBUTE_MAX) {
		resource->attributes_left_out++;
		return;
	}
	while (at < resource->attribute_count && !is_same(resource->attributes[at].name, key))
		at++;
	if (at == ATTRIBUTES_MAX) {
		resource->attributes_left_out++;
		return;
	}
	resource->attributes[at] = (struct batch_label){key, value, true};
	resource->attribute_count += at == resource->attribute_count;
}

/* Each key once: the first value counts. */
static void keep_process(struct resource *resource, struct text key, struct text value)
{
	if (!value.length || !sample_context_is_process_key(key.at, key.length) ||
	    text_is(key, CONTEXT_LIFETIME) || resource->told_count == CONTEXT_PROCESS_MAX)
		return;
	for (uint32_t i = 0; i < resource->told_count; i++)
		if (is_same(resource->told[i].name, key))
			return;
	resource->told[resource->told_count++] = (struct batch_label){key, value, true};
}

static void keep_text(struct resource *resource, struct text key, struct text value)
{
	struct text *field = field_of(resource, key);
	struct text name;

	if (field)
		*field = value;
	else if (text_is(key, "farflame.agent.id"))
		resource->is_agent |= parse_agent_id(value, resource->agent_id);
	else if (has_prefix(key, label_prefix, &name) && resource->label_count < LABELS_MAX)
		resource->labels[resource->label_count++] = (struct batch_label){name, value,
										 false};
	if (!field || field == &resource->version)
		keep_attribute(resource, key, value);
	keep_process(resource, key, value);
}

static void keep_number(struct resource *resource, struct text key, int64_t value)
{
	struct text name;

	if (value < 0 || resource->number_count >= RESOURCE_NUMBERS_MAX ||
	    !has_prefix(key, farflame_prefix, &name))
		return;
	resource->numbers[resource->number_count].name = name;
	resource->numbers[resource->number_count++].value = (uint64_t)value;
}

static enum dictionary_result read_key_value(struct dictionary *dictionary, struct wire wire,
					     struct resource *resource)
{
	struct attribute_value value = {VALUE_NONE, {"", 0}, 0};
	enum dictionary_result result = DICTIONARY_OK, worst = DICTIONARY_OK;
	struct text key = {"", 0}, referenced = {"", 0};
	struct wire_field field;

	if (!wire_check(wire, WIRE_KEY_VALUE, 0))
		return DICTIONARY_MALFORMED;
	while (wire_next_fast(&wire, &field) > 0) {
		if (field.number == 1)
			key = text_repair(dictionary->arena, field.bytes);
		else if (field.number == 2)
			result = dictionary_value(dictionary, field.bytes, &value);
		else if (field.number == 3)
			result = dictionary_string(dictionary, field.value, "attribute key",
						   &referenced);
		if (result != DICTIONARY_OK)
			worst = result;
	}
	if (dictionary->arena->failed)
		return DICTIONARY_NO_ROOM;
	if (referenced.length)
		key = referenced;
	if (value.kind == VALUE_TEXT)
		keep_text(resource, key, value.text);
	else if (value.kind == VALUE_NUMBER)
		keep_number(resource, key, value.number);
	if (value.kind == VALUE_NUMBER && value.number > 0 &&
	    (text_is(key, "process.pid") || text_is(key, "process.parent_pid"))) {
		char digits[24];
		int length = snprintf(digits, sizeof digits, "%" PRId64, value.number);
		char *copy = arena_copy(dictionary->arena, digits, (size_t)length);

		if (!copy)
			return DICTIONARY_NO_ROOM;
		keep_process(resource, key, (struct text){copy, (uint32_t)length});
	}
	return worst;
}

enum dictionary_result resource_read(struct dictionary *dictionary, struct wire wire,
				     struct resource *resource)
{
	enum dictionary_result result = DICTIONARY_OK, worst = DICTIONARY_OK;
	struct wire_field field;
	int got;

	while ((got = wire_next_fast(&wire, &field)) > 0) {
		if (field.number == 2 && field.type != WIRE_VARINT)
			return DICTIONARY_MALFORMED;
		if (field.number != 1)
			continue;
		if (field.type != WIRE_BYTES)
			return DICTIONARY_MALFORMED;
		result = read_key_value(dictionary, field.bytes, resource);
		if (result == DICTIONARY_MALFORMED || result == DICTIONARY_NO_ROOM)
			return result;
		if (result != DICTIONARY_OK)
			worst = result;
	}
	return got == 0 ? worst : DICTIONARY_MALFORMED;
}

/* --- labels --- */

struct label_list {
	struct batch_label labels[LABELS_MAX + 8];
	uint32_t count, left_out;
};

/* The first of a name wins: the well-known ones are added before --label's, attributes last. */
static void add_label(struct label_list *list, struct text name, struct text value,
		      bool is_attribute)
{
	if (!value.length)
		return;
	for (uint32_t i = 0; i < list->count; i++)
		if (is_same(list->labels[i].name, name)) {
			list->left_out += !is_same(list->labels[i].value, value);
			return;
		}
	if (!name.length || list->count >= LABELS_MAX) {
		list->left_out++;
		return;
	}
	list->labels[list->count++] = (struct batch_label){name, text_cut(value, LABEL_VALUE_MAX),
							   is_attribute};
}

/* What the API asks of samples by this name. */
static bool is_of_samples(const char *name)
{
	return sample_context_has_name(name) || !strcmp(name, "trace_id") ||
	       !strcmp(name, "span_id");
}

/* Label names are [a-zA-Z_][a-zA-Z0-9_]*, as selectors write them; other bytes become '_'. A name
 * that the API takes for another one is that; "" where it never looks for a label by it. */
static struct text clean_name(struct arena *arena, struct text name)
{
	char *copy, cleaned[LABEL_NAME_BYTES], label[LABEL_NAME_BYTES];

	name = text_cut(name, LABEL_NAME_MAX);
	copy = arena_copy(arena, name.at, name.length);
	if (!copy)
		return (struct text){"", 0};
	for (uint32_t i = 0; i < name.length; i++) {
		char c = copy[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!is_letter && !(i && c >= '0' && c <= '9'))
			copy[i] = '_';
	}
	snprintf(cleaned, sizeof cleaned, "%.*s", (int)name.length, copy);
	label_name_resolve(cleaned, label);
	if (is_of_samples(label))
		return (struct text){"", 0};
	copy = arena_text(arena, label, strlen(label));
	return text_of(copy ? copy : "");
}

static int compare_labels(const void *a, const void *b)
{
	const struct text *x = &((const struct batch_label *)a)->name;
	const struct text *y = &((const struct batch_label *)b)->name;
	uint32_t shorter = x->length < y->length ? x->length : y->length;
	int order = memcmp(x->at, y->at, shorter);

	return order ? order : (x->length > y->length) - (x->length < y->length);
}

enum dictionary_result resource_series(struct dictionary *dictionary, struct resource *resource,
				       struct text sender, struct batch_series *series)
{
	struct text process = resource->process;
	struct label_list list = {.count = 0};

	if (!process.length)
		process = resource->executable_name;
	if (!process.length)
		process = text_base_name(resource->executable_path);
	add_label(&list, text_of("host"), resource->host.length ? resource->host : sender, false);
	add_label(&list, text_of("process"), process, false);
	add_label(&list, text_of("service"), resource->service, false);
	add_label(&list, text_of("container"), resource->container, false);
	add_label(&list, text_of("pod"), resource->pod, false);
	add_label(&list, text_of("namespace"), resource->namespace_name, false);
	for (uint32_t i = 0; i < resource->label_count; i++)
		add_label(&list, clean_name(dictionary->arena, resource->labels[i].name),
			  resource->labels[i].value, false);
	for (uint32_t i = 0; i < resource->attribute_count; i++)
		add_label(&list, clean_name(dictionary->arena, resource->attributes[i].name),
			  resource->attributes[i].value, true);
	resource->attributes_left_out += list.left_out;
	qsort(list.labels, list.count, sizeof *list.labels, compare_labels);
	series->labels = arena_copy(dictionary->arena, list.labels,
				    list.count * sizeof *list.labels);
	series->label_count = list.count;
	return dictionary->arena->failed ? DICTIONARY_NO_ROOM : DICTIONARY_OK;
}

/* --- counters --- */

static bool is_plain_name(struct text name)
{
	for (uint32_t i = 0; i < name.length; i++) {
		char c = name.at[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-' && c != '.')
			return false;
	}
	return name.length <= REASON_MAX;
}

static void add_tally(struct batch_counters *counters, const struct tally *tally, uint64_t count)
{
	struct agent_numbers *numbers = &counters->numbers;

	if (!tally || numbers->lost_count >= BATCH_LOST_REASONS - 1)
		return;
	counters->lost[numbers->lost_count] = text_of(tally->name);
	numbers->lost[numbers->lost_count++] = count;
}

/* Each name once; names that are none, and what has no room any more, are "other". */
static void add_count(struct text *names, uint64_t *counts, unsigned *used, unsigned room,
		      struct text name, uint64_t count)
{
	unsigned i = 0;

	if (!is_plain_name(name) || *used >= room - 1)
		name = text_of("other");
	while (i < *used && !is_same(names[i], name))
		i++;
	if (i == *used)
		names[(*used)++] = name;
	counts[i] += count;
}

static void keep_lack(struct batch_counters *counters, struct text name, uint64_t times)
{
	for (int i = 0; i < AGENT_LACK_COUNT; i++)
		if (text_is(name, agent_lack_names[i]))
			counters->lacks[i] = times;
}

void resource_counters(const struct resource *resource, struct batch_counters *counters)
{
	struct agent_numbers *numbers = &counters->numbers;

	memcpy(counters->agent_id, resource->agent_id, 16);
	counters->host = text_cut(resource->host, LABEL_VALUE_MAX);
	counters->agent_version = text_cut(resource->version, FACT_MAX);
	counters->kernel_release = text_cut(resource->kernel_release, FACT_MAX);
	for (uint32_t i = 0; i < resource->number_count; i++) {
		struct text name = resource->numbers[i].name, rest;
		uint64_t value = resource->numbers[i].value;

		if (text_is(name, "taken"))
			numbers->taken = value;
		else if (text_is(name, "idle"))
			numbers->idle = value;
		else if (text_is(name, "report.seq"))
			numbers->seq = value;
		else if (text_is(name, "report.acknowledged"))
			numbers->acknowledged = value;
		else if (text_is(name, "sent_unix_nano"))
			numbers->sent_ms = (int64_t)(value / 1000000);
		else if (text_is(name, "clock.jumps"))
			counters->clock_jumps = value;
		else if (text_is(name, "cpus"))
			counters->cpus = value < CPUS_MAX ? value : CPUS_MAX;
		else if (text_is(name, "rate_hz"))
			numbers->rate_hz = (uint32_t)value;
		else if (has_prefix(name, lost_prefix, &rest))
			add_count(counters->lost, numbers->lost, &numbers->lost_count,
				  BATCH_LOST_REASONS, rest, value);
		else if (has_prefix(name, stacks_prefix, &rest))
			add_count(counters->stacks, numbers->stacks, &numbers->stacks_count,
				  BATCH_STACK_RESULTS, rest, value);
		else if (has_prefix(name, lacks_prefix, &rest))
			keep_lack(counters, rest, value);
		else
			add_tally(counters, tally_of_attribute(name), value);
	}
}
