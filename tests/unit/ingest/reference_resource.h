/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and counts of a resource that protobuf-c decodes. */
#ifndef TESTS_UNIT_INGEST_REFERENCE_RESOURCE_H
#define TESTS_UNIT_INGEST_REFERENCE_RESOURCE_H

#include "symbol-server/store/attribute_labels.h"
#include "tests/unit/ingest/reference_stacks.h"

struct told_resource {
	const char *service, *host, *process, *path, *name, *container, *pod, *space, *version,
		*kernel;
	const char *labels[64][2];
	unsigned label_count;
	const char *attributes[16][2]; /* others that are labels */
	unsigned attribute_count;
	const char *agent;
	uint64_t rate, seq, acknowledged, taken, idle;
	struct told_counts {
		const char *names[64];
		uint64_t counts[64];
		unsigned count;
	} lost, stacks;
};

/* A list of its own: the first sixteen that are labels, the last value of each. */
static void tell_attribute(struct told_resource *resource, char *key, const char *text)
{
	unsigned i = 0;

	for (char *at = key; *at; at++)
		if ((unsigned char)*at >= 0x80)
			return;
	if (!*text || strlen(text) > 256 || !label_is_of_attribute(key, strlen(key)))
		return;
	while (i < resource->attribute_count && strcmp(resource->attributes[i][0], key))
		i++;
	if (i == 16)
		return;
	resource->attributes[i][0] = key;
	resource->attributes[i][1] = text;
	resource->attribute_count += i == resource->attribute_count;
}

static void read_text(struct told_resource *resource, const char *key, const char *text)
{
	struct {
		const char *key, **to;
	} fields[] = {{"service.name", &resource->service},
		      {"host.name", &resource->host},
		      {"farflame.process", &resource->process},
		      {"process.executable.path", &resource->path},
		      {"process.executable.name", &resource->name},
		      {"container.id", &resource->container},
		      {"k8s.pod.name", &resource->pod},
		      {"k8s.namespace.name", &resource->space},
		      {"os.version", &resource->kernel},
		      {"service.version", &resource->version},
		      {NULL, NULL}};

	unsigned i = 0;

	for (; fields[i].key; i++)
		if (!strcmp(fields[i].key, key)) {
			*fields[i].to = text;
			break;
		}
	if (!fields[i].key || fields[i].to == &resource->version)
		tell_attribute(resource, (char *)key, text);
	if (fields[i].key)
		return;
	if (!strcmp(key, "farflame.agent.id") && strlen(text) == 32 &&
	    strspn(text, "0123456789abcdefABCDEF") == 32)
		resource->agent = text;
	if (!strncmp(key, "farflame.label.", 15) && key[15] && resource->label_count < 30) {
		resource->labels[resource->label_count][0] = key + 15;
		resource->labels[resource->label_count++][1] = text;
	}
}

static void add_counts(struct told_counts *to, const char *name, uint64_t value)
{
	unsigned i = 0;

	if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") !=
		    strlen(name) ||
	    strlen(name) > 32)
		name = "other";
	while (i < to->count && strcmp(to->names[i], name))
		i++;
	if (i == to->count)
		to->names[to->count++] = name;
	to->counts[i] += value;
}

static void read_number(struct told_resource *resource, const char *key, int64_t number)
{
	uint64_t value = (uint64_t)number;

	if (number < 0)
		return;
	if (!strcmp(key, "farflame.rate_hz"))
		resource->rate = value;
	else if (!strcmp(key, "farflame.report.seq"))
		resource->seq = value;
	else if (!strcmp(key, "farflame.report.acknowledged"))
		resource->acknowledged = value;
	else if (!strcmp(key, "farflame.taken"))
		resource->taken = value;
	else if (!strcmp(key, "farflame.idle"))
		resource->idle = value;
	else if (!strncmp(key, "farflame.lost.", 14) && key[14] && resource->lost.count < 15)
		add_counts(&resource->lost, key + 14, value);
	else if (!strncmp(key, "farflame.stacks.", 16) && key[16] && resource->stacks.count < 39)
		add_counts(&resource->stacks, key + 16, value);
}

static void read_resource(const struct teller *teller, const MESSAGE(Resource) * from,
			  struct told_resource *resource)
{
	*resource = (struct told_resource){.service = "",
					   .host = "",
					   .process = "",
					   .path = "",
					   .name = "",
					   .container = "",
					   .pod = "",
					   .space = "",
					   .version = "",
					   .kernel = ""};
	for (size_t i = 0; from && i < from->n_attributes; i++) {
		const MESSAGE(KeyValue) *pair = from->attributes[i];
		const char *referenced = or_empty(string_at(teller, pair->key_strindex));
		const char *key = *referenced ? referenced : pair->key;
		const char *text = value_text(teller, pair->value);
		int64_t number;

		if (text)
			read_text(resource, key, text);
		else if (value_number(pair->value, &number))
			read_number(resource, key, number);
	}
}

struct told_label {
	char name[80];
	const char *value;
};

static int compare_told(const void *a, const void *b)
{
	return strcmp(((const struct told_label *)a)->name, ((const struct told_label *)b)->name);
}

static void add_told(struct told_label *list, unsigned *count, const char *name, const char *value)
{
	struct told_label *to = &list[*count];
	char resolved[LABEL_NAME_BYTES];

	if (!*name || !*value || *count >= 30)
		return;
	snprintf(to->name, 65, "%s", name);
	for (char *at = to->name; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' ||
		      (at != to->name && *at >= '0' && *at <= '9')))
			*at = '_';
	for (const char *at = name; *at; at++) /* odd: ours repairs it first */
		if ((unsigned char)*at >= 0x80)
			to->name[0] = (char)0x80;
	label_name_resolve(to->name, resolved);
	if (!strcmp(resolved, "thread") || !strcmp(resolved, "thread_id") ||
	    !strcmp(resolved, "trace_id") || !strcmp(resolved, "span_id") ||
	    !strncmp(resolved, "attr_", 5))
		return;
	strcpy(to->name, resolved);
	to->value = value;
	for (unsigned i = 0; i < *count; i++)
		if (!strcmp(list[i].name, to->name))
			return;
	++*count;
}

static void tell_labels(const struct teller *teller, const struct told_resource *resource,
			struct buffer *out)
{
	struct told_label list[64];
	const char *process = *resource->process ? resource->process
			      : *resource->name  ? resource->name
						 : base_name(resource->path);
	unsigned count = 0;

	add_told(list, &count, "host", *resource->host ? resource->host : teller->peer);
	add_told(list, &count, "process", process);
	add_told(list, &count, "service", resource->service);
	add_told(list, &count, "container", resource->container);
	add_told(list, &count, "pod", resource->pod);
	add_told(list, &count, "namespace", resource->space);
	for (unsigned i = 0; i < resource->label_count; i++)
		add_told(list, &count, resource->labels[i][0], resource->labels[i][1]);
	for (unsigned i = 0; i < resource->attribute_count; i++)
		add_told(list, &count, resource->attributes[i][0], resource->attributes[i][1]);
	qsort(list, count, sizeof *list, compare_told);
	for (unsigned i = 0; i < count; i++) {
		size_t length = strlen(list[i].value);

		put_text(out, list[i].name, strlen(list[i].name));
		put_text(out, list[i].value, length < 2048 ? length : 2048);
	}
}

#endif
