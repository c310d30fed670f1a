/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/file_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/symbolize/sources/file_tree_state.h"

enum {
	SCAN_EVERY_MS = 30 * 1000,
	SCAN_PAUSE_MS = 3 * 1000, /* at least, after a miss */
	SCAN_SHARE =
		20, /* reading the tree takes a twentieth of the time, if that is soon enough */
	STOP_WAIT_SECONDS = 2,
};

/* ---- the thread ---- */

static void wait_until(struct file_tree *tree, int64_t early_ms, int64_t late_ms)
{
	while (!atomic_load(&tree->stops)) {
		int64_t until = atomic_load(&tree->was_missed) ? early_ms : late_ms;
		struct timespec when = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

		if (monotonic_ms() >= until)
			return;
		pthread_cond_timedwait(&tree->wake, &tree->lock, &when);
	}
}

static void tree_free(struct file_tree *tree)
{
	file_opener_stop(tree->opener);
	file_index_free(tree->index);
	file_index_free(tree->next);
	pthread_cond_destroy(&tree->wake);
	pthread_mutex_destroy(&tree->lock);
	free(tree);
}

/* Who stops the tree and its thread agree on who cleans up. */
static bool end_thread(struct file_tree *tree)
{
	bool is_orphan;

	pthread_mutex_lock(&tree->lock);
	tree->has_ended = true;
	is_orphan = tree->is_orphan;
	pthread_mutex_unlock(&tree->lock);
	return is_orphan;
}

/* New files are to be seen within a minute; of a tree that takes longer half the time. */
static int64_t pause_after(int64_t pass_ms)
{
	int64_t pause = pass_ms * SCAN_SHARE, most = pass_ms;

	if (most < SCAN_EVERY_MS)
		most = SCAN_EVERY_MS;
	if (pause > most)
		return most;
	return pause < SCAN_PAUSE_MS ? SCAN_PAUSE_MS : pause;
}

static void *scan_thread(void *context)
{
	struct file_tree *tree = context;
	int64_t start, pause;

	while (!atomic_load(&tree->stops)) {
		atomic_store(&tree->was_missed, false);
		file_tree_scan(tree);
		pthread_mutex_lock(&tree->lock);
		log_debug("symbol directory read", "path=\"%s\" files=%llu took_ms=%lld",
			  tree->path, (unsigned long long)tree->now.files,
			  (long long)tree->now.pass_ms);
		pause = pause_after(tree->now.pass_ms);
		start = monotonic_ms();
		wait_until(tree, start + pause,
			   start + (pause > SCAN_EVERY_MS ? pause : SCAN_EVERY_MS));
		pthread_mutex_unlock(&tree->lock);
	}
	if (end_thread(tree))
		tree_free(tree);
	return NULL;
}

/* ---- who asks ---- */

typedef int64_t (*first_file)(const struct file_index *, const void *key);
typedef int64_t (*next_file)(const struct file_index *, int64_t file);

static int64_t first_by_id(const struct file_index *index, const void *id)
{
	return file_index_find_id(index, id);
}

static int64_t first_by_guid(const struct file_index *index, const void *first)
{
	return file_index_find_guid(index, first);
}

static int64_t first_by_name(const struct file_index *index, const void *name)
{
	return file_index_find_name(index, name);
}

static bool is_there(const struct file_place *places, size_t count, const struct file_view *view)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(places[i].name, view->name) && !strcmp(places[i].folder, view->folder))
			return true;
	return false;
}

/* How many components of the two paths are alike, from the end. */
static unsigned alike(const char *one, const char *other)
{
	size_t a = strlen(one), b = strlen(other);
	unsigned components = 0;

	while (a && b && one[a - 1] == other[b - 1]) {
		a--;
		b--;
		components += one[a] == '/';
	}
	return components + (!a && (!b || other[b - 1] == '/')) + (a && !b && one[a - 1] == '/');
}

/* What is asked for: by id or by name, and the path it should have. */
struct question {
	first_file first;
	next_file next;
	const void *key;
	const char *path;
};

static unsigned rank_of(const struct file_tree *tree, const struct file_view *view,
			const char *path)
{
	char full[2 * PATH_MAX];

	if (!path)
		return 0;
	snprintf(full, sizeof(full), "%.*s/%s/%s", 1024, tree->path, view->folder, view->name);
	return alike(full, path);
}

/* A place for one of that rank: a new one, or that of the least alike, or none. */
static struct file_place *place_for(struct file_place *places, size_t *count, size_t room,
				    unsigned rank)
{
	struct file_place *least = places;

	if (*count < room)
		return &places[(*count)++];
	for (size_t i = 1; i < *count; i++)
		if (places[i].rank < least->rank)
			least = &places[i];
	return rank > least->rank ? least : NULL;
}

static size_t copy_places(struct file_tree *tree, const struct file_index *index,
			  const struct question *question, struct file_place *places, size_t count,
			  size_t room)
{
	int64_t i = index ? question->first(index, question->key) : FILE_INDEX_NONE;
	struct file_place *place;
	struct file_view view;

	for (; i != FILE_INDEX_NONE && (question->path || count < room);
	     i = question->next(index, i)) {
		unsigned rank;

		file_index_view(index, i, &view);
		rank = rank_of(tree, &view, question->path);
		if (is_there(places, count, &view) ||
		    !(place = place_for(places, &count, room, rank)))
			continue;
		place->tree = tree;
		place->id = view.id;
		place->content = view.content;
		place->rank = rank;
		snprintf(place->folder, PATH_MAX, "%s", view.folder);
		snprintf(place->name, PATH_MAX, "%s", view.name);
	}
	return count;
}

static size_t find(struct file_tree *tree, const struct question *question,
		   struct file_place *places, size_t room)
{
	size_t count;

	if (!room)
		return 0;
	pthread_mutex_lock(&tree->lock);
	count = copy_places(tree, tree->next, question, places, 0, room);
	count = copy_places(tree, tree->index, question, places, count, room);
	pthread_mutex_unlock(&tree->lock);
	return count;
}

size_t file_tree_find_id(struct file_tree *tree, const struct build_id *id,
			 struct file_place *places, size_t room)
{
	return find(tree,
		    &(struct question){.first = first_by_id, .next = file_index_next_id, .key = id},
		    places, room);
}

size_t file_tree_find_guid(struct file_tree *tree, const uint8_t *first, struct file_place *place)
{
	return find(tree,
		    &(struct question){
			    .first = first_by_guid, .next = file_index_next_id, .key = first},
		    place, 1);
}

size_t file_tree_find_name(struct file_tree *tree, const char *base_name, const char *path,
			   struct file_place *places, size_t room)
{
	return find(tree,
		    &(struct question){.first = first_by_name,
				       .next = file_index_next_name,
				       .key = base_name,
				       .path = path},
		    places, room);
}

int file_tree_open(struct file_tree *tree, const char *path, const struct build_id *id)
{
	return file_opener_open(tree->opener, path, id, NULL);
}

const char *file_tree_path(const struct file_tree *tree)
{
	return tree->path;
}

void file_tree_missed(struct file_tree *tree)
{
	atomic_store(&tree->was_missed, true);
	pthread_mutex_lock(&tree->lock);
	pthread_cond_signal(&tree->wake);
	pthread_mutex_unlock(&tree->lock);
}

void file_tree_refused(struct file_tree *tree, const char *path, const char *reason)
{
	char text[sizeof(tree->now.last_refusal)];

	snprintf(text, sizeof(text), "%.120s/%.100s: %.70s", tree->path, path, reason);
	pthread_mutex_lock(&tree->lock);
	memcpy(tree->now.last_refusal, text, sizeof(text));
	memcpy(tree->last.last_refusal, text, sizeof(text));
	pthread_mutex_unlock(&tree->lock);
}

void file_tree_progress(struct file_tree *tree, struct symbol_directories_progress *progress)
{
	struct symbol_directories_progress mine;
	bool answers = file_opener_answers(tree->opener);

	pthread_mutex_lock(&tree->lock);
	mine = tree->last.passes ? tree->last : tree->now;
	mine.is_reading = tree->next != NULL;
	mine.bytes = (tree->index ? file_index_bytes(tree->index) : 0) +
		     (tree->next ? file_index_bytes(tree->next) : 0);
	pthread_mutex_unlock(&tree->lock);
	progress->first_pass_done &= mine.first_pass_done;
	progress->is_reading |= mine.is_reading;
	if (progress->passes > mine.passes)
		progress->passes = mine.passes;
	if (progress->pass_ms < mine.pass_ms)
		progress->pass_ms = mine.pass_ms;
	if (progress->read_at_ms > mine.read_at_ms)
		progress->read_at_ms = mine.read_at_ms;
	progress->folders += mine.folders;
	progress->files += mine.files;
	progress->elf_files += mine.elf_files;
	progress->links += mine.links;
	progress->packages += mine.packages;
	progress->unreadable += mine.unreadable;
	progress->damaged += mine.damaged;
	progress->left_out += mine.left_out;
	progress->bytes += mine.bytes;
	progress->not_answering += !answers;
	if (*mine.last_refusal)
		memcpy(progress->last_refusal, mine.last_refusal, sizeof(mine.last_refusal));
}

/* ---- life ---- */

static void found_late(void *context, const struct build_id *id)
{
	struct file_tree *tree = context;

	tree->found(tree->context, id);
}

static bool start_threads(struct file_tree *tree, struct error *err)
{
	int rc;

	tree->opener = file_opener_start(tree->path, found_late, tree, err);
	if (!tree->opener)
		return false;
	rc = pthread_create(&tree->thread, NULL, scan_thread, tree);
	if (!rc)
		return true;
	return error_set_system(err, rc, "start the thread for symbol directory '%s'", tree->path);
}

struct file_tree *file_tree_start(const struct file_tree_options *options, struct error *err)
{
	struct file_tree *tree = calloc(1, sizeof(*tree));
	pthread_condattr_t clock;

	if (!tree) {
		error_set(err, ERROR_MEMORY, "no memory for symbol directory '%s'", options->path);
		return NULL;
	}
	snprintf(tree->path, sizeof(tree->path), "%s", options->path);
	tree->found = options->found;
	tree->context = options->context;
	pthread_mutex_init(&tree->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&tree->wake, &clock);
	pthread_condattr_destroy(&clock);
	if (start_threads(tree, err))
		return tree;
	tree_free(tree);
	return NULL;
}

/* True: the thread is gone. */
static bool join_thread(struct file_tree *tree)
{
	pthread_t thread = tree->thread;
	struct timespec until;
	bool has_ended;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_WAIT_SECONDS;
	if (!pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
		return true;
	log_warn("a symbol directory does not answer", "path=\"%s\"", tree->path);
	pthread_mutex_lock(&tree->lock);
	has_ended = tree->has_ended;
	tree->is_orphan = !has_ended;
	pthread_mutex_unlock(&tree->lock);
	if (has_ended)
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	return has_ended;
}

void file_tree_stop(struct file_tree *tree)
{
	if (!tree)
		return;
	atomic_store(&tree->stops, true);
	file_tree_missed(tree);
	if (join_thread(tree))
		tree_free(tree);
}
