/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/runtime_files.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "common/hash_table.h"
#include "node-agent/processes/file_answers.h"

enum {
	NAMES_MAX = 16384, /* two of most files */
	/* A file that nobody could read so often is taken for none: its processes are looked at
	 * when they are sampled. */
	UNKNOWN_MAX = 4,
};

/* What a mapping's event says of its file; a build-id may be in several. */
struct file_name {
	uint64_t hash;
	uint8_t is_known, is_runtime;
	uint8_t unknown; /* times that it was met */
};

struct runtime_files {
	struct process_table *table;
	struct code_pages *pages;
	struct file_answers
		*answers; /* struct runtime_symbols of those that are some, or greenlet's */
	struct hash_table index;
	struct file_name *names;
	uint32_t count;
	uint32_t answered, found;
};

static bool ask(void *context, const struct executable *executable)
{
	return code_pages_ask_runtime(((struct runtime_files *)context)->pages, executable);
}

static void take(void *context, uint32_t executable, const struct runtime_symbols *symbols)
{
	struct runtime_files *files = context;
	const bool says = symbols && (symbols->language || symbols->thread_bytes || symbols->flags);

	files->answered++;
	files->found += symbols && symbols->language;
	file_answers_put(files->answers, executable, says ? symbols : NULL, sizeof *symbols);
}

struct runtime_files *runtime_files_new(struct process_table *table, struct code_pages *pages,
					struct error *err)
{
	struct runtime_files *files = calloc(1, sizeof *files);

	if (!files) {
		error_set(err, ERROR_MEMORY, "no memory for interpreters' files");
		return NULL;
	}
	files->table = table;
	files->pages = pages;
	hash_table_init(&files->index, NAMES_MAX);
	files->answers = file_answers_new(table, ask, files, err);
	if (!files->answers) {
		runtime_files_free(files);
		return NULL;
	}
	code_pages_set_runtime(pages, take, files);
	return files;
}

void runtime_files_free(struct runtime_files *files)
{
	if (!files)
		return;
	code_pages_set_runtime(files->pages, NULL, NULL);
	file_answers_free(files->answers);
	hash_table_release(&files->index);
	free(files->names);
	free(files);
}

uint32_t runtime_files_answers(const struct runtime_files *files)
{
	return files->answered;
}

uint32_t runtime_files_known(const struct runtime_files *files)
{
	return files->found;
}

/* --- files as mappings name them --- */

static uint64_t id_hash(const struct build_id *id)
{
	uint64_t hash = hash_word(0, id->length);

	for (uint32_t i = 0; i < id->length; i++)
		hash = hash_word(hash, id->bytes[i]);
	return hash;
}

static uint64_t inode_hash(uint32_t major, uint32_t minor, uint64_t inode)
{
	return hash_word(hash_word(hash_word(1, major), minor), inode);
}

/* NULL: no memory. */
static struct file_name *name_of(struct runtime_files *files, uint64_t hash)
{
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&files->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&files->index, hash, &probe))
		if (files->names[i].hash == hash)
			return &files->names[i];
	if (!files->names)
		files->names = calloc(NAMES_MAX, sizeof *files->names);
	if (!files->names)
		return NULL;
	if (files->count == NAMES_MAX) { /* begun anew: most of them are gone */
		files->count = 0;
		hash_table_clear(&files->index);
	}
	if (!hash_table_add(&files->index, hash, files->count))
		return NULL;
	files->names[files->count] = (struct file_name){.hash = hash};
	return &files->names[files->count++];
}

static void learn(struct runtime_files *files, uint64_t hash, bool is_runtime)
{
	struct file_name *name = name_of(files, hash);

	if (!name)
		return;
	name->is_known = true;
	name->is_runtime |= is_runtime;
}

bool runtime_files_may_be(struct runtime_files *files, const struct mapping_event *mapping)
{
	struct file_name *name;

	if (mapping->is_anonymous || (!mapping->build_id.length && !mapping->inode))
		return false;
	name = name_of(files, mapping->build_id.length
				      ? id_hash(&mapping->build_id)
				      : inode_hash(mapping->device_major, mapping->device_minor,
						   mapping->inode));
	if (!name || name->is_known)
		return name && name->is_runtime;
	name->is_known = ++name->unknown == UNKNOWN_MAX;
	return true;
}

/* --- files as they are known --- */

static const struct runtime_symbols *runtime_of(const void *answer)
{
	const struct runtime_symbols *symbols = answer;

	return symbols && symbols->language ? symbols : NULL;
}

bool runtime_files_find(struct runtime_files *files, uint32_t index,
			const struct runtime_symbols **symbols)
{
	const struct executable *executable;
	const void *answer;

	*symbols = NULL;
	if (!file_answers_find(files->answers, index, &answer))
		return false;
	*symbols = runtime_of(answer);
	executable = process_table_executable(files->table, index);
	if (!executable)
		return true;
	if (executable->gnu.length)
		learn(files, id_hash(&executable->gnu), *symbols);
	learn(files,
	      inode_hash(major(executable->st.st_dev), minor(executable->st.st_dev),
			 executable->st.st_ino),
	      *symbols);
	return true;
}

uint32_t runtime_files_thread_bytes(const struct runtime_files *files, uint32_t executable)
{
	const struct runtime_symbols *symbols = file_answers_known(files->answers, executable);

	return symbols ? symbols->thread_bytes : 0;
}

bool runtime_files_is_other_jvm(const struct runtime_files *files, uint32_t executable)
{
	const struct runtime_symbols *symbols = file_answers_known(files->answers, executable);

	return symbols && symbols->flags & RUNTIME_IS_OTHER_JVM;
}

bool runtime_files_is_file(const struct runtime_files *files, uint32_t executable,
			   enum runtime_language language)
{
	const struct runtime_symbols *symbols = file_answers_known(files->answers, executable);

	return symbols && symbols->language == language;
}

bool runtime_files_has_greenlets(struct runtime_files *files, uint32_t executable)
{
	const void *answer;

	if (!file_answers_find(files->answers, executable, &answer) || !answer)
		return false;
	return ((const struct runtime_symbols *)answer)->flags & RUNTIME_HAS_GREENLETS;
}

bool runtime_files_is_loop(const struct runtime_files *files, uint32_t executable, uint64_t address)
{
	const struct runtime_symbols *symbols = file_answers_known(files->answers, executable);

	for (uint32_t i = 0; symbols && i < symbols->loop_count; i++)
		if (address >= symbols->loop[i].start && address < symbols->loop[i].end)
			return true;
	return false;
}
