/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/location_frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/naming/demangle.h"
#include "symbol-server/naming/demangle_cache.h"
#include "symbol-server/naming/idle_waits.h"

enum {
	NAMES_BYTES = 512 << 20,
	FRAMES_MAX = 8 << 20,
	ENTRIES_MAX = 8 << 20,
	NAME_ROOM = 512,
	LOCATIONS_MAX = 1 << 24,
};

static bool no_memory(struct location_frames *names, struct error *err)
{
	if (names->arena.failed || names->count >= FRAMES_MAX ||
	    names->entry_count >= ENTRIES_MAX || names->result->location_count >= LOCATIONS_MAX)
		return error_set(err, ERROR_LIMIT,
				 "the answer has too many distinct frames; narrow time or match");
	return error_no_memory(err);
}

static bool is_module_hidden(const struct stack_view *view, const char *name)
{
	return (view->hide_module && pattern_matches_part(view->hide_module, name)) ||
	       (view->only_module && !pattern_matches_part(view->only_module, name));
}

/* Equal content is one module, whichever day or name it came in by. */
static bool join_modules(struct location_frames *names, struct error *err)
{
	const struct samples_result *result = names->result;
	size_t room = (size_t)result->module_count + 1;
	struct hash_table table;
	bool ok = false;

	hash_table_init(&table, (uint32_t)room);
	names->modules = calloc(room, sizeof(*names->modules));
	names->module_of = calloc(room, sizeof(*names->module_of));
	names->origins = calloc(room, sizeof(*names->origins));
	names->tables = calloc(room, sizeof(struct symbol_table *));
	names->hidden = calloc(room, sizeof(*names->hidden));
	if (!names->hidden || !names->modules || !names->module_of || !names->origins ||
	    !names->tables)
		goto out;
	for (uint32_t i = 0; i < result->module_count; i++) {
		const struct result_module *module = &result->modules[i];
		uint64_t hash = module->id.length ? build_id_hash(&module->id)
						  : frame_name_hash(module->name);
		char hex[BUILD_ID_HEX];
		uint32_t probe, at;

		for (at = hash_table_first(&table, hash, &probe); at != HASH_TABLE_NONE;
		     at = hash_table_next(&table, hash, &probe))
			if (build_id_equal(&names->origins[at]->id, &module->id) &&
			    (module->id.length || !strcmp(names->modules[at].name, module->name)))
				break;
		if (at == HASH_TABLE_NONE) {
			at = names->module_count;
			build_id_format(&module->id, hex);
			names->modules[at].name = module->name;
			names->modules[at].build_id =
				module->id.length ? arena_text(&names->arena, hex, strlen(hex))
						  : "";
			names->origins[at] = module;
			names->hidden[at] = is_module_hidden(names->view, module->name);
			if (names->view->build && build_id_equal(&module->id, names->view->build))
				names->build = at;
			if (!names->modules[at].build_id || !hash_table_add(&table, hash, at))
				goto out;
			names->module_count++;
		}
		names->module_of[i] = at;
	}
	ok = true;
out:
	hash_table_release(&table);
	return ok ? true : no_memory(names, err);
}

/* Instances that a simple name joins have no signature: it is asked for to see less. */
static const char *shown_name(struct location_frames *names, const char *raw,
			      const char **signature)
{
	const struct stack_view *view = names->view;
	struct demangled_name name;

	*signature = NULL;
	if (view->demangle == DEMANGLE_NONE)
		return raw;
	name = demangle_cached(raw, &names->arena);
	if (view->demangle == DEMANGLE_SIMPLE)
		return demangle_simple(name.shown, &names->arena);
	if (!view->joins_names)
		*signature = name.signature;
	return name.shown;
}

static uint8_t match_flags(const struct stack_view *view, const char *name)
{
	uint8_t flags = 0;

	if (view->focus && pattern_matches_part(view->focus, name))
		flags |= NAME_FOCUSED;
	if (view->ignore && pattern_matches_part(view->ignore, name))
		flags |= NAME_IGNORED;
	if (view->hide && pattern_matches_part(view->hide, name))
		flags |= NAME_HIDDEN;
	if (view->folds_idle && idle_waits_has_function(name))
		flags |= NAME_IDLE;
	return flags;
}

/* "name (file)": of functions that are in no module their file says which one is meant. */
static const char *signature_in_file(struct location_frames *names, const char *name,
				     const char *file)
{
	size_t length = strlen(name), room = length + strlen(file) + sizeof(" ()");
	char *text = arena_alloc(&names->arena, room);

	if (text)
		snprintf(text, room, "%s (%s)", name, file);
	return text;
}

static bool is_entry_of(const struct name_entry *entry, const char *raw, const char *file)
{
	return entry->raw == raw && entry->file == file;
}

/* Tables lend one text for all places that name a function: known by its address, and by that of
 * its file where this tells it apart (else NULL). NULL: no room. */
static const struct name_entry *entry_take(struct location_frames *names, const char *raw,
					   const char *file)
{
	uint64_t hash = hash_word(hash_word(0, (uintptr_t)raw), (uintptr_t)file);
	struct name_entry *entry;
	uint32_t probe, at;

	if (names->last_entry < names->entry_count &&
	    is_entry_of(&names->entries[names->last_entry], raw, file))
		return &names->entries[names->last_entry];
	for (at = hash_table_first(&names->names, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&names->names, hash, &probe))
		if (is_entry_of(&names->entries[at], raw, file)) {
			names->last_entry = at;
			return &names->entries[at];
		}
	if (names->entry_count >= ENTRIES_MAX ||
	    !ARRAY_GROW(names->entries, names->entry_count, names->entry_capacity) ||
	    !hash_table_add(&names->names, hash, names->entry_count))
		return NULL;
	entry = &names->entries[names->entry_count];
	entry->raw = raw;
	entry->file = file;
	entry->shown = shown_name(names, raw, &entry->signature);
	if (entry->shown && file && !entry->signature)
		entry->signature = signature_in_file(names, entry->shown, file);
	if (!entry->shown || (file && !entry->signature))
		return NULL;
	entry->hash = frame_name_hash(entry->shown);
	entry->signature_hash = entry->signature ? frame_name_hash(entry->signature) : 0;
	entry->flags = match_flags(names->view, entry->shown);
	names->last_entry = names->entry_count++;
	return entry;
}

static void set_name(struct flame_frame *frame, const struct name_entry *entry)
{
	frame->name = entry->shown;
	frame->name_hash = entry->hash;
	frame->signature = entry->signature;
	frame->signature_hash = entry->signature_hash;
}

/* That a stack is incomplete is told whatever is left out. */
static bool is_left_out(const struct location_frames *names, const struct flame_frame *frame)
{
	const struct stack_view *view = names->view;

	if (frame->kind == FRAME_incomplete)
		return false;
	if (frame->is_runtime && (view->hides_runtime || view->hide_kinds >> FRAME_runtime & 1))
		return true;
	if (view->hide_kinds & UINT32_C(1) << (frame->is_kernel ? FRAME_kernel : frame->kind))
		return true;
	return frame->module == FRAME_NO_MODULE ? view->only_module != NULL
						: names->hidden[frame->module];
}

static bool add_frame(struct location_frames *names, const struct flame_frame *frame, uint8_t flags)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 4096;
		struct flame_frame *frames;
		uint8_t *grown;

		if (capacity > FRAMES_MAX)
			return false;
		frames = realloc(names->frames, capacity * sizeof(*frames));
		if (frames)
			names->frames = frames;
		grown = realloc(names->flags, capacity);
		if (grown)
			names->flags = grown;
		if (!frames || !grown)
			return false;
		names->capacity = capacity;
	}
	names->frames[names->count] = *frame;
	if (names->build != FRAME_NO_MODULE && frame->module == names->build)
		flags |= NAME_OF_BUILD;
	names->flags[names->count++] = flags | (is_left_out(names, frame) ? NAME_HIDDEN : 0);
	return true;
}

/* A name of our own making. */
static bool add_made(struct location_frames *names, const char *name, uint32_t module,
		     enum frame_kind kind, enum location_kind place)
{
	struct flame_frame frame = {
		.name = arena_text(&names->arena, name, strlen(name)),
		.file = "",
		.module = module,
		.kind = kind,
		.is_kernel = place == LOCATION_KERNEL,
		.is_runtime = place == LOCATION_RUNTIME,
	};

	if (!frame.name)
		return false;
	frame.name_hash = frame_name_hash(frame.name);
	return add_frame(names, &frame,
			 kind == FRAME_incomplete ? 0 : match_flags(names->view, frame.name));
}

/* No name: module and address, which somebody with the file can look up. */
static bool add_unresolved(struct location_frames *names, const struct result_location *location,
			   uint32_t module)
{
	char name[NAME_ROOM];

	if (location->kind == LOCATION_ANONYMOUS)
		snprintf(name, sizeof(name), "[anon]");
	else if (module == FRAME_NO_MODULE)
		snprintf(name, sizeof(name), "[unknown]");
	else
		snprintf(name, sizeof(name), "%.400s+0x%" PRIx64,
			 *names->modules[module].name ? names->modules[module].name
						      : names->modules[module].build_id,
			 location->address);
	return add_made(names, name, module, FRAME_unresolved, location->kind);
}

/* Kernel frames stay kernel frames where they are inlined: that they run in the kernel says more.
 * A runtime's likewise. */
static bool add_chain(struct location_frames *names, const struct symbol_frame *chain,
		      unsigned length, uint32_t module, enum location_kind place)
{
	for (unsigned i = length; i--;) {
		const struct name_entry *entry = entry_take(names, chain[i].name, NULL);
		struct flame_frame frame = {
			.file = chain[i].file,
			.line = chain[i].line,
			.module = module,
			.kind = place == LOCATION_KERNEL    ? FRAME_kernel
				: place == LOCATION_RUNTIME ? FRAME_runtime
				: chain[i].is_inline        ? FRAME_inline
							    : FRAME_native,
			.is_kernel = place == LOCATION_KERNEL,
			.is_runtime = place == LOCATION_RUNTIME,
		};

		if (!entry)
			return false;
		set_name(&frame, entry);
		if (!add_frame(names, &frame, entry->flags))
			return false;
	}
	return true;
}

struct frame_type {
	const char *type;
	enum frame_kind kind;
	enum frame_language language;
};

/* By OpenTelemetry's profile.frame.type; one we have not heard of is an interpreter's. */
static const struct frame_type *find_type(const char *type)
{
	static const struct frame_type types[] = {
		{"", FRAME_native, LANGUAGE_none},
		{"native", FRAME_native, LANGUAGE_none},
		{"kernel", FRAME_kernel, LANGUAGE_none},
		{"go", FRAME_native, LANGUAGE_go},
		{"rust", FRAME_native, LANGUAGE_rust},
		{"jvm", FRAME_jit, LANGUAGE_java},
		{"dotnet", FRAME_jit, LANGUAGE_dotnet},
		{"v8js", FRAME_jit, LANGUAGE_javascript},
		{"luajit", FRAME_jit, LANGUAGE_lua},
		{"beam", FRAME_jit, LANGUAGE_erlang},
		{"jit", FRAME_jit, LANGUAGE_none},
		{"cuda", FRAME_gpu, LANGUAGE_none},
		{"gpu", FRAME_gpu, LANGUAGE_none},
		{"cpython", FRAME_interpreter, LANGUAGE_python},
		{"ruby", FRAME_interpreter, LANGUAGE_ruby},
		{"php", FRAME_interpreter, LANGUAGE_php},
		{"perl", FRAME_interpreter, LANGUAGE_perl},
		{"lua", FRAME_interpreter, LANGUAGE_lua},
	};
	static const struct frame_type other = {"", FRAME_interpreter, LANGUAGE_none};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(type, types[i].type))
			return &types[i];
	return &other;
}

/* A file tells functions apart that are in no module, unless they are to be one. */
static const char *telling_file(const struct location_frames *names,
				const struct flame_frame *frame)
{
	const struct stack_view *view = names->view;
	bool is_apart = frame->module == FRAME_NO_MODULE && !frame->is_kernel && *frame->file &&
			!view->joins_names && view->demangle != DEMANGLE_SIMPLE;

	return is_apart ? frame->file : NULL;
}

static bool add_named(struct location_frames *names, const struct result_location *location,
		      uint32_t module)
{
	const struct frame_type *type = find_type(location->type);
	const struct name_entry *entry;
	struct flame_frame frame = {
		.file = location->file,
		.line = location->line,
		.module = module,
		.kind = type->kind,
		.is_kernel = type->kind == FRAME_kernel,
		.language = (uint8_t)type->language,
	};

	if (!*location->function)
		return add_made(names, "[unknown]", module, FRAME_unresolved,
				frame.is_kernel ? LOCATION_KERNEL : LOCATION_NAMED);
	entry = entry_take(names, location->function, telling_file(names, &frame));
	if (!entry)
		return false;
	set_name(&frame, entry);
	return add_frame(names, &frame, entry->flags);
}

/* A sentence's number: each day has its own copy. */
static uint8_t take_reason(struct location_frames *names, const char *sentence)
{
	unsigned i = 0;

	while (i < names->reason_count && strcmp(names->reasons[i], sentence))
		i++;
	if (i == INCOMPLETE_REASONS)
		return INCOMPLETE_REASONS - 1;
	if (i == names->reason_count) {
		names->reason_count++;
		names->reasons[i] = i < INCOMPLETE_REASONS - 1 ? sentence : "other reasons";
	}
	return (uint8_t)i;
}

/* Most places of one function have the same frames, one after the other in the order of addresses:
 * they share them. */
static bool same_chain(const struct location_frames *names, const struct symbol_frame *chain,
		       unsigned length, uint32_t module, enum location_kind place)
{
	if (names->last_length != length || names->last_module != module ||
	    names->last_place != place)
		return false;
	for (unsigned i = 0; i < length; i++)
		if (names->last_chain[i].name != chain[i].name ||
		    names->last_chain[i].file != chain[i].file ||
		    names->last_chain[i].line != chain[i].line ||
		    names->last_chain[i].is_inline != chain[i].is_inline)
			return false;
	return true;
}

static bool share_chain(struct location_frames *names, struct named_location *named,
			const struct symbol_frame *chain, unsigned length, uint32_t module,
			enum location_kind place)
{
	if (!same_chain(names, chain, length, module, place)) {
		names->last_first = (uint32_t)names->count;
		if (!add_chain(names, chain, length, module, place))
			return false;
		memcpy(names->last_chain, chain, length * sizeof(*chain));
		names->last_length = length;
		names->last_module = module;
		names->last_place = place;
	}
	named->first = names->last_first;
	named->count = length;
	return true;
}

static bool name_told(struct location_frames *names, struct named_location *named,
		      const struct result_location *location, uint32_t module)
{
	char text[NAME_ROOM];

	if (location->kind == LOCATION_NAMED) {
		named->is_unresolved = !*location->function;
		return add_named(names, location, module);
	}
	snprintf(text, sizeof(text), "[incomplete: %.400s]", location->function);
	named->is_incomplete = true;
	named->reason = take_reason(names, location->function);
	return add_made(names, text, FRAME_NO_MODULE, FRAME_incomplete, LOCATION_INCOMPLETE);
}

struct place {
	uint64_t address;
	uint32_t module;
	uint32_t number : 24, kind : 8; /* of the location, which then need not be looked at */
};

static bool name_location(struct location_frames *names, const struct place *place)
{
	const struct result_location *location = &names->result->locations[place->number];
	struct named_location *named = &names->locations[place->number];
	struct symbol_frame chain[SYMBOL_CHAIN_MAX];
	uint32_t module = FRAME_NO_MODULE;
	unsigned length = 0;
	bool ok;

	if (place->module < names->result->module_count)
		module = names->module_of[place->module];
	named->first = (uint32_t)names->count;
	if (place->kind != LOCATION_INCOMPLETE && place->kind != LOCATION_NAMED) {
		if (module != FRAME_NO_MODULE && names->tables[module] &&
		    place->kind != LOCATION_ANONYMOUS)
			length = symbol_table_lookup(names->tables[module],
						     names->result->modules[place->module].base,
						     place->address, chain);
		if (length)
			return share_chain(names, named, chain, length, module,
					   (enum location_kind)place->kind);
		named->is_unresolved = true;
		named->is_behind = place->kind == LOCATION_RUNTIME && names->view->hides_runtime;
		ok = add_unresolved(names, location, module);
	} else {
		ok = name_told(names, named, location, module);
	}
	named->count = (uint32_t)names->count - named->first;
	return ok;
}

/* --- in the order of addresses, so that a table's parts are read once --- */

enum { DIGIT_BITS = 12, DIGITS = 1 << DIGIT_BITS, ADDRESS_ROUNDS = 3, ROUNDS = 4 };

static unsigned digit_of(const struct place *place, unsigned round)
{
	return (round < ADDRESS_ROUNDS ? (unsigned)(place->address >> (DIGIT_BITS * round))
				       : place->module) &
	       (DIGITS - 1);
}

/* One digit after the other, the least one first. */
static void sort_places(struct place *places, struct place *other, uint32_t count)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t starts[DIGITS + 1] = {0};
		struct place *swapped = places;

		for (uint32_t i = 0; i < count; i++)
			starts[digit_of(&places[i], round) + 1]++;
		for (unsigned i = 1; i < DIGITS; i++)
			starts[i] += starts[i - 1];
		for (uint32_t i = 0; i < count; i++)
			other[starts[digit_of(&places[i], round)]++] = places[i];
		places = other;
		other = swapped;
	}
}

static bool name_locations(struct location_frames *names)
{
	const struct samples_result *result = names->result;
	const struct stack_view *view = names->view;
	uint32_t count = result->location_count;
	struct place *places = calloc((size_t)count + 1, 2 * sizeof(*places));
	bool ok = places;

	for (uint32_t i = 0; ok && i < count; i++)
		places[i] = (struct place){.address = result->locations[i].address,
					   .module = result->locations[i].module,
					   .number = i,
					   .kind = result->locations[i].kind};
	if (ok)
		sort_places(places, places + count, count);
	for (uint32_t i = 0; ok && i < count; i++)
		ok = name_location(names, &places[i]) &&
		     (!view->goes_on || view->goes_on(view->context));
	free(places);
	return ok;
}

bool location_frames_init(struct location_frames *names, const struct samples_result *result,
			  struct symbolizer *symbolizer, const struct stack_view *view,
			  struct error *err)
{
	*names = (struct location_frames){.result = result, .view = view, .build = FRAME_NO_MODULE};
	arena_init(&names->arena, NAMES_BYTES);
	hash_table_init(&names->names, ENTRIES_MAX);
	names->locations = calloc((size_t)result->location_count + 1, sizeof(*names->locations));
	if (!names->locations || result->location_count >= LOCATIONS_MAX)
		return no_memory(names, err);
	if (!join_modules(names, err))
		return false;
	for (uint32_t i = 0; i < names->module_count; i++)
		if (names->origins[i]->id.length)
			names->tables[i] = symbolizer_take_table(symbolizer, &names->origins[i]->id,
								 NULL, 0);
	return name_locations(names) ||
	       ((!err || err->kind == ERROR_NONE) && no_memory(names, err));
}

void location_frames_release(struct location_frames *names)
{
	if (names->tables)
		for (uint32_t i = 0; i < names->module_count; i++)
			symbol_table_release(names->tables[i]);
	free(names->tables);
	free(names->frames);
	free(names->flags);
	free(names->locations);
	free(names->modules);
	free(names->module_of);
	free(names->origins);
	free(names->hidden);
	free(names->entries);
	hash_table_release(&names->names);
	arena_release(&names->arena);
}
