/* SPDX-License-Identifier: Apache-2.0 */
/* Finds in all trees, opens the best first. */
#include "symbol-server/symbolize/sources/symbol_directories.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_hash.h"
#include "common/gzip.h"
#include "symbol-server/symbolize/sources/file_index.h"
#include "symbol-server/symbolize/sources/file_opener.h"
#include "symbol-server/symbolize/sources/file_tree.h"

enum {
	PLACES_MAX = 64, /* of one question that are looked at */
	CHECKSUM_BLOCK = 1 << 20,
};

struct symbol_directories {
	struct file_tree **trees;
	size_t count;

	pthread_mutex_t lock;                      /* of what follows */
	struct symbol_directories_progress counts; /* since the start */
};

/* What one question has found. */
struct finding {
	struct symbol_directories *directories;
	struct file_place *places;
	size_t place_count;
	const struct build_id *id; /* what files must have; NULL: anything */
	int *fds;
	struct symbol_place *opened; /* may be NULL */
	size_t count, room;
	unsigned content; /* of all that are open */
};

bool symbol_file_has_id(int fd, const struct elf_image *image, const struct build_id *id)
{
	struct build_id hash;

	if (build_id_equal(&image->gnu, id))
		return true;
	return id->length == FILE_HASH_BYTES && file_hash(fd, &hash, NULL) &&
	       build_id_equal(&hash, id);
}

static void count(struct symbol_directories *directories, uint64_t *number)
{
	pthread_mutex_lock(&directories->lock);
	++*number;
	pthread_mutex_unlock(&directories->lock);
}

/* ---- opening ---- */

static bool is_open_already(const struct finding *finding, int fd)
{
	struct stat one, other;

	for (size_t i = 0; i < finding->count; i++)
		if (!fstat(fd, &one) && !fstat(finding->fds[i], &other) &&
		    one.st_dev == other.st_dev && one.st_ino == other.st_ino)
			return true;
	return false;
}

/* False: too long for a path. */
static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
	size_t length = strlen(folder), rest = strlen(name);

	if (length + 1 + rest >= PATH_MAX)
		return false;
	memcpy(path, folder, length);
	if (length && path[length - 1] != '/')
		path[length++] = '/';
	memcpy(path + length, name, rest + 1);
	return true;
}

static void tell_place(struct symbol_place *opened, const struct file_place *place)
{
	const char *tree = file_tree_path(place->tree);
	char path[PATH_MAX];

	if (join(path, place->folder, place->name))
		join(opened->file, tree, path);
}

static bool add_opened(struct finding *finding, const struct file_place *place, int fd)
{
	if (fd < 0)
		return false;
	if (finding->count == finding->room || is_open_already(finding, fd)) {
		close(fd);
		return false;
	}
	if (finding->opened)
		tell_place(&finding->opened[finding->count], place);
	finding->fds[finding->count++] = fd;
	finding->content |= place->content;
	return true;
}

static int open_place(struct finding *finding, const struct file_place *place)
{
	char path[PATH_MAX];

	if (!join(path, place->folder, place->name))
		return -1;
	return file_tree_open(place->tree, path, finding->id);
}

static int better_first(const void *one, const void *other)
{
	static const unsigned order[] = {FILE_HAS_DEBUG_INFO, FILE_HAS_SYMTAB, FILE_HAS_CODE};
	const struct file_place *a = one, *b = other;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if ((a->content ^ b->content) & order[i])
			return a->content & order[i] ? -1 : 1;
	return 0;
}

static bool start_finding(struct finding *finding)
{
	finding->places = calloc(PLACES_MAX, sizeof(*finding->places));
	return finding->places != NULL;
}

/* Paths a .build-id tree would have it at; works before the first scan has ended. */
static void open_from_tree(struct finding *finding, struct file_tree *tree)
{
	static const char *const suffixes[] = {".debug", ""};
	char hex[BUILD_ID_HEX];
	struct file_place *place = &finding->places[0];

	build_id_format(finding->id, hex);
	for (size_t i = 0; i < 2 && finding->count < finding->room; i++) {
		*place = (struct file_place){.tree = tree};
		snprintf(place->folder, PATH_MAX, ".build-id/%.2s", hex);
		snprintf(place->name, PATH_MAX, "%s%s", hex + 2, suffixes[i]);
		add_opened(finding, place, open_place(finding, place));
	}
}

size_t symbol_directories_open(struct symbol_directories *directories, const struct build_id *id,
			       int *fds, struct symbol_place *places, size_t room)
{
	struct finding finding = {
		.directories = directories, .id = id, .fds = fds, .opened = places, .room = room};

	if (!room || !start_finding(&finding))
		return 0;
	for (size_t i = 0; i < directories->count; i++)
		finding.place_count += file_tree_find_id(directories->trees[i], id,
							 finding.places + finding.place_count,
							 PLACES_MAX - finding.place_count);
	qsort(finding.places, finding.place_count, sizeof(*finding.places), better_first);
	for (size_t i = 0; i < finding.place_count && finding.count < room; i++)
		add_opened(&finding, &finding.places[i], open_place(&finding, &finding.places[i]));
	for (size_t i = 0; i < directories->count && finding.count < room; i++)
		open_from_tree(&finding, directories->trees[i]);
	free(finding.places);
	return finding.count;
}

bool symbol_directories_has(struct symbol_directories *directories, const struct build_id *id)
{
	struct file_place *place = malloc(sizeof(*place));
	bool has = false;

	for (size_t i = 0; place && i < directories->count && !has; i++)
		has = file_tree_find_id(directories->trees[i], id, place, 1) > 0;
	free(place);
	return has;
}

bool symbol_directories_find_guid(struct symbol_directories *directories, const uint8_t first[16],
				  struct build_id *id)
{
	struct file_place *place = malloc(sizeof(*place));
	bool has = false;

	for (size_t i = 0; place && i < directories->count && !has; i++)
		has = file_tree_find_guid(directories->trees[i], first, place) > 0;
	if (has)
		*id = place->id;
	free(place);
	return has;
}

/* ---- by name ---- */

/* Adds places of that base name in all trees which hold what is asked for. */
static void find_name(struct finding *finding, const char *base_name, const char *path,
		      unsigned content)
{
	struct symbol_directories *directories = finding->directories;

	for (size_t i = 0; i < directories->count; i++) {
		struct file_place *places = finding->places + finding->place_count;
		size_t found = file_tree_find_name(directories->trees[i], base_name, path, places,
						   PLACES_MAX - finding->place_count);
		size_t kept = 0;

		for (size_t j = 0; j < found; j++)
			if ((places[j].content & content) == content)
				memmove(&places[kept++], &places[j], sizeof(*places));
		finding->place_count += kept;
	}
}

static void open_all(struct finding *finding)
{
	for (size_t i = 0; i < finding->place_count && finding->count < finding->room; i++)
		add_opened(finding, &finding->places[i], open_place(finding, &finding->places[i]));
}

/* The module's own files, for their names and folders. */
static struct file_place *own_places(struct symbol_directories *directories,
				     const struct build_id *module, size_t *count)
{
	struct file_place *places = calloc(PLACES_MAX, sizeof(*places));

	*count = 0;
	for (size_t i = 0; places && i < directories->count; i++)
		*count += file_tree_find_id(directories->trees[i], module, places + *count,
					    PLACES_MAX - *count);
	return places;
}

size_t symbol_directories_open_dwp(struct symbol_directories *directories,
				   const struct build_id *module, int *fds, size_t room)
{
	struct finding finding = {.directories = directories, .fds = fds, .room = room};
	size_t count;
	struct file_place *own = own_places(directories, module, &count);

	for (size_t i = 0; own && i < count && start_finding(&finding); i++) {
		const char *base = file_base_name(own[i].name);
		size_t length = strlen(base);
		char name[NAME_MAX + 8];

		snprintf(name, sizeof(name), "%.*s.dwp", NAME_MAX, base);
		finding.place_count = 0;
		find_name(&finding, name, NULL, FILE_IS_SPLIT);
		if (length > 6 && length <= NAME_MAX && !strcmp(base + length - 6, ".debug")) {
			snprintf(name, sizeof(name), "%.*s.dwp", (int)length - 6, base);
			find_name(&finding, name, NULL, FILE_IS_SPLIT);
		}
		open_all(&finding);
		free(finding.places);
	}
	free(own);
	return finding.count;
}

static int alike_first(const void *one, const void *other)
{
	const struct file_place *a = one, *b = other;

	return a->rank > b->rank ? -1 : a->rank < b->rank;
}

/* Beside the module's own files is where it is looked for first. */
static void prefer_own_folders(struct finding *finding, const struct build_id *module)
{
	size_t count;
	struct file_place *own = own_places(finding->directories, module, &count);

	for (size_t i = 0; own && i < count; i++)
		for (size_t j = 0; j < finding->place_count; j++)
			if (own[i].tree == finding->places[j].tree &&
			    !strcmp(own[i].folder, finding->places[j].folder))
				finding->places[j].rank = UINT32_MAX;
	free(own);
}

size_t symbol_directories_open_dwo(struct symbol_directories *directories,
				   const struct build_id *module, const char *path, int *fds,
				   size_t room)
{
	struct finding finding = {.directories = directories, .fds = fds, .room = room};

	if (!room || !start_finding(&finding))
		return 0;
	find_name(&finding, file_base_name(path), path, FILE_IS_SPLIT);
	if (finding.place_count > 1) {
		prefer_own_folders(&finding, module);
		qsort(finding.places, finding.place_count, sizeof(*finding.places), alike_first);
	}
	open_all(&finding);
	free(finding.places);
	return finding.count;
}

static bool checksum_of(int fd, uint32_t *crc)
{
	uint8_t *block = malloc(CHECKSUM_BLOCK);
	ssize_t got = -1;
	off_t at = 0;

	*crc = 0;
	while (block && (got = pread(fd, block, CHECKSUM_BLOCK, at)) > 0) {
		*crc = gzip_crc(*crc, block, (size_t)got);
		at += got;
	}
	free(block);
	return !got;
}

static void open_linked(struct finding *finding, const struct file_place *place, uint32_t crc)
{
	struct symbol_directories *directories = finding->directories;
	int fd = open_place(finding, place);
	uint32_t there;

	if (fd >= 0 && checksum_of(fd, &there) && there == crc) {
		add_opened(finding, place, fd);
		return;
	}
	if (fd < 0)
		return;
	close(fd);
	count(directories, &directories->counts.wrong_checksums);
	file_tree_refused(place->tree, place->name,
			  "another checksum than .gnu_debuglink says: not the file meant");
}

size_t symbol_directories_open_link(struct symbol_directories *directories,
				    const struct build_id *module, const char *name, uint32_t crc,
				    int *fds, size_t room)
{
	struct finding finding = {.directories = directories, .fds = fds, .room = room};

	(void)module; /* files with its build-id are found by that, and any other id is another's */
	if (!room || !start_finding(&finding))
		return 0;
	find_name(&finding, name, NULL, 0);
	for (size_t i = 0; i < finding.place_count && finding.count < room; i++)
		if (!(finding.places[i].content & FILE_IS_SPLIT))
			open_linked(&finding, &finding.places[i], crc);
	free(finding.places);
	return finding.count;
}

/* ---- all of them ---- */

void symbol_directories_missed(struct symbol_directories *directories)
{
	for (size_t i = 0; i < directories->count; i++)
		file_tree_missed(directories->trees[i]);
}

bool symbol_directories_are_read(struct symbol_directories *directories)
{
	struct symbol_directories_progress progress;

	symbol_directories_progress(directories, &progress);
	return progress.first_pass_done;
}

void symbol_directories_progress(struct symbol_directories *directories,
				 struct symbol_directories_progress *progress)
{
	pthread_mutex_lock(&directories->lock);
	*progress = directories->counts;
	pthread_mutex_unlock(&directories->lock);
	progress->first_pass_done = true;
	progress->passes = progress->read_at_ms = directories->count ? UINT64_MAX : 0;
	for (size_t i = 0; i < directories->count; i++)
		file_tree_progress(directories->trees[i], progress);
}

static bool start_tree(struct symbol_directories *directories,
		       const struct symbol_directories_options *options, size_t number,
		       struct error *err)
{
	const char *path = options->paths[number];

	if (strlen(path) >= PATH_MAX)
		return error_set(err, ERROR_OPTION, "the symbol directory's path is too long");
	directories->trees[number] = file_tree_start(
		&(struct file_tree_options){
			.path = path,
			.found = options->found,
			.context = options->context,
		},
		err);
	directories->count += directories->trees[number] != NULL;
	return directories->trees[number] != NULL;
}

struct symbol_directories *
symbol_directories_start(const struct symbol_directories_options *options, struct error *err)
{
	struct symbol_directories *directories = calloc(1, sizeof(*directories));
	bool ok = true;

	if (!directories) {
		error_set(err, ERROR_MEMORY, "no memory for symbol directories");
		return NULL;
	}
	pthread_mutex_init(&directories->lock, NULL);
	directories->trees = calloc(options->count + 1, sizeof(struct file_tree *));
	if (!directories->trees)
		ok = error_set(err, ERROR_MEMORY, "no memory for symbol directories");
	for (size_t i = 0; ok && i < options->count; i++)
		ok = start_tree(directories, options, i, err);
	if (ok)
		return directories;
	symbol_directories_stop(directories);
	return NULL;
}

void symbol_directories_stop(struct symbol_directories *directories)
{
	if (!directories)
		return;
	for (size_t i = 0; i < directories->count; i++)
		file_tree_stop(directories->trees[i]);
	free(directories->trees);
	pthread_mutex_destroy(&directories->lock);
	free(directories);
}
