/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbolizer_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/elf_image.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/convert/debug_needs.h"
#include "symbol-server/symbolize/worker.h"

enum { CANDIDATES_SHOWN = FILES_MAX + 2 };

static uint32_t ms_since(int64_t begin_ms)
{
	int64_t ms = unix_time_ms() - begin_ms;

	return ms > 0 ? (uint32_t)ms : 0;
}

/* ---- candidates ---- */

static void describe(struct candidate *file, const char *place)
{
	const struct {
		bool has;
		const char *text;
	} parts[] = {
		{file->has_debug_info, "debug information"},
		{file->is_split, "split debug information"},
		{file->has_symtab, ".symtab"},
		{file->has_pclntab, ".gopclntab"},
		{file->has_dynsym && !file->has_symtab, ".dynsym"},
		{!file->is_elf, "kallsyms"},
	};
	size_t used = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].has)
			used += (size_t)snprintf(file->detail + used, sizeof(file->detail) - used,
						 "%s%s", used ? ", " : "", parts[i].text);
	if (!used)
		used = (size_t)snprintf(file->detail, sizeof(file->detail), "stripped");
	if (*place)
		snprintf(file->detail + used, sizeof(file->detail) - used, "; %s", place);
}

static void read_facts(struct candidate *file)
{
	struct elf_image *image = malloc(sizeof(*image));

	if (image && elf_image_read(file->fd, image, NULL)) {
		file->is_elf = true;
		file->has_debug_info = image->has_debug_info;
		file->has_symtab = image->has_symtab;
		/* Some linkers put it among other data: the note of Go's linker tells. */
		file->has_pclntab = image->has_go_pclntab || *image->go_id;
		file->has_dynsym = image->has_dynsym;
		file->is_split = image->has_split_info;
		file->has_code = image->has_code;
		MODULE_TEXT(file->link, image->debuglink);
		file->link_crc = image->debuglink_crc;
	}
	free(image);
}

/* What says that a file is another one: not its inode where it is downloaded anew. */
static uint64_t fingerprint_of(const struct candidate *file, const struct stat *stat,
			       const char *place, bool is_lasting)
{
	uint64_t hash = hash_bytes((const uint8_t *)place, strlen(place), (uint64_t)stat->st_size);

	hash = hash_bytes((const uint8_t *)file->source, strlen(file->source), hash);
	if (!is_lasting)
		return hash;
	hash = hash_word(hash, stat->st_ino);
	hash = hash_word(hash, (uint64_t)stat->st_mtim.tv_sec);
	return hash_word(hash, (uint64_t)stat->st_mtim.tv_nsec);
}

static void add_candidate(struct module_files *files, int fd, const char *source, const char *place,
			  bool is_lasting)
{
	struct candidate *file;
	struct stat stat;

	if (files->count == FILES_MAX || fstat(fd, &stat)) {
		close(fd);
		return;
	}
	file = &files->files[files->count++];
	*file = (struct candidate){.fd = fd,
				   .source = source,
				   .bytes = (uint64_t)stat.st_size,
				   .answer = CANDIDATE_found};
	read_facts(file);
	describe(file, place);
	files->fingerprint = hash_word(files->fingerprint,
				       fingerprint_of(file, &stat, place, is_lasting));
}

static void find_in_directories(struct symbolizer *symbolizer, const struct build_id *id,
				struct module_files *files)
{
	int fds[FILES_MAX];
	struct symbol_place *places = calloc(FILES_MAX, sizeof(*places));
	size_t count = places ? symbol_directories_open(symbolizer->directories, id, fds, places,
							FILES_MAX - files->count)
			      : 0;

	for (size_t i = 0; i < count; i++)
		add_candidate(files, fds[i], "directory", places[i].file, true);
	free(places);
}

/* By the name and checksum that a file without debug information says, as before build-ids. */
static void follow_links(struct symbolizer *symbolizer, const struct build_id *id,
			 struct module_files *files)
{
	size_t count = files->count;

	for (size_t i = 0; i < count && !files_debug(files, 0); i++) {
		const struct candidate *file = &files->files[i];
		int fds[FILES_MAX];
		size_t found = *file->link
				       ? symbol_directories_open_link(symbolizer->directories, id,
								      file->link, file->link_crc,
								      fds, FILES_MAX - files->count)
				       : 0;

		for (size_t j = 0; j < found; j++)
			add_candidate(files, fds[j], "directory", "by .gnu_debuglink", true);
	}
}

/* What was damaged is gone: whoever has it is asked for it again. */
static void note_lost_uploads(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	if (module && module->is_uploaded && !uploads_have(symbolizer->uploads, id)) {
		module->is_uploaded = false;
		module->is_unsaved = true;
	}
	pthread_mutex_unlock(&symbolizer->lock);
}

void files_find(struct symbolizer *symbolizer, const struct build_id *id, int downloaded,
		const char *url, struct module_files *files)
{
	int64_t begin = unix_time_ms();
	int fds[UPLOAD_KINDS];
	size_t count;

	*files = (struct module_files){.fingerprint = 1};
	count = uploads_open_files(symbolizer->uploads, id, fds);
	for (size_t i = 0; i < count; i++)
		add_candidate(files, fds[i], "upload", "", true);
	if (!count)
		note_lost_uploads(symbolizer, id);
	files->upload_ms = ms_since(begin);
	begin = unix_time_ms();
	find_in_directories(symbolizer, id, files);
	if (downloaded >= 0)
		add_candidate(files, downloaded, url, "", false);
	follow_links(symbolizer, id, files);
	files->directory_ms = ms_since(begin);
}

void files_close(struct module_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		close(files->files[i].fd);
	files->count = 0;
}

/* ---- by quality, and among equals in the order of sources ---- */

struct candidate *files_debug(struct module_files *files, size_t number)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].has_debug_info && !number--)
			return &files->files[i];
	return NULL;
}

static unsigned worth_of_names(const struct candidate *file)
{
	if (!file->is_elf || file->is_split)
		return 0;
	return file->has_pclntab ? 3 : file->has_symtab ? 2 : file->has_dynsym ? 1 : 0;
}

struct candidate *files_names(struct module_files *files, size_t number)
{
	for (unsigned worth = 3; worth > 0; worth--)
		for (size_t i = 0; i < files->count; i++)
			if (worth_of_names(&files->files[i]) == worth && !number--)
				return &files->files[i];
	return NULL;
}

struct candidate *files_code(struct module_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].has_code)
			return &files->files[i];
	return NULL;
}

struct candidate *files_text(struct module_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (!files->files[i].is_elf)
			return &files->files[i];
	return NULL;
}

/* ---- what one needs besides itself ---- */

static size_t extras_room(const struct extra_files *extras)
{
	struct rlimit limit;
	size_t most = EXTRAS_MAX;

	/* Connections need descriptors too. */
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 4 < most)
		most = (size_t)limit.rlim_cur / 4;
	return most > extras->count ? most - extras->count : 0;
}

static void add_extra(struct extra_files *extras, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) || !stat.st_size || !extras_room(extras)) {
		close(fd);
		return;
	}
	extras->fingerprint = hash_word(extras->fingerprint, (uint64_t)stat.st_size);
	extras->fds[extras->count++] = fd;
}

static void find_alt(struct symbolizer *symbolizer, const struct build_id *alt, int alt_downloaded,
		     struct extra_files *extras)
{
	int fds[UPLOAD_KINDS];
	size_t count = uploads_open_files(symbolizer->uploads, alt, fds);
	int copy;

	if (!count)
		count = symbol_directories_open(symbolizer->directories, alt, fds, NULL, 1);
	if (!count && alt_downloaded >= 0 && (copy = dup(alt_downloaded)) >= 0)
		fds[count++] = copy;
	for (size_t i = 0; i < count; i++)
		add_extra(extras, fds[i]);
	if (count)
		extras->fingerprint = hash_word(extras->fingerprint, build_id_hash(alt));
	else
		extras->alt = *alt;
}

/* A .dwp has all of them; else one by one. */
static void find_splits(struct symbolizer *symbolizer, const struct build_id *id,
			const struct module_files *files, const struct debug_needs *needs,
			struct extra_files *extras)
{
	size_t count, before = extras->count;
	int fds[FILES_MAX];

	for (size_t i = 0; i < files->count; i++) {
		int copy = files->files[i].is_split ? dup(files->files[i].fd) : -1;

		if (copy >= 0)
			add_extra(extras, copy);
	}
	count = symbol_directories_open_dwp(symbolizer->directories, id, fds, 2);
	for (size_t i = 0; i < count; i++)
		add_extra(extras, fds[i]);
	if (extras->count > before)
		return;
	for (size_t i = 0; i < needs->path_count && extras_room(extras); i++)
		if (symbol_directories_open_dwo(symbolizer->directories, id, needs->paths[i], fds,
						1))
			add_extra(extras, fds[0]);
	if (extras->count > before && extras->count - before < needs->path_count)
		log_info("some .dwo files are not here", "have=%zu of=%zu%s",
			 extras->count - before, needs->path_count, needs->has_more ? "+" : "");
}

bool files_find_extras(struct symbolizer *symbolizer, const struct build_id *id,
		       struct module_files *files, const struct candidate *candidate,
		       int alt_downloaded, struct extra_files *extras, struct error *err)
{
	struct debug_needs *needs = malloc(sizeof(*needs));
	struct buffer text;
	bool ok;

	extras->count = 0;
	extras->fingerprint = 0;
	extras->alt = (struct build_id){0};
	buffer_init(&text, DEBUG_NEEDS_TEXT_MAX + 1);
	ok = needs && worker_needs(candidate->fd, symbolizer->stop_fd, &text, err);
	buffer_append_char(&text, '\0');
	if (ok && (text.failed || !debug_needs_parse((char *)text.bytes, needs)))
		ok = error_set(err, ERROR_FORMAT, "the list of what it needs is damaged");
	if (ok && needs->alt.length)
		find_alt(symbolizer, &needs->alt, alt_downloaded, extras);
	if (ok && needs->path_count)
		find_splits(symbolizer, id, files, needs, extras);
	buffer_release(&text);
	free(needs);
	return ok;
}

void files_close_extras(struct extra_files *extras)
{
	for (size_t i = 0; i < extras->count; i++)
		close(extras->fds[i]);
	extras->count = 0;
}

/* ---- told ---- */

static bool has_source(const struct module_files *files, const char *source)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->files[i].source, source))
			return true;
	return false;
}

static void report_absent(const struct module_files *files, const char *source, uint32_t ms,
			  struct candidate_row *rows, size_t *count)
{
	if (!has_source(files, source))
		rows[(*count)++] = (struct candidate_row){.source = source,
							  .answer = CANDIDATE_not_found,
							  .detail = "",
							  .ms = ms,
							  .at_ms = unix_time_ms()};
}

void files_report(struct symbolizer *symbolizer, const struct build_id *id,
		  const struct module_files *files)
{
	struct candidate_row rows[CANDIDATES_SHOWN];
	int64_t now = unix_time_ms();
	struct error err = {0};
	size_t count = 0;

	report_absent(files, "upload", files->upload_ms, rows, &count);
	if (symbolizer->has_directories)
		report_absent(files, "directory", files->directory_ms, rows, &count);
	for (size_t i = 0; i < files->count; i++) {
		const struct candidate *file = &files->files[i];
		bool is_upload = !strcmp(file->source, "upload");

		if (!is_upload && strcmp(file->source, "directory") != 0) {
			symbols_judge_candidate(symbolizer->store, id, CANDIDATE_REMOTE,
						file->source, file->answer, file->detail, &err);
			continue;
		}
		rows[count++] = (struct candidate_row){.source = file->source,
						       .answer = file->answer,
						       .detail = file->detail,
						       .bytes = file->bytes,
						       .ms = is_upload ? files->upload_ms
								       : files->directory_ms,
						       .at_ms = now};
	}
	if (symbolizer_keeps(symbolizer, id) &&
	    !symbols_put_candidates(symbolizer->store, id, CANDIDATE_HERE, rows, count, &err))
		log_warn("answers of sources not stored", "reason=\"%s\"", err.message);
}
