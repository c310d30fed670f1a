/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/nameless_files.h"

#include <stdlib.h>

#include "common/log.h"
#include "node-agent/network/back_off.h"
#include "node-agent/file_parser/malloc_names.h"

enum {
	FILES_MAX = 256,
	NAMES_MAX = 64,              /* that the server takes */
	AGAIN_MOST_MS = 3600 * 1000, /* what it did not know */
	AGAIN_DOUBLINGS = 12,
	FORGOTTEN_MS = 10 * 60 * 1000, /* nobody has looked for it, should there be no room */
};

struct nameless_file {
	struct build_id id;
	int64_t wanted_ms, next_ms;
	unsigned tries;
	bool has_heard; /* something came of a question, be it that the server is away */
	struct memory_functions *functions; /* NULL: not known */
};

struct nameless_files {
	struct ship *ship;
	int64_t again_ms, quiet_until_ms;
	bool is_asking;
	bool is_away; /* the server, when it was asked last */
	struct back_off back_off;
	struct nameless_files_counters counters;
	size_t name_count;
	char name_bytes[NAMES_MAX][MALLOC_NAME_BYTES];
	const char *names[NAMES_MAX];
	enum memory_place_kind kinds[NAMES_MAX];
	uint32_t count;
	struct nameless_file items[FILES_MAX];
};

struct nameless_files *nameless_files_new(struct ship *ship, int64_t again_ms, struct error *err)
{
	struct nameless_files *files = calloc(1, sizeof *files);

	if (!files) {
		error_set(err, ERROR_MEMORY, "no memory for files without names");
		return NULL;
	}
	files->ship = ship;
	files->again_ms = again_ms;
	while (files->name_count < NAMES_MAX &&
	       malloc_name(files->name_count, files->name_bytes[files->name_count],
			   &files->kinds[files->name_count])) {
		files->names[files->name_count] = files->name_bytes[files->name_count];
		files->name_count++;
	}
	return files;
}

void nameless_files_free(struct nameless_files *files)
{
	for (uint32_t i = 0; files && i < files->count; i++)
		free(files->items[i].functions);
	free(files);
}

/* count: none. */
static uint32_t place_of(const struct nameless_files *files, const struct build_id *id)
{
	uint32_t i = 0;

	while (i < files->count && !build_id_equal(&files->items[i].id, id))
		i++;
	return i;
}

static struct nameless_file *file_find(struct nameless_files *files, const struct build_id *id)
{
	const uint32_t place = place_of(files, id);

	return place < files->count ? &files->items[place] : NULL;
}

bool nameless_files_is_new(const struct nameless_files *files, const struct build_id *id)
{
	const uint32_t place = place_of(files, id);

	return place < files->count && !files->items[place].has_heard && !files->is_away;
}

/* NULL: all are looked for. */
static struct nameless_file *file_add(struct nameless_files *files, int64_t now_ms)
{
	struct nameless_file *oldest = &files->items[0];

	if (files->count < FILES_MAX)
		return &files->items[files->count++];
	for (uint32_t i = 1; i < files->count; i++)
		if (files->items[i].wanted_ms < oldest->wanted_ms)
			oldest = &files->items[i];
	if (now_ms - oldest->wanted_ms < FORGOTTEN_MS)
		return NULL;
	free(oldest->functions);
	return oldest;
}

const struct memory_functions *nameless_files_find(struct nameless_files *files,
						   const struct build_id *id, int64_t now_ms)
{
	struct nameless_file *file = file_find(files, id);

	if (!file) {
		file = file_add(files, now_ms);
		if (file)
			*file = (struct nameless_file){.id = *id};
		else
			files->counters.refused++;
	}
	if (!file)
		return NULL;
	file->wanted_ms = now_ms;
	return file->functions;
}

/* Each kind by its name; what there is no room for is more than any file has. */
static void functions_take(const struct nameless_files *files, const struct symbol_list *list,
			   struct nameless_file *file)
{
	file->functions = calloc(1, sizeof *file->functions);
	for (uint32_t i = 0;
	     file->functions && i < list->count && file->functions->count < MEMORY_FUNCTIONS_MAX;
	     i++)
		file->functions->items[file->functions->count++] = (struct memory_function){
			.address = list->items[i].address,
			.kind = files->kinds[list->items[i].name],
		};
}

static void ask_again(struct nameless_files *files, struct nameless_file *file, int64_t now_ms)
{
	const unsigned doublings = file->tries < AGAIN_DOUBLINGS ? file->tries : AGAIN_DOUBLINGS;
	const int64_t again_ms = files->again_ms << doublings;

	file->tries++;
	file->next_ms = now_ms + (again_ms < AGAIN_MOST_MS ? again_ms : AGAIN_MOST_MS);
}

static void reply_take(struct nameless_files *files, const struct symbol_reply *reply,
		       int64_t now_ms)
{
	struct nameless_file *file = file_find(files, &reply->id);
	struct nameless_files_counters *counters = &files->counters;
	char hex[BUILD_ID_HEX];

	log_debug("functions asked for", "build_id=%s outcome=%d functions=%u",
		  build_id_format(&reply->id, hex), (int)reply->outcome, reply->list.count);
	counters->answered += reply->outcome == SYMBOLS_FOUND;
	counters->unknown += reply->outcome == SYMBOLS_UNKNOWN;
	counters->refused += reply->outcome == SYMBOLS_REFUSED;
	if (reply->outcome == SYMBOLS_LATER)
		files->quiet_until_ms = now_ms +
					back_off_next_ms(&files->back_off, reply->retry_after_s);
	else
		files->back_off.failures = 0;
	files->is_away = reply->outcome == SYMBOLS_LATER;
	if (file)
		file->has_heard = true;
	if (!file || reply->outcome == SYMBOLS_LATER)
		return;
	if (reply->outcome == SYMBOLS_FOUND && !file->functions)
		functions_take(files, &reply->list, file);
	else
		ask_again(files, file, now_ms);
}

void nameless_files_run(struct nameless_files *files, int64_t now_ms)
{
	struct symbol_reply reply;

	if (files->is_asking) {
		if (!ship_take_symbols(files->ship, &reply))
			return;
		files->is_asking = false;
		reply_take(files, &reply, now_ms);
	}
	for (uint32_t i = 0; i < files->count && now_ms >= files->quiet_until_ms; i++) {
		const struct nameless_file *file = &files->items[i];

		if (file->functions || now_ms < file->next_ms ||
		    now_ms - file->wanted_ms >= FORGOTTEN_MS)
			continue;
		files->is_asking = ship_find_symbols(files->ship, &file->id, files->names,
						     files->name_count);
		files->counters.asked += files->is_asking;
		return;
	}
}

void nameless_files_counters(const struct nameless_files *files,
			     struct nameless_files_counters *out)
{
	*out = files->counters;
}
