/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, places and stacks of what protobuf-c decodes, as text. */
#ifndef TESTS_UNIT_INGEST_REFERENCE_STACKS_H
#define TESTS_UNIT_INGEST_REFERENCE_STACKS_H

#include "common/hash_table.h"
#include "schema/wire/profiles.pb-c.h"
#include "tests/unit/ingest/reference_batch.h"

#define MESSAGE(name_) Farflame__Otlp__##name_
typedef MESSAGE(ExportProfilesServiceRequest) Request;
typedef MESSAGE(ProfilesDictionary) Dictionary;

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
	bool is_anonymous, is_runtime;
};

static bool read_told(const struct teller *teller, int32_t index, struct told_location *told)
{
	const Dictionary *dictionary = teller->dictionary;
	const MESSAGE(AnyValue) *type = NULL, *anonymous = NULL, *runtime = NULL;
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
	find_attribute(teller, told->location->attribute_indices,
		       told->location->n_attribute_indices, "farflame.runtime", &runtime, false);
	told->is_runtime = runtime && value_number(runtime, &number) && number;
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
		put_location(out,
			     is_kernel         ? LOCATION_KERNEL
			     : told.is_runtime ? LOCATION_RUNTIME
					       : LOCATION_NATIVE,
			     address, true, &told.module, "", "", "", 0);
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

#endif
