/* SPDX-License-Identifier: Apache-2.0 */
/* What a request means, told twice as text: from the in-place reader's batch, and from what
 * protobuf-c decodes, by the plainest code there is. Equal texts, equal meaning. */
#ifndef TESTS_UNIT_INGEST_REFERENCE_H
#define TESTS_UNIT_INGEST_REFERENCE_H

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/hash_table.h"
#include "schema/wire/profiles.pb-c.h"
#include "symbol-server/ingest/ingest.h"
#include "symbol-server/store/label_names.h"

#define MESSAGE(name_) Farflame__Otlp__##name_
typedef MESSAGE(ExportProfilesServiceRequest) Request;
typedef MESSAGE(ProfilesDictionary) Dictionary;

static void put_text(struct buffer *out, const char *at, size_t length)
{
	buffer_append_char(out, '"');
	for (size_t i = 0; i < length; i++)
		buffer_append_char(out, at[i]);
	buffer_append_char(out, '"');
}

static void put_id(struct buffer *out, const struct build_id *id)
{
	char hex[BUILD_ID_HEX];

	buffer_append_text(out, build_id_format(id, hex));
}

/* --- the batch --- */

static void tell_location(const struct sample_batch *batch, uint32_t number, struct buffer *out)
{
	const struct batch_location *location = &batch->locations[number];

	buffer_printf(out, "    %d ", location->kind);
	if (location->kind == LOCATION_NATIVE || location->kind == LOCATION_KERNEL)
		buffer_printf(out, "%llx ", (unsigned long long)location->address);
	if (location->module != UINT32_MAX) {
		const struct batch_module *module = &batch->modules[location->module];

		put_id(out, &module->id);
		buffer_append_char(out, ' ');
		put_id(out, &module->htlhash);
		put_text(out, module->name.at, module->name.length);
		put_text(out, module->go_id.at, module->go_id.length);
		buffer_printf(out, "%d", module->base);
	}
	put_text(out, location->function.at, location->function.length);
	put_text(out, location->file.at, location->file.length);
	put_text(out, location->type.at, location->type.length);
	buffer_printf(out, "%u\n", location->line);
}

static void tell_sample(const struct sample_batch *batch, const struct batch_sample *sample,
			struct buffer *out)
{
	const struct batch_stack *stack = &batch->stacks[sample->stack];

	buffer_append_text(out, "  sample ");
	put_text(out, sample->thread.at, sample->thread.length);
	buffer_printf(out, " %llu %llu\n", (unsigned long long)sample->samples,
		      (unsigned long long)sample->value);
	for (uint32_t i = 0; i < stack->depth; i++)
		tell_location(batch, batch->location_indices[stack->first_index + i], out);
}

static void tell_counters(const struct batch_counters *counters, struct buffer *out)
{
	buffer_append_text(out, "counters ");
	for (int i = 0; i < 16; i++)
		buffer_printf(out, "%02x", counters->agent_id[i]);
	put_text(out, counters->host.at, counters->host.length);
	put_text(out, counters->agent_version.at, counters->agent_version.length);
	put_text(out, counters->kernel_release.at, counters->kernel_release.length);
	buffer_printf(out, "rate %u seq %llu ack %llu taken %llu idle %llu time %lld + %lld",
		      counters->rate_hz, (unsigned long long)counters->report_seq,
		      (unsigned long long)counters->acknowledged_seq,
		      (unsigned long long)counters->taken, (unsigned long long)counters->idle,
		      (long long)counters->time_ms, (long long)counters->duration_ms);
	for (unsigned i = 0; i < counters->lost_count; i++) {
		put_text(out, counters->lost[i].name.at, counters->lost[i].name.length);
		buffer_printf(out, "%llu", (unsigned long long)counters->lost[i].count);
	}
	for (unsigned i = 0; i < counters->stacks_count; i++) {
		put_text(out, counters->stacks[i].name.at, counters->stacks[i].name.length);
		buffer_printf(out, "%llu", (unsigned long long)counters->stacks[i].count);
	}
	buffer_append_char(out, '\n');
}

static void tell_batch(const struct sample_batch *batch, struct buffer *out)
{
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const struct batch_profile *profile = &batch->profiles[i];
		const struct batch_series *series = &batch->series[profile->series];

		buffer_printf(out, "profile %s %lld %d ", profile->type,
			      (long long)profile->time_ms, profile->is_counted);
		for (int k = 0; k < 16; k++)
			buffer_printf(out, "%02x", profile->id[k]);
		for (uint32_t k = 0; k < series->label_count; k++) {
			put_text(out, series->labels[k].name.at, series->labels[k].name.length);
			put_text(out, series->labels[k].value.at, series->labels[k].value.length);
		}
		buffer_append_char(out, '\n');
		for (uint32_t k = 0; k < profile->sample_count; k++)
			tell_sample(batch, &batch->samples[profile->first_sample + k], out);
	}
	for (uint32_t i = 0; i < batch->counters_count; i++)
		tell_counters(&batch->counters[i], out);
}

/* --- protobuf-c --- */

struct teller {
	const Dictionary *dictionary;
	int64_t now_ms, oldest_ms;
	const char *peer;
	unsigned rejected, good, bad_indices;
	struct buffer *out;
	struct buffer counters; /* told after the profiles */
	struct bytes body;      /* the request */
};

/* NULL: outside the table. */
static const char *string_at(const struct teller *teller, int32_t index)
{
	if (!index && !teller->dictionary->n_string_table)
		return "";
	return index >= 0 && (size_t)index < teller->dictionary->n_string_table
		       ? teller->dictionary->string_table[index]
		       : NULL;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const char *value_text(const struct teller *teller, const MESSAGE(AnyValue) * value)
{
	if (value && value->value_case == FARFLAME__OTLP__ANY_VALUE__VALUE_STRING_VALUE)
		return value->string_value;
	if (value && value->value_case == FARFLAME__OTLP__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX)
		return or_empty(string_at(teller, value->string_value_strindex));
	return NULL;
}

static bool value_number(const MESSAGE(AnyValue) * value, int64_t *number)
{
	if (value && value->value_case == FARFLAME__OTLP__ANY_VALUE__VALUE_INT_VALUE)
		*number = value->int_value;
	else if (value && value->value_case == FARFLAME__OTLP__ANY_VALUE__VALUE_BOOL_VALUE)
		*number = value->bool_value;
	else
		return false;
	return true;
}

/* The last of the indices whose attribute has that key; false: an index is outside the table. */
static bool find_attribute(const struct teller *teller, const int32_t *indices, size_t count,
			   const char *key, const MESSAGE(AnyValue) * *value, bool want_text)
{
	const Dictionary *dictionary = teller->dictionary;
	bool ok = true;

	for (size_t i = 0; i < count; i++) {
		const MESSAGE(KeyValueAndUnit) * attribute;
		int64_t number;

		if (indices[i] < 0 || (size_t)indices[i] >= dictionary->n_attribute_table) {
			ok &= !indices[i];
			continue;
		}
		attribute = dictionary->attribute_table[indices[i]];
		if (strcmp(or_empty(string_at(teller, attribute->key_strindex)), key))
			continue;
		if (want_text ? value_text(teller, attribute->value) != NULL
			      : value_number(attribute->value, &number))
			*value = attribute->value;
	}
	return ok;
}

struct told_module {
	struct build_id id, htlhash;
	const char *name, *go;
	int base;
	bool is_there, is_bad;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The last attribute that parses counts, as an invalid id says nothing. */
static void find_id(const struct teller *teller, const MESSAGE(Mapping) * mapping, const char *key,
		    struct build_id *id)
{
	for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
		const MESSAGE(AnyValue) *value = NULL;
		const char *text;

		find_attribute(teller, &mapping->attribute_indices[i], 1, key, &value, true);
		text = value ? value_text(teller, value) : NULL;
		if (text)
			build_id_parse(id, text, strlen(text));
	}
}

static struct told_module tell_mapping(const struct teller *teller,
				       const MESSAGE(Mapping) * mapping)
{
	const MESSAGE(AnyValue) *go = NULL, *base = NULL;
	struct told_module module = {.is_there = true};
	const char *text;

	module.is_bad = !find_attribute(teller, mapping->attribute_indices,
					mapping->n_attribute_indices,
					"process.executable.build_id.go", &go, true) ||
			!string_at(teller, mapping->filename_strindex);
	find_attribute(teller, mapping->attribute_indices, mapping->n_attribute_indices,
		       "farflame.address_base", &base, true);
	find_id(teller, mapping, "process.executable.build_id.gnu", &module.id);
	find_id(teller, mapping, "process.executable.build_id.htlhash", &module.htlhash);
	module.go = go ? value_text(teller, go) : "";
	module.name = base_name(or_empty(string_at(teller, mapping->filename_strindex)));
	text = base ? value_text(teller, base) : "";
	module.base = !strcmp(text, "_text") ? 1 : !strcmp(text, ".text") ? 2 : 0;
	if (!module.id.length)
		module.id = module.htlhash;
	if (!module.id.length && *module.go) {
		uint64_t halves[2] = {hash_bytes(module.go, strlen(module.go), 1),
				      hash_bytes(module.go, strlen(module.go), 2)};

		build_id_set(&module.id, halves, 16);
	}
	if (!module.id.length && !*module.name && !*module.go)
		module.is_there = false;
	return module;
}

static void put_location(struct buffer *out, int kind, uint64_t address, bool has_address,
			 const struct told_module *module, const char *function, const char *file,
			 const char *type, uint32_t line)
{
	buffer_printf(out, "    %d ", kind);
	if (has_address)
		buffer_printf(out, "%llx ", (unsigned long long)address);
	if (module && module->is_there) {
		put_id(out, &module->id);
		buffer_append_char(out, ' ');
		put_id(out, &module->htlhash);
		put_text(out, module->name, strlen(module->name));
		put_text(out, module->go, strlen(module->go));
		buffer_printf(out, "%d", module->base);
	}
	put_text(out, function, strlen(function));
	put_text(out, file, strlen(file));
	put_text(out, type, strlen(type));
	buffer_printf(out, "%u\n", line);
}

/* What one entry of the location table says. False: it refers outside the tables. */
struct told_location {
	const MESSAGE(Location) * location;
	const MESSAGE(Mapping) * mapping;
	struct told_module module;
	const char *type;
	bool is_anonymous;
};

static bool read_told(const struct teller *teller, int32_t index, struct told_location *told)
{
	const Dictionary *dictionary = teller->dictionary;
	const MESSAGE(AnyValue) *type = NULL, *anonymous = NULL;
	int64_t number = 0;
	bool ok;

	*told = (struct told_location){.type = ""};
	if (index < 0 || (size_t)index >= dictionary->n_location_table)
		return false;
	told->location = dictionary->location_table[index];
	ok = find_attribute(teller, told->location->attribute_indices,
			    told->location->n_attribute_indices, "profile.frame.type", &type, true);
	find_attribute(teller, told->location->attribute_indices,
		       told->location->n_attribute_indices, "farflame.anonymous", &anonymous,
		       false);
	if (type)
		told->type = value_text(teller, type);
	told->is_anonymous = anonymous && value_number(anonymous, &number) && number;
	if (told->location->mapping_index >= 0 &&
	    (size_t)told->location->mapping_index < dictionary->n_mapping_table) {
		told->mapping = dictionary->mapping_table[told->location->mapping_index];
		told->module = tell_mapping(teller, told->mapping);
		ok &= !told->module.is_bad;
	} else if (told->location->mapping_index) {
		ok = false;
	}
	return ok;
}

static bool find_function(const struct teller *teller, int32_t index, const char **name,
			  const char **file)
{
	const MESSAGE(Function) * function;
	const char *system_name;

	*name = *file = "";
	if (index < 0 || (size_t)index >= teller->dictionary->n_function_table)
		return !index;
	function = teller->dictionary->function_table[index];
	*name = string_at(teller, function->name_strindex);
	*file = string_at(teller, function->filename_strindex);
	system_name = string_at(teller, function->system_name_strindex);
	if (!*name || !*file || !system_name) {
		*name = or_empty(*name);
		*file = or_empty(*file);
		return false;
	}
	if (!**name)
		*name = system_name;
	return true;
}

struct told_stack {
	unsigned depth;
	bool is_cut, is_bad;
	char marker[4096]; /* sentence; "" none */
};

static void tell_lines(const struct teller *teller, const struct told_location *told,
		       struct told_stack *stack, struct buffer *out)
{
	for (size_t i = 0; i < told->location->n_lines; i++) {
		const MESSAGE(Line) *line = told->location->lines[i];
		const char *name, *file;
		uint32_t number = line->line > 0 && line->line <= INT32_MAX ? (uint32_t)line->line
									    : 0;

		if (!find_function(teller, line->function_index, &name, &file)) {
			stack->is_bad = true;
			return;
		}
		if (stack->depth >= 2048) {
			stack->is_cut = true;
			continue;
		}
		stack->depth++;
		put_location(out, LOCATION_NAMED, 0, false, &told->module, name, file, told->type,
			     number);
	}
}

/* The marker's own line, kept for the root end. */
static void tell_marker(const struct teller *teller, const struct told_location *told,
			struct told_stack *stack)
{
	struct buffer line;
	const char *name = "", *file = "";
	uint32_t number = 0;

	for (size_t i = 0; i < told->location->n_lines; i++) {
		const MESSAGE(Line) *from = told->location->lines[i];
		const char *this_name, *this_file;

		if (!find_function(teller, from->function_index, &this_name, &this_file))
			stack->is_bad = true;
		if (i)
			continue;
		name = this_name;
		file = this_file;
		number = from->line > 0 && from->line <= INT32_MAX ? (uint32_t)from->line : 0;
	}
	buffer_init(&line, sizeof stack->marker);
	put_location(&line, LOCATION_INCOMPLETE, 0, false, NULL,
		     *name ? name : "the sender's unwinder gave up", file, "", number);
	buffer_append_char(&line, '\0');
	snprintf(stack->marker, sizeof stack->marker, "%s", (const char *)line.bytes);
	buffer_release(&line);
}

static void tell_frame(const struct teller *teller, int32_t index, struct told_stack *stack,
		       struct buffer *out)
{
	struct told_location told;
	uint64_t address;
	bool is_kernel;

	if (!read_told(teller, index, &told)) {
		stack->is_bad = true;
		return;
	}
	if (!strcmp(told.type, "abort-marker")) {
		tell_marker(teller, &told, stack);
		return;
	}
	if (told.location->n_lines) {
		tell_lines(teller, &told, stack, out);
		return;
	}
	if (stack->depth >= 2048) {
		stack->is_cut = true;
		return;
	}
	stack->depth++;
	address = told.location->address;
	if (told.mapping && !told.module.base && told.mapping->memory_limit &&
	    told.mapping->memory_start >= 1ull << 40 && address >= told.mapping->memory_start &&
	    address < told.mapping->memory_limit)
		address += told.mapping->file_offset - told.mapping->memory_start;
	is_kernel = (told.mapping && told.module.base) || !strcmp(told.type, "kernel");
	if (told.is_anonymous)
		put_location(out, LOCATION_ANONYMOUS, 0, false, NULL, "", "", "", 0);
	else
		put_location(out, is_kernel ? LOCATION_KERNEL : LOCATION_NATIVE, address, true,
			     &told.module, "", "", "", 0);
}

static bool tell_stack(const struct teller *teller, int32_t index, const char *incomplete,
		       struct buffer *out)
{
	const MESSAGE(Stack) * from;
	struct told_stack stack = {0};

	if (index < 0 || (size_t)index >= teller->dictionary->n_stack_table)
		return false;
	from = teller->dictionary->stack_table[index];
	for (size_t i = 0; i < from->n_location_indices && !stack.is_bad; i++)
		tell_frame(teller, from->location_indices[i], &stack, out);
	if (stack.is_bad)
		return false;
	if (stack.is_cut)
		put_location(out, LOCATION_INCOMPLETE, 0, false, NULL,
			     "deeper than 2048 frames, cut at the root end", "", "", 0);
	else if (incomplete)
		put_location(out, LOCATION_INCOMPLETE, 0, false, NULL, incomplete, "", "", 0);
	else if (stack.marker[0])
		buffer_append_text(out, stack.marker);
	else if (!stack.depth)
		put_location(out, LOCATION_INCOMPLETE, 0, false, NULL, "the sender gave no stack",
			     "", "", 0);
	return true;
}

enum told_values { PAIR, COUNTS, SUMS, UNKNOWN_VALUES, BAD_STRINGS };

static enum told_values choose_values(const struct teller *teller, const MESSAGE(Profile) * profile,
				      bool is_ours, const char **type, uint64_t *period)
{
	static const MESSAGE(ValueType) none = FARFLAME__OTLP__VALUE_TYPE__INIT;
	const MESSAGE(ValueType) *sample = profile->sample_type ? profile->sample_type : &none;
	const MESSAGE(ValueType) *times = profile->period_type ? profile->period_type : &none;
	const char *name = string_at(teller, sample->type_strindex);
	const char *unit = string_at(teller, sample->unit_strindex);
	const char *period_name = string_at(teller, times->type_strindex);
	const char *period_unit = string_at(teller, times->unit_strindex);
	int number;

	if (!name || !unit || !period_name || !period_unit)
		return BAD_STRINGS;
	*period = profile->period > 0 && !strcmp(period_unit, "nanoseconds")
			  ? (uint64_t)profile->period
			  : 0;
	number = profile_type_find(name, strlen(name));
	*type = name;
	if (number >= 0 && !strcmp(unit, profile_type_unit((unsigned)number)))
		return is_ours ? PAIR : SUMS;
	*type = "on-cpu";
	if (is_ours)
		return UNKNOWN_VALUES;
	if (!strcmp(name, "samples") && !strcmp(unit, "count") && !strcmp(period_name, "cpu") &&
	    *period)
		return COUNTS;
	if (!strcmp(name, "cpu") && !strcmp(unit, "nanoseconds"))
		return SUMS;
	*type = "off-cpu";
	if (!strcmp(name, "off_cpu") && !strcmp(unit, "nanoseconds"))
		return SUMS;
	return UNKNOWN_VALUES;
}

/* 1 told, 0 a bad value, -1 a bad index. */
static int tell_one_sample(const struct teller *teller, const MESSAGE(Sample) * sample,
			   enum told_values values, const char *type, uint64_t period,
			   struct buffer *out)
{
	const MESSAGE(AnyValue) *thread = NULL, *incomplete = NULL;
	uint64_t count = sample->n_timestamps_unix_nano, sum = 0, value;
	const char *text;
	struct buffer stack;
	bool ok = true;

	for (size_t i = 0; i < sample->n_attribute_indices; i++) {
		const MESSAGE(AnyValue) *found = NULL;

		ok &= find_attribute(teller, &sample->attribute_indices[i], 1, "thread.name",
				     &found, true);
		if (found && *value_text(teller, found))
			thread = found;
		found = NULL;
		find_attribute(teller, &sample->attribute_indices[i], 1, "farflame.incomplete",
			       &found, true);
		if (found && *value_text(teller, found))
			incomplete = found;
	}
	if (!ok)
		return -1;
	for (size_t i = 0; i < sample->n_values; i++) {
		if (sample->values[i] < 0 ||
		    __builtin_add_overflow(sum, (uint64_t)sample->values[i], &sum))
			return 0;
	}
	if (values == PAIR) {
		if (sample->n_values != 2)
			return 0;
		count = (uint64_t)sample->values[0];
		value = (uint64_t)sample->values[1];
	} else if (values == COUNTS) {
		count = sample->n_values ? sum : count;
		if (__builtin_mul_overflow(count, period, &value))
			value = UINT64_MAX >> 1;
	} else {
		value = sum;
		if (!sample->n_values && __builtin_mul_overflow(count, period, &value))
			value = UINT64_MAX >> 1;
		if (!count && period && !strcmp(type, "on-cpu"))
			count = value / period;
		if (!count)
			count = value != 0;
	}
	if (!count && !value)
		return 1;
	buffer_init(&stack, 64 << 20);
	if (!tell_stack(teller, sample->stack_index,
			incomplete ? value_text(teller, incomplete) : NULL, &stack)) {
		buffer_release(&stack);
		return -1;
	}
	text = thread ? value_text(teller, thread) : "";
	buffer_append_text(out, "  sample ");
	put_text(out, text, strlen(text) < 64 ? strlen(text) : 64);
	buffer_printf(out, " %llu %llu\n", (unsigned long long)count, (unsigned long long)value);
	buffer_append(out, stack.bytes, stack.length);
	buffer_release(&stack);
	return 1;
}

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

static int64_t told_start(const struct teller *teller, const MESSAGE(Profile) * profile)
{
	uint64_t first = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const MESSAGE(Sample) *sample = profile->samples[i];

		if (sample->n_timestamps_unix_nano && sample->timestamps_unix_nano[0] &&
		    (!first || sample->timestamps_unix_nano[0] < first))
			first = sample->timestamps_unix_nano[0];
	}
	if (profile->time_unix_nano)
		first = profile->time_unix_nano;
	return first ? (int64_t)(first / 1000000) : teller->now_ms;
}

static void tell_counts(const struct told_counts *counts, struct buffer *out)
{
	for (unsigned i = 0; i < counts->count; i++) {
		put_text(out, counts->names[i], strlen(counts->names[i]));
		buffer_printf(out, "%llu", (unsigned long long)counts->counts[i]);
	}
}

static void tell_told_counters(struct teller *teller, const struct told_resource *resource,
			       const MESSAGE(Profile) * profile)
{
	struct buffer *out = &teller->counters;
	int64_t time_ms = profile->time_unix_nano ? (int64_t)(profile->time_unix_nano / 1000000)
						  : teller->now_ms;

	time_ms = time_ms > teller->now_ms + 600000 ? teller->now_ms : time_ms;
	time_ms = time_ms < teller->oldest_ms ? teller->oldest_ms : time_ms;
	buffer_append_text(out, "counters ");
	for (int i = 0; i < 32; i++)
		buffer_append_char(out, (char)(resource->agent[i] | 0x20));
	put_text(out, *resource->host ? resource->host : teller->peer,
		 strlen(*resource->host ? resource->host : teller->peer));
	put_text(out, resource->version, strlen(resource->version));
	put_text(out, resource->kernel, strlen(resource->kernel));
	buffer_printf(out, "rate %u seq %llu ack %llu taken %llu idle %llu time %lld + %lld",
		      (uint32_t)resource->rate, (unsigned long long)resource->seq,
		      (unsigned long long)resource->acknowledged,
		      (unsigned long long)resource->taken, (unsigned long long)resource->idle,
		      (long long)time_ms,
		      (long long)(profile->duration_nano / 1000000 % 600000000));
	tell_counts(&resource->lost, out);
	tell_counts(&resource->stacks, out);
	buffer_append_char(out, '\n');
}

/* The sender's own, else one of the request's hash and the profile's number in it. */
static void tell_id(const struct teller *teller, const MESSAGE(Profile) * profile,
		    struct buffer *out)
{
	uint64_t hash[2] = {hash_bytes(teller->body.at, teller->body.length, 1),
			    hash_bytes(teller->body.at, teller->body.length, 2)};
	bool is_own = !profile->time_unix_nano;
	uint8_t id[16] = {0};

	for (size_t i = 0; i < 16 && profile->profile_id.len == 16; i++)
		is_own |= profile->profile_id.data[i];
	if (is_own && profile->profile_id.len == 16)
		memcpy(id, profile->profile_id.data, 16);
	if (!is_own)
		memcpy(id, hash, 12);
	for (int i = 0; !is_own && i < 4; i++)
		id[12 + i] = (uint8_t)((teller->good + 1) >> (24 - 8 * i));
	for (size_t i = 0; i < 16; i++)
		buffer_printf(out, "%02x", id[i]);
}

static void tell_profile(struct teller *teller, const struct told_resource *resource,
			 const MESSAGE(Profile) * profile, bool is_ours)
{
	int64_t time_ms = told_start(teller, profile);
	struct buffer text;
	const char *type;
	uint64_t period;
	enum told_values values;
	int worst = 1;

	if (!profile->n_samples)
		return;
	values = choose_values(teller, profile, is_ours, &type, &period);
	if (values >= UNKNOWN_VALUES) {
		teller->rejected++;
		teller->bad_indices += values == BAD_STRINGS;
		return;
	}
	buffer_init(&text, 256 << 20);
	buffer_printf(&text, "profile %s %lld %d ", type, (long long)time_ms, is_ours);
	tell_id(teller, profile, &text);
	tell_labels(teller, resource, &text);
	buffer_append_char(&text, '\n');
	for (size_t i = 0; i < profile->n_samples; i++) {
		int got = tell_one_sample(teller, profile->samples[i], values, type, period, &text);

		worst = got < worst ? got : worst;
	}
	if (worst < 0)
		teller->bad_indices++;
	if (worst < 1 || time_ms > teller->now_ms + 600000 || time_ms < teller->oldest_ms) {
		teller->rejected++;
	} else {
		teller->good++;
		buffer_append(teller->out, text.bytes, text.length);
	}
	buffer_release(&text);
}

/* False: the request is one that is to be refused as a whole. */
static bool tell_request(const Request *request, struct bytes body, const char *peer,
			 int64_t now_ms, int64_t oldest_ms, unsigned *rejected, struct buffer *out)
{
	static const Dictionary none = FARFLAME__OTLP__PROFILES_DICTIONARY__INIT;
	struct teller teller = {request->dictionary ? request->dictionary : &none,
				now_ms,
				oldest_ms,
				peer,
				0,
				0,
				0,
				out,
				{0},
				body};

	buffer_init(&teller.counters, 1 << 20);
	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		const MESSAGE(ResourceProfiles) *outer = request->resource_profiles[i];
		struct told_resource resource;

		read_resource(&teller, outer->resource, &resource);
		for (size_t k = 0; k < outer->n_scope_profiles; k++) {
			const MESSAGE(ScopeProfiles) *scope = outer->scope_profiles[k];
			bool is_ours = scope->scope &&
				       !strcmp(scope->scope->name, "farflame-agent");

			for (size_t n = 0; n < scope->n_profiles; n++) {
				if (is_ours && resource.agent)
					tell_told_counters(&teller, &resource, scope->profiles[n]);
				tell_profile(&teller, &resource, scope->profiles[n], is_ours);
			}
		}
	}
	buffer_append(out, teller.counters.bytes, teller.counters.length);
	buffer_release(&teller.counters);
	*rejected = teller.rejected;
	return teller.good || !teller.bad_indices;
}

#endif
