/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/thread_places.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "node-agent/contexts/thread_slot.h"
#include "node-agent/processes/file_answers.h"

enum { MAPPINGS_MAX = 1024 };

struct thread_places {
	struct process_table *table;
	struct code_pages *pages;
	struct file_answers *files; /* struct tls_symbol of those that have it, or labels */
};

static bool ask(void *context, const struct executable *executable)
{
	return code_pages_ask_tls(((struct thread_places *)context)->pages, executable);
}

static void take(void *context, uint32_t executable, const struct tls_symbol *symbol)
{
	struct thread_places *places = context;
	const bool has_any = symbol && (symbol->is_defined || symbol->go.is_defined);

	file_answers_put(places->files, executable, has_any ? symbol : NULL, sizeof *symbol);
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
	places->files = file_answers_new(table, ask, places, err);
	if (!places->files) {
		free(places);
		return NULL;
	}
	code_pages_set_tls(pages, take, places);
	return places;
}

void thread_places_free(struct thread_places *places)
{
	if (!places)
		return;
	code_pages_set_tls(places->pages, NULL, NULL);
	file_answers_free(places->files);
	free(places);
}

/* False: it has to be asked, or is being. */
static bool known(struct thread_places *places, uint32_t index, const struct tls_symbol **symbol)
{
	const void *answer;
	const bool is_known = file_answers_find(places->files, index, &answer);

	*symbol = answer;
	return is_known;
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
			const struct tls_symbol *symbol;

			if (index == EXECUTABLE_NONE || index == EXECUTABLE_ANONYMOUS) {
				is_unsure |= index == EXECUTABLE_NONE;
				continue;
			}
			is_unsure |= !known(places, index, &symbol);
			if (symbol && symbol->is_defined && symbol->is_program == !pass &&
			    thread_slot_find(symbol, mappings[i].base, directory, musl, place))
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
		const struct tls_symbol *symbol;

		if (!executable || !executable->has_go)
			continue;
		if (!known(places, mappings[i].executable, &symbol))
			located = CONTEXT_LATER;
		else if (symbol && set_labels(&symbol->go, place))
			return CONTEXT_LOCATED;
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
