/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/thread_places.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "node-agent/contexts/thread_slot.h"

enum {
	FILES_MAX = 8192,
	MAPPINGS_MAX = 1024,
};

/* What is known of one executable. */
struct known_file {
	uint32_t executable;
	bool is_asked, is_answered;
	struct tls_symbol *symbol; /* NULL: it has neither the symbol nor labels */
};

struct thread_places {
	struct process_table *table;
	struct code_pages *pages;
	struct hash_table index;
	struct known_file *files;
	uint32_t count, room;
};

static struct known_file *find(struct thread_places *places, uint32_t executable)
{
	const uint64_t hash = hash_word(0, executable);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&places->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&places->index, hash, &probe))
		if (places->files[i].executable == executable)
			return &places->files[i];
	return NULL;
}

static void forget_all(struct thread_places *places)
{
	for (uint32_t i = 0; i < places->count; i++)
		free(places->files[i].symbol);
	places->count = 0;
	hash_table_clear(&places->index);
}

static struct known_file *add(struct thread_places *places, uint32_t executable)
{
	if (places->count == FILES_MAX)
		forget_all(places); /* numbers of files that are gone are among them */
	if (places->count == places->room) {
		uint32_t room = places->room ? 2 * places->room : 64;
		struct known_file *files = realloc(places->files, room * sizeof *files);

		if (!files)
			return NULL;
		places->files = files;
		places->room = room;
	}
	if (!hash_table_add(&places->index, hash_word(0, executable), places->count))
		return NULL;
	places->files[places->count] = (struct known_file){.executable = executable};
	return &places->files[places->count++];
}

static void take(void *context, uint32_t executable, const struct tls_symbol *symbol)
{
	struct known_file *file = find(context, executable);

	if (!file || file->is_answered)
		return;
	file->is_answered = true;
	if (!symbol || (!symbol->is_defined && !symbol->go.is_defined))
		return;
	file->symbol = malloc(sizeof *symbol);
	if (file->symbol)
		*file->symbol = *symbol;
}

struct thread_places *thread_places_new(struct process_table *table, struct code_pages *pages,
					struct error *err)
{
	struct thread_places *places = calloc(1, sizeof *places);

	if (!places) {
		error_set(err, ERROR_MEMORY, "no memory for places of threads' contexts");
		return NULL;
	}
	places->table = table;
	places->pages = pages;
	hash_table_init(&places->index, FILES_MAX);
	code_pages_set_tls(pages, take, places);
	return places;
}

void thread_places_free(struct thread_places *places)
{
	if (!places)
		return;
	code_pages_set_tls(places->pages, NULL, NULL);
	forget_all(places);
	hash_table_release(&places->index);
	free(places->files);
	free(places);
}

/* NULL: it has to be asked, or is being. */
static const struct known_file *known(struct thread_places *places, uint32_t index)
{
	const struct executable *executable = process_table_executable(places->table, index);
	struct known_file *file = find(places, index);

	if (!file)
		file = add(places, index);
	if (!file)
		return NULL;
	if (!file->is_answered &&
	    (!executable || executable->is_raw || !process_table_reopen(places->table, index)))
		file->is_answered = true;
	if (!file->is_answered && !file->is_asked)
		file->is_asked = code_pages_ask_tls(places->pages, executable);
	return file->is_answered ? file : NULL;
}

static bool is_musl(struct thread_places *places, const struct process_mapping *mappings,
		    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct executable *executable =
			process_table_executable(places->table, mappings[i].executable);

		if (executable && !strncmp(executable->name, "ld-musl-", 8))
			return true;
	}
	return false;
}

/* The program's own symbol is everybody's: it is looked for first. */
static enum context_located search(struct thread_places *places,
				   const struct process_mapping *mappings, size_t count,
				   int directory, struct thread_context_place *place)
{
	const bool musl = is_musl(places, mappings, count);
	bool is_unsure = false;

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			const uint32_t index = mappings[i].executable;
			const struct known_file *file;

			if (index == EXECUTABLE_NONE || index == EXECUTABLE_ANONYMOUS) {
				is_unsure |= index == EXECUTABLE_NONE;
				continue;
			}
			file = known(places, index);
			is_unsure |= !file;
			if (file && file->symbol && file->symbol->is_defined &&
			    file->symbol->is_program == !pass &&
			    thread_slot_find(file->symbol, mappings[i].base, directory, musl,
					     place))
				return CONTEXT_LOCATED;
		}
		if (is_unsure)
			return CONTEXT_LATER;
	}
	return CONTEXT_NOT_FOUND;
}

static bool set_labels(const struct go_labels_place *labels, struct thread_context_place *place)
{
	if (!labels->is_defined)
		return false;
	place->kind = labels->is_list ? THREAD_CONTEXT_GO_LIST : THREAD_CONTEXT_GO_MAP;
	place->offset = labels->tls;
	place->curg = labels->curg;
	place->labels = labels->labels;
	return true;
}

/* Only files that have Go's functions are asked about. */
static enum context_located search_labels(struct thread_places *places,
					  const struct process_mapping *mappings, size_t count,
					  struct thread_context_place *place)
{
	enum context_located located = CONTEXT_NOT_FOUND;

	for (size_t i = 0; i < count; i++) {
		const struct executable *executable =
			process_table_executable(places->table, mappings[i].executable);
		const struct known_file *file;

		if (!executable || !executable->has_go)
			continue;
		file = known(places, mappings[i].executable);
		if (file && file->symbol && set_labels(&file->symbol->go, place))
			return CONTEXT_LOCATED;
		if (!file)
			located = CONTEXT_LATER;
	}
	return located;
}

/* directory NULL: of labels. */
static enum context_located locate(struct thread_places *places, const struct process_key *process,
				   const int *directory, struct thread_context_place *place)
{
	struct process_mapping *mappings = calloc(MAPPINGS_MAX, sizeof *mappings);
	enum context_located located = CONTEXT_LATER;
	uint32_t generation;
	size_t count;

	if (mappings) {
		count = process_table_mappings(places->table, process, monotonic_ns(), mappings,
					       MAPPINGS_MAX, &generation);
		if (count && directory)
			located = search(places, mappings, count, *directory, place);
		else if (count)
			located = search_labels(places, mappings, count, place);
	}
	free(mappings);
	return located;
}

enum context_located thread_places_find(struct thread_places *places,
					const struct process_key *process, int directory,
					struct thread_context_place *place)
{
	return locate(places, process, &directory, place);
}

enum context_located thread_places_find_labels(struct thread_places *places,
					       const struct process_key *process,
					       struct thread_context_place *place)
{
	return locate(places, process, NULL, place);
}
