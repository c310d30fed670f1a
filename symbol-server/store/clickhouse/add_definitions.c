/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, locations, stacks and series of a batch → ids, and rows where they are new. */
#include "symbol-server/store/clickhouse/adder.h"
#include "symbol-server/store/rules/lifetimes.h"
#include "symbol-server/store/rules/series_labels.h"
#include "symbol-server/store/rules/series_limit.h"

#include <string.h>

static uint64_t text_hash(uint64_t hash, struct text text)
{
	return hash_word(hash, hash_bytes(text.at, text.length, 0));
}

/* True: this group has to bring the definition. */
static bool is_new(struct adder *adder, uint64_t id)
{
	uint64_t key = hash_word(id, adder->month);

	return !id_set_has(&adder->store->known, key) && id_set_add(&adder->group->defined, key);
}

static uint64_t define_module(struct adder *adder, uint32_t number)
{
	const struct batch_module *module = &adder->batch->modules[number];
	struct buffer *out = &adder->group->tables[GROUP_MODULES];
	uint64_t id = hash_bytes(module->id.bytes, module->id.length, 0x6d6f64 + module->base);

	id = text_hash(text_hash(id, module->name), module->go_id);
	if (!is_new(adder, id))
		return id;
	row_put_u32(out, adder->month);
	row_put_u64(out, id);
	row_put_bytes(out, module->id.bytes, module->id.length);
	row_put_bytes(out, module->htlhash.bytes, module->htlhash.length);
	row_put_text(out, module->go_id);
	row_put_text(out, module->name);
	row_put_u8(out, (uint8_t)module->base);
	return id;
}

static uint64_t define_location(struct adder *adder, uint32_t number)
{
	const struct batch_location *location = &adder->batch->locations[number];
	struct buffer *out = &adder->group->tables[GROUP_LOCATIONS];
	uint64_t module = 0, id;

	if (location->module != UINT32_MAX)
		module = define_module(adder, location->module);
	id = hash_word(hash_word(0x6c6f63 + location->kind, module), location->address);
	id = text_hash(text_hash(id, location->function), location->file);
	id = hash_word(text_hash(id, location->type), location->line);
	if (!is_new(adder, id))
		return id;
	row_put_u32(out, adder->month);
	row_put_u64(out, id);
	row_put_u8(out, (uint8_t)location->kind);
	row_put_u64(out, module);
	row_put_u64(out, location->address);
	row_put_text(out, location->function);
	row_put_text(out, location->file);
	row_put_text(out, location->type);
	row_put_u32(out, location->line);
	return id;
}

/* The stack's id, stable over all servers and versions: schema/README.md. */
uint64_t adder_define_stack(struct adder *adder, uint32_t number)
{
	const struct batch_stack *stack = &adder->batch->stacks[number];
	struct buffer *out = &adder->group->tables[GROUP_STACKS];
	uint32_t depth = stack->depth < SAMPLES_DEPTH_MAX ? stack->depth : SAMPLES_DEPTH_MAX;

	if (!is_new(adder, stack->hash[0]))
		return stack->hash[0];
	row_put_u32(out, adder->month);
	row_put_u64(out, stack->hash[0]);
	buffer_append_varint(out, depth);
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t location = adder->batch->location_indices[stack->first_index + i];
		uint64_t *id = &adder->locations[location];

		if (!*id)
			*id = define_location(adder, location);
		row_put_u64(out, *id);
	}
	return stack->hash[0];
}

/* The upper 16 bits are of the service, so that its series are neighbours in the table. */
uint64_t adder_series_id(const struct batch_series *series)
{
	uint64_t id = 0x736572, service = 0;

	for (uint32_t i = 0; i < series->label_count; i++) {
		const struct batch_label *label = &series->labels[i];

		id = text_hash(text_hash(id, label->name), label->value);
		if (label->name.length == 7 && !memcmp(label->name.at, "service", 7))
			service = hash_bytes(label->value.at, label->value.length, 0);
	}
	return (id & 0xffffffffffffull) | service >> 48 << 48;
}

uint64_t whole_series_id(const struct series_labels *labels)
{
	struct batch_label kept[SAMPLES_LABELS_MAX];
	struct batch_series series = {kept, 0};

	for (uint32_t i = 0; i < labels->count && series.label_count < SAMPLES_LABELS_MAX; i++)
		if (!rollup_drops_label(labels->names[i]))
			kept[series.label_count++] = (struct batch_label){
				{labels->names[i], (uint32_t)strlen(labels->names[i])},
				{labels->values[i], (uint32_t)strlen(labels->values[i])}};
	return adder_series_id(&series);
}

static void put_series(const struct adder *adder, uint64_t id, const struct batch_series *series,
		       struct buffer *out)
{
	row_put_u32(out, adder->month);
	row_put_u32(out, adder->batch->tenant);
	row_put_u64(out, id);
	buffer_append_varint(out, series->label_count);
	for (uint32_t i = 0; i < series->label_count; i++)
		row_put_text(out, series->labels[i].name);
	buffer_append_varint(out, series->label_count);
	for (uint32_t i = 0; i < series->label_count; i++)
		row_put_text(out, series->labels[i].value);
}

uint64_t adder_define_series(struct adder *adder, uint32_t number)
{
	const struct batch_series *series = &adder->batch->series[number];
	struct buffer *out = &adder->group->tables[GROUP_SERIES];
	uint64_t id = adder_series_id(series);

	if (is_new(adder, hash_word(id, adder->batch->tenant)))
		put_series(adder, id, series, out);
	return id;
}

uint64_t adder_define_host(struct adder *adder, const struct batch_series *series,
			   const char *lost_by)
{
	struct buffer *out = &adder->group->tables[GROUP_SERIES];
	struct batch_label labels[] = {{{"host", 4}, series_host(series), false},
				       {{clickhouse_lost_label, sizeof clickhouse_lost_label - 1},
					{lost_by, lost_by ? (uint32_t)strlen(lost_by) : 0}}};
	const struct batch_series alone = {labels, lost_by ? 2 : 1};
	uint64_t id = adder_series_id(&alone);

	if (is_new(adder, hash_word(id, adder->batch->tenant)))
		put_series(adder, id, &alone, out);
	return id;
}

uint64_t adder_define_other(struct adder *adder, const struct batch_series *series)
{
	struct buffer *out = &adder->group->tables[GROUP_SERIES];
	struct other_series other;
	uint64_t id;

	other_series_init(&other, series_host(series));
	id = adder_series_id(&other.series);
	if (is_new(adder, hash_word(id, adder->batch->tenant)))
		put_series(adder, id, &other.series, out);
	return id;
}

static void define_lifetime(struct adder *adder, struct text context, uint32_t day)
{
	struct buffer *out = &adder->group->tables[GROUP_LIFETIMES];
	char text[CONTEXT_BYTES_MAX], told[CONTEXT_BYTES_MAX];
	const char *lifetime;
	size_t length;
	uint64_t id;

	if (context.length >= sizeof text)
		return;
	memcpy(text, context.at, context.length);
	text[context.length] = '\0';
	lifetime = lifetime_of_teller(text, &length);
	if (!lifetime)
		return;
	id = hash_word(hash_bytes(lifetime, length, 0x6c69666574), adder->batch->tenant);
	if (!is_new(adder, hash_word(id, day)))
		return;
	lifetime_reduce(text, told);
	row_put_u32(out, day);
	row_put_u32(out, adder->batch->tenant);
	row_put_text(out, (struct text){lifetime, (uint32_t)length});
	row_put_text(out, (struct text){told, (uint32_t)strlen(told)});
}

void adder_define_lifetimes(struct adder *adder, const struct batch_profile *profile)
{
	const struct batch_sample *samples = &adder->batch->samples[profile->first_sample];
	uint32_t day = day_number(adder_minute(profile->time_ms) * 1000ll);
	struct text last = {"", 0};

	/* Runs of samples of one thread are the rule. */
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		struct text context = samples[i].context;

		if (context.length && (context.at != last.at || context.length != last.length))
			define_lifetime(adder, context, day);
		last = context;
	}
}
