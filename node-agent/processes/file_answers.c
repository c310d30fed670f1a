/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/file_answers.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

enum { FILES_MAX = 8192 };

struct known_file {
	uint32_t executable;
	bool is_asked, is_answered;
	void *answer;
};

struct file_answers {
	struct process_table *table;
	file_answers_ask *ask;
	void *context;
	struct hash_table index;
	struct known_file *files;
	uint32_t count, room;
};

static struct known_file *find(const struct file_answers *answers, uint32_t executable)
{
	const uint64_t hash = hash_word(0, executable);

	HASH_TABLE_EACH (i, &answers->index, hash)
		if (answers->files[i].executable == executable)
			return &answers->files[i];
	return NULL;
}

static void forget_all(struct file_answers *answers)
{
	for (uint32_t i = 0; i < answers->count; i++)
		free(answers->files[i].answer);
	answers->count = 0;
	hash_table_clear(&answers->index);
}

static struct known_file *add(struct file_answers *answers, uint32_t executable)
{
	if (answers->count == FILES_MAX)
		forget_all(answers); /* numbers of files that are gone are among them */
	if (!ARRAY_GROW(answers->files, answers->count, answers->room) ||
	    !hash_table_add(&answers->index, hash_word(0, executable), answers->count))
		return NULL;
	answers->files[answers->count] = (struct known_file){.executable = executable};
	return &answers->files[answers->count++];
}

struct file_answers *file_answers_new(struct process_table *table, file_answers_ask *ask,
				      void *context, struct error *err)
{
	struct file_answers *answers = calloc(1, sizeof *answers);

	if (!answers) {
		error_set(err, ERROR_MEMORY, "no memory for what files say");
		return NULL;
	}
	answers->table = table;
	answers->ask = ask;
	answers->context = context;
	hash_table_init(&answers->index, FILES_MAX);
	return answers;
}

void file_answers_free(struct file_answers *answers)
{
	if (!answers)
		return;
	forget_all(answers);
	hash_table_release(&answers->index);
	free(answers->files);
	free(answers);
}

bool file_answers_find(struct file_answers *answers, uint32_t index, const void **answer)
{
	const struct executable *executable = process_table_executable(answers->table, index);
	struct known_file *file = find(answers, index);

	*answer = NULL;
	if (!file)
		file = add(answers, index);
	if (!file)
		return false;
	if (!file->is_answered && !file->is_asked &&
	    (!executable || executable->is_raw || !process_table_reopen(answers->table, index)))
		file->is_answered = true;
	if (!file->is_answered && !file->is_asked)
		file->is_asked = answers->ask(answers->context, executable);
	*answer = file->answer;
	return file->is_answered;
}

const void *file_answers_known(const struct file_answers *answers, uint32_t executable)
{
	const struct known_file *file = find(answers, executable);

	return file ? file->answer : NULL;
}

void file_answers_put(struct file_answers *answers, uint32_t executable, const void *answer,
		      size_t bytes)
{
	struct known_file *file = find(answers, executable);

	if (!file || file->is_answered)
		return;
	file->is_answered = true;
	file->answer = answer ? malloc(bytes) : NULL;
	if (file->answer)
		memcpy(file->answer, answer, bytes);
}
