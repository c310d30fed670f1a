/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/module_files.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/symbolizer_state.h"

enum { FILES_LOOKED_AT = 8, TABLE_WAIT_MS = 50, TABLE_WAIT_TURNS = 200 };

/* ---- what there is ---- */

struct found_files {
	int fds[UPLOAD_KINDS + FILES_LOOKED_AT];
	struct symbol_place *places; /* of those from directories */
	size_t uploads, count;
};

static void find_files(struct symbolizer *symbolizer, const struct build_id *id,
		       struct found_files *files)
{
	*files = (struct found_files){0};
	files->places = calloc(FILES_LOOKED_AT, sizeof(*files->places));
	files->uploads = files->count = uploads_open_files(symbolizer->uploads, id, files->fds);
	if (files->places)
		files->count += symbol_directories_open(symbolizer->directories, id,
							files->fds + files->count, files->places,
							FILES_LOOKED_AT);
}

static void close_files(struct found_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		close(files->fds[i]);
	free(files->places);
}

/* How well the file does as one of that kind; 0: it is none. */
static unsigned fitness(int fd, const struct build_id *id, enum module_file_kind kind)
{
	struct elf_image *image = malloc(sizeof(*image));
	unsigned fits = 0;
	bool has_code;

	/* What is kept for an id besides: kallsyms texts, .dwp files, which have no id. */
	if (!image || !elf_image_read(fd, image, NULL) || !symbol_file_has_id(fd, image, id))
		goto out;
	has_code = file_has_code(fd);
	if (kind == MODULE_FILE_EXECUTABLE)
		fits = has_code;
	else if (image->has_debug_info)
		fits = 2;
	else if (image->has_symtab && !has_code)
		fits = 1;
out:
	free(image);
	return fits;
}

/* The best one of that kind, the first of equal ones; count: none. */
static size_t choose_file(const struct found_files *files, const struct build_id *id,
			  enum module_file_kind kind)
{
	size_t best = files->count;
	unsigned best_fits = 0;

	for (size_t i = 0; i < files->count; i++) {
		unsigned fits = fitness(files->fds[i], id, kind);

		if (fits > best_fits) {
			best_fits = fits;
			best = i;
		}
	}
	return best;
}

/* ---- one of them ---- */

/* A path's last part as it may stand in a header. */
static void name_from_path(const char *path, char *name, size_t room)
{
	const char *slash = strrchr(path, '/');
	size_t length;

	snprintf(name, room, "%s", slash ? slash + 1 : path);
	length = strlen(name);
	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~')
			name[i] = '_';
}

static bool take_file(struct found_files *files, size_t number, const struct build_id *id,
		      enum module_file_kind kind, struct module_file *out, struct error *err)
{
	char hex[BUILD_ID_HEX];
	struct stat stat;

	*out = (struct module_file){.fd = files->fds[number]};
	if (fstat(out->fd, &stat))
		return error_set(err, ERROR_SYSTEM, "the file cannot be read");
	out->bytes = (uint64_t)stat.st_size;
	if (number < files->uploads) {
		snprintf(out->name, sizeof(out->name), "%s%s", build_id_format(id, hex),
			 kind == MODULE_FILE_DEBUG ? ".debug" : "");
	} else {
		name_from_path(files->places[number - files->uploads].file, out->name,
			       sizeof(out->name));
	}
	files->fds[number] = files->fds[--files->count]; /* it is not closed with the others */
	return true;
}

static bool say_missing(const struct found_files *files, enum module_file_kind kind,
			struct error *err)
{
	if (files->count)
		return error_set(err, ERROR_NOT_FOUND,
				 kind == MODULE_FILE_DEBUG
					 ? "of that build-id there is an executable here, and no "
					   "debug file"
					 : "of that build-id there is a debug file here, and no "
					   "executable");
	return error_set(err, ERROR_NOT_FOUND,
			 "no file of that build-id was uploaded or is in a symbol directory");
}

bool symbolizer_open_file(struct symbolizer *symbolizer, const struct build_id *id,
			  enum module_file_kind kind, struct module_file *out, struct error *err)
{
	struct found_files files;
	size_t number;
	bool ok;

	find_files(symbolizer, id, &files);
	number = choose_file(&files, id, kind);
	ok = number < files.count ? take_file(&files, number, id, kind, out, err)
				  : say_missing(&files, kind, err);
	close_files(&files);
	return ok;
}

bool symbolizer_open_section(struct symbolizer *symbolizer, const struct build_id *id,
			     const char *name, struct module_file *out,
			     struct file_section *section, struct error *err)
{
	struct found_files files;
	bool ok = false;

	find_files(symbolizer, id, &files);
	for (int kind = MODULE_FILE_DEBUG; !ok && kind <= MODULE_FILE_EXECUTABLE; kind++) {
		size_t number = choose_file(&files, id, kind);

		if (number < files.count && file_section_find(files.fds[number], name, section))
			ok = take_file(&files, number, id, kind, out, err);
	}
	if (!ok && files.count)
		error_set(err, ERROR_NOT_FOUND,
			  "no file of that build-id here has a section %.100s", name);
	else if (!ok)
		say_missing(&files, MODULE_FILE_DEBUG, err);
	close_files(&files);
	return ok;
}

/* ---- what they were made of ---- */

struct named_file {
	const char *path; /* tidy */
	const char *name; /* its last part */
	size_t name_length;
};

static bool is_named(void *context, const char *file)
{
	const struct named_file *wanted = context;
	size_t length = strlen(file);
	char tidy[SOURCE_PATH_MAX];

	return length >= wanted->name_length &&
	       !memcmp(file + length - wanted->name_length, wanted->name, wanted->name_length) &&
	       source_path_tidy(file, tidy) && !strcmp(tidy, wanted->path);
}

static bool has_files(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct found_files files;

	find_files(symbolizer, id, &files);
	close_files(&files);
	return files.count > 0;
}

/* A debugger asks once, and remembers for long that there was nothing. */
static struct symbol_table *wait_for_table(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct symbol_table *table = symbolizer_take_table(symbolizer, id, NULL, 0);

	if (table || !has_files(symbolizer, id))
		return table;
	symbolizer_want(symbolizer, id, NULL, true, 0);
	for (unsigned i = 0; !table && i < TABLE_WAIT_TURNS; i++) {
		if (atomic_load(&symbolizer->stops))
			break;
		poll(NULL, 0, TABLE_WAIT_MS);
		table = symbolizer_take_table(symbolizer, id, NULL, 0);
	}
	return table;
}

static bool names_file(struct symbolizer *symbolizer, const struct build_id *id, const char *path,
		       struct error *err)
{
	struct symbol_table *table = wait_for_table(symbolizer, id);
	struct named_file wanted = {.path = path, .name = strrchr(path, '/') + 1};
	bool ok;

	if (!table)
		return error_set(err, ERROR_NOT_FOUND,
				 "no debug information of that build-id has been read here");
	wanted.name_length = strlen(wanted.name);
	ok = symbol_table_has_file(table, is_named, &wanted);
	symbol_table_release(table);
	return ok || error_set(err, ERROR_NOT_FOUND,
			       "the debug information of that build-id names no such source file");
}

bool symbolizer_open_source(struct symbolizer *symbolizer, const struct build_id *id,
			    const char *path, struct module_file *out, struct error *err)
{
	char whole[SOURCE_PATH_MAX], tidy[SOURCE_PATH_MAX];
	struct stat stat;

	*out = (struct module_file){.fd = -1};
	if (!source_files_are_served(symbolizer->source_files, err))
		return false;
	if (snprintf(whole, sizeof(whole), "/%s", path) >= (int)sizeof(whole) ||
	    !source_path_tidy(whole, tidy) || !tidy[1])
		return error_set(err, ERROR_NOT_FOUND, "the path is not one of a source file");
	if (!names_file(symbolizer, id, tidy, err))
		return false;
	out->fd = source_files_open(symbolizer->source_files, tidy, err);
	if (out->fd < 0)
		return false;
	if (fstat(out->fd, &stat)) {
		close(out->fd);
		return error_set(err, ERROR_SYSTEM, "the file cannot be read");
	}
	out->bytes = (uint64_t)stat.st_size;
	name_from_path(tidy, out->name, sizeof(out->name));
	return true;
}

/* ---- what is in them ---- */

static bool is_of(int fd, const struct build_id *id)
{
	struct elf_image *image = malloc(sizeof(*image));
	bool is = image && elf_image_read(fd, image, NULL) && symbol_file_has_id(fd, image, id);

	free(image);
	return is;
}

bool symbolizer_find_functions(struct symbolizer *symbolizer, const struct build_id *id,
			       const char *const *names, size_t name_count,
			       struct file_search_limits *limits,
			       struct file_function found[FILE_FUNCTIONS_MAX], size_t *count,
			       struct error *err)
{
	struct file_function in_one[FILE_FUNCTIONS_MAX];
	struct found_files files;
	bool has_any = false, ok = true;

	*count = 0;
	find_files(symbolizer, id, &files);
	for (size_t i = 0; ok && i < files.count; i++) {
		size_t now;

		if (!is_of(files.fds[i], id))
			continue;
		has_any = true;
		ok = limits->goes_on(limits->context, err) &&
		     file_functions_find(files.fds[i], names, name_count, limits, in_one, &now,
					 err);
		if (ok && now > *count) {
			memcpy(found, in_one, now * sizeof(*found));
			*count = now;
		}
	}
	close_files(&files);
	if (!ok)
		return false;
	return has_any ||
	       error_set(err, ERROR_NOT_FOUND,
			 "no file of that build-id was uploaded or is in a symbol directory");
}

/* ---- for who could send one ---- */

static bool is_uploaded(struct symbolizer *symbolizer, const struct build_id *id,
			enum module_file_kind kind)
{
	struct found_files files = {0};
	bool is;

	files.uploads = files.count = uploads_open_files(symbolizer->uploads, id, files.fds);
	is = choose_file(&files, id, kind) < files.count;
	close_files(&files);
	return is;
}

bool symbolizer_lacks_file(struct symbolizer *symbolizer, const struct build_id *id,
			   enum module_file_kind kind)
{
	struct module *module;
	bool has_lines;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	has_lines = module && module->quality == QUALITY_DWARF;
	pthread_mutex_unlock(&symbolizer->lock);
	/* Not opened: with debug information in it, it has been converted already, or is sent for
	 * nothing. */
	if (kind == MODULE_FILE_DEBUG ? has_lines
				      : symbol_directories_has(symbolizer->directories, id))
		return false;
	return !is_uploaded(symbolizer, id, kind);
}
