/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/series_labels.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 1 << 22 };

bool series_labels_equal(const struct series_labels *a, const struct series_labels *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (strcmp(a->names[i], b->names[i]) || strcmp(a->values[i], b->values[i]))
			return false;
	return true;
}

uint64_t series_labels_hash(const struct series_labels *labels)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < labels->count; i++) {
		hash = hash_bytes(labels->names[i], strlen(labels->names[i]), hash);
		hash = hash_bytes(labels->values[i], strlen(labels->values[i]), hash);
	}
	return hash;
}

bool samples_query_asks(const struct samples_query *query, const char *label)
{
	for (unsigned i = 0; query->labels && i < query->label_count; i++)
		if (!strcmp(query->labels[i], label))
			return true;
	return !query->labels;
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

bool rollup_drops_label(const char *name)
{
	static const char *const names[] = {"host", "container", "pod", "node", "instance"};
	static const char *const more[] = {"service.instance.", "service_instance_", "k8s.pod.",
					   "k8s_pod_",          "k8s.node.",         "k8s_node_",
					   "k8s.container.",    "k8s_container_"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i]);

		if (has_prefix(name, names[i]) &&
		    (!name[length] || name[length] == '.' || name[length] == '_'))
			return true;
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (has_prefix(name, more[i]))
			return true;
	return false;
}

/* --- sums --- */

void label_sums_init(struct label_sums *sums)
{
	*sums = (struct label_sums){.count = 0};
	hash_table_init(&sums->index, VALUES_MAX);
}

bool label_sums_add(struct label_sums *sums, const char *label, const char *value, uint64_t samples)
{
	uint64_t hash = hash_bytes(value, strlen(value), hash_bytes(label, strlen(label), 0));
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&sums->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&sums->index, hash, &probe))
		if (!strcmp(sums->values[i].label, label) &&
		    !strcmp(sums->values[i].value, value)) {
			sums->values[i].samples += samples;
			return true;
		}
	if (sums->count == sums->capacity) {
		size_t larger = sums->capacity ? sums->capacity * 2 : 256;
		struct label_value_sum *copy = realloc(sums->values, larger * sizeof *copy);

		if (!copy)
			return false;
		sums->values = copy;
		sums->capacity = larger;
	}
	if (!hash_table_add(&sums->index, hash, (uint32_t)sums->count))
		return false;
	sums->values[sums->count++] = (struct label_value_sum){label, value, samples};
	return true;
}

static int compare_values(const void *a, const void *b)
{
	const struct label_value_sum *x = a, *y = b;
	int order = strcmp(x->label, y->label);

	return order ? order : strcmp(x->value, y->value);
}

/* Nothing is found by the index afterwards. */
static void sort(struct label_sums *sums)
{
	if (sums->count)
		qsort(sums->values, sums->count, sizeof *sums->values, compare_values);
}

static bool fits(const struct arena *arena, struct error *err)
{
	return !arena->failed || error_set(err, ERROR_LIMIT, "a listing does not fit its room");
}

bool label_sums_labels(struct label_sums *sums, struct arena *arena, struct label_count **rows,
		       size_t *count, struct error *err)
{
	sort(sums);
	*count = 0;
	*rows = arena_array(arena, sums->count, sizeof **rows);
	for (size_t i = 0; *rows && i < sums->count; i++) {
		const char *label = sums->values[i].label;

		if (!i || strcmp(sums->values[i - 1].label, label))
			(*rows)[(*count)++].name = arena_text(arena, label, strlen(label));
		(*rows)[*count - 1].values++;
	}
	return fits(arena, err);
}

bool label_sums_values(struct label_sums *sums, const char *label, struct arena *arena,
		       struct value_count **rows, size_t *count, struct error *err)
{
	sort(sums);
	*count = 0;
	*rows = arena_array(arena, sums->count, sizeof **rows);
	for (size_t i = 0; *rows && i < sums->count; i++) {
		const struct label_value_sum *from = &sums->values[i];
		struct value_count *to = &(*rows)[*count];

		if (strcmp(from->label, label))
			continue;
		to->value = arena_text(arena, from->value, strlen(from->value));
		to->samples = from->samples;
		++*count;
	}
	return fits(arena, err);
}

void label_sums_release(struct label_sums *sums)
{
	hash_table_release(&sums->index);
	free(sums->values);
	*sums = (struct label_sums){.count = 0};
}
