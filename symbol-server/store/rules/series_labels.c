/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/series_labels.h"

#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"

enum {
	VALUES_MAX = 1 << 22,
	GROWN_ALWAYS = 256,    /* so many are taken whatever the limit is */
	ARENA_REST = 64 << 10, /* room of an arena for what comes after a listing */
	ARENA_TEXT = 17,       /* at most, beside a text's own bytes */
};

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

void label_sums_init(struct label_sums *sums, const struct samples_limits *limits)
{
	*sums = (struct label_sums){.most_bytes = limits->bytes / 2, .is_cut = limits->is_cut};
	hash_table_init(&sums->index, VALUES_MAX);
	arena_init(&sums->texts, SIZE_MAX >> 1);
}

size_t label_sums_bytes(const struct label_sums *sums)
{
	return sums->capacity * sizeof *sums->values + sums->texts.used +
	       sums->index.size * (sizeof *sums->index.slots + sizeof *sums->index.hashes_low);
}

static bool leave_out(struct label_sums *sums)
{
	if (sums->is_cut)
		*sums->is_cut = true;
	else
		sums->is_over = true;
	return !sums->is_over;
}

/* Growing doubles. */
static bool has_room(const struct label_sums *sums)
{
	size_t bytes = label_sums_bytes(sums);

	if (sums->count >= VALUES_MAX)
		return false;
	if (!sums->most_bytes || sums->count < GROWN_ALWAYS)
		return true;
	return sums->count == sums->capacity ? 2 * bytes <= sums->most_bytes
					     : bytes <= sums->most_bytes;
}

static bool grow(struct label_sums *sums)
{
	size_t larger = sums->capacity ? sums->capacity * 2 : GROWN_ALWAYS;
	struct label_value_sum *copy;

	if (sums->count < sums->capacity)
		return true;
	copy = realloc(sums->values, larger * sizeof *copy);
	if (!copy)
		return false;
	sums->values = copy;
	sums->capacity = larger;
	return true;
}

bool label_sums_add(struct label_sums *sums, const char *label, const char *value, uint64_t samples,
		    bool texts_are_lent)
{
	uint64_t hash = keyed_hash(value, strlen(value), keyed_hash(label, strlen(label), 0));

	HASH_TABLE_EACH(i, &sums->index, hash)
		if (!strcmp(sums->values[i].label, label) &&
		    !strcmp(sums->values[i].value, value)) {
			sums->values[i].samples += samples;
			return true;
		}
	if (!has_room(sums))
		return leave_out(sums);
	if (texts_are_lent) {
		label = arena_text(&sums->texts, label, strlen(label));
		value = arena_text(&sums->texts, value, strlen(value));
	}
	if (!label || !value || !grow(sums) ||
	    !hash_table_add(&sums->index, hash, (uint32_t)sums->count))
		return false;
	sums->values[sums->count++] = (struct label_value_sum){label, value, samples};
	return true;
}

bool label_sums_failed(const struct label_sums *sums, struct error *err)
{
	return sums->is_over
		       ? error_set(err, ERROR_LIMIT,
				   "the listing takes more memory than --query-memory allows: "
				   "narrow the time range or the selection")
		       : error_set(err, ERROR_MEMORY, "no memory for a listing");
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

bool label_sums_labels(struct label_sums *sums, struct arena *arena, struct label_count **rows,
		       size_t *count, struct error *err)
{
	size_t labels = 0;

	sort(sums);
	*count = 0;
	for (size_t i = 0; i < sums->count; i++)
		labels += !i || strcmp(sums->values[i - 1].label, sums->values[i].label);
	*rows = arena_array(arena, labels, sizeof **rows);
	for (size_t i = 0; *rows && i < sums->count; i++) {
		const char *label = sums->values[i].label;

		if (!i || strcmp(sums->values[i - 1].label, label))
			(*rows)[(*count)++].name = arena_text(arena, label, strlen(label));
		(*rows)[*count - 1].values++;
	}
	return !arena->failed || error_set(err, ERROR_LIMIT, "a listing does not fit its room");
}

bool label_sums_values(struct label_sums *sums, const char *label, struct arena *arena,
		       struct value_count **rows, size_t *count, struct error *err)
{
	size_t values = 0, bytes = 0;

	sort(sums);
	*count = 0;
	for (size_t i = 0; i < sums->count; i++)
		if (!strcmp(sums->values[i].label, label)) {
			bytes += sizeof **rows + strlen(sums->values[i].value) + ARENA_TEXT;
			if (arena->used + bytes + ARENA_REST > arena->limit) {
				if (!leave_out(sums))
					return label_sums_failed(sums, err);
				break;
			}
			values++;
		}
	*rows = arena_array(arena, values, sizeof **rows);
	for (size_t i = 0; *rows && *count < values && i < sums->count; i++) {
		const struct label_value_sum *from = &sums->values[i];
		struct value_count *to = &(*rows)[*count];

		if (strcmp(from->label, label))
			continue;
		to->value = arena_text(arena, from->value, strlen(from->value));
		to->samples = from->samples;
		++*count;
	}
	return !arena->failed || error_set(err, ERROR_LIMIT, "a listing does not fit its room");
}

void label_sums_release(struct label_sums *sums)
{
	hash_table_release(&sums->index);
	arena_release(&sums->texts);
	free(sums->values);
	*sums = (struct label_sums){.count = 0};
}
