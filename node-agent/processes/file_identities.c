/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/file_identities.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_place.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"

enum {
	QUESTIONS_MAX = 96,   /* that are not answered yet */
	OUTCOMES_MAX = 512,   /* a power of two; that can be asked for */
	SLOW_DEVICES_MAX = 8, /* file systems that did not answer */
	RETRY_FIRST_S = 1,
	RETRY_DOUBLINGS = 9, /* some ten minutes */
};

/* What tells a file that has not changed; the change time catches what sets the others back. */
struct file_state {
	uint64_t device, inode, size;
	struct timespec modified, changed;
};

/* Something that failed before, and is not tried again for some time. */
struct back_off {
	uint32_t until_s;
	uint8_t attempts;
};

struct known_file {
	struct file_state state;
	struct executable_ref ref;
	uint8_t found; /* enum file_found: FOUND, NOT_CODE or FAILED */
	struct back_off failed;
};

struct question {
	uint32_t number; /* 0: free */
	int fd;
	struct file_state state;
	uint64_t owner;
	bool is_private;
	char *path;
};

struct outcome {
	uint32_t number;
	uint8_t found;
	struct executable_ref ref;
};

struct slow_device {
	uint64_t device;
	struct back_off failed;
};

struct file_identities {
	struct executables *executables; /* borrowed */
	struct file_reader reader;       /* ask NULL: there is none */
	struct known_file *files;        /* emptied at once when full */
	uint32_t file_count, limit;
	struct hash_table by_state;
	struct question questions[QUESTIONS_MAX];
	struct outcome outcomes[OUTCOMES_MAX];
	struct slow_device slow[SLOW_DEVICES_MAX];
	uint32_t last_number, answered;
	struct file_identities_counters counters;
};

struct file_identities *file_identities_new(size_t limit, struct executables *executables,
					    struct error *err)
{
	struct file_identities *identities = calloc(1, sizeof(*identities));

	if (identities)
		identities->files = calloc(limit, sizeof(*identities->files));
	if (!identities || !identities->files) {
		error_set(err, ERROR_MEMORY, "no memory for the identities of %zu files", limit);
		free(identities);
		return NULL;
	}
	identities->executables = executables;
	identities->limit = (uint32_t)limit;
	hash_table_init(&identities->by_state, (uint32_t)limit);
	return identities;
}

static void end_question(struct question *question)
{
	if (question->fd >= 0)
		close(question->fd);
	free(question->path);
	*question = (struct question){0};
}

void file_identities_free(struct file_identities *identities)
{
	if (!identities)
		return;
	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (identities->questions[i].number)
			end_question(&identities->questions[i]);
	hash_table_release(&identities->by_state);
	free(identities->files);
	free(identities);
}

void file_identities_set_reader(struct file_identities *identities,
				const struct file_reader *reader)
{
	identities->reader = *reader;
}

uint32_t file_identities_answered(const struct file_identities *identities)
{
	return identities->answered;
}

const struct file_identities_counters *
file_identities_counters(const struct file_identities *identities)
{
	return &identities->counters;
}

/* --- known ones --- */

static struct file_state state_of(const struct stat *st)
{
	return (struct file_state){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.modified = st->st_mtim,
		.changed = st->st_ctim,
	};
}

static uint64_t state_hash(const struct file_state *state)
{
	return hash_bytes(state, sizeof(*state), 0);
}

static bool is_same_state(const struct file_state *a, const struct file_state *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static struct known_file *find_known(const struct file_identities *identities,
				     const struct file_state *state)
{
	uint64_t hash = state_hash(state);

	HASH_TABLE_EACH(i, &identities->by_state, hash)
		if (is_same_state(&identities->files[i].state, state))
			return &identities->files[i];
	return NULL;
}

/* NULL: no memory, it will be read again. */
static struct known_file *remember(struct file_identities *identities,
				   const struct file_state *state)
{
	struct known_file *known = find_known(identities, state);

	if (known)
		return known;
	if (identities->file_count == identities->limit) {
		hash_table_clear(&identities->by_state);
		identities->file_count = 0;
	}
	if (!hash_table_add(&identities->by_state, state_hash(state), identities->file_count))
		return NULL;
	known = &identities->files[identities->file_count++];
	*known = (struct known_file){.state = *state};
	return known;
}

static bool is_expected(struct file_identities *identities, struct executable_ref ref,
			const struct build_id *expected)
{
	const struct executable *shown = executables_get(identities->executables, ref);

	return shown && (!expected || !expected->length || build_id_equal(expected, &shown->gnu));
}

/* --- what failed --- */

static bool is_backed_off(const struct file_identities *identities, const struct back_off *failed)
{
	return failed->attempts && executables_time(identities->executables) < failed->until_s;
}

static void back_off(const struct file_identities *identities, struct back_off *failed)
{
	failed->until_s = executables_time(identities->executables) +
			  (RETRY_FIRST_S << failed->attempts);
	if (failed->attempts < RETRY_DOUBLINGS)
		failed->attempts++;
}

static struct slow_device *find_slow(struct file_identities *identities, uint64_t device)
{
	for (int i = 0; i < SLOW_DEVICES_MAX; i++)
		if (identities->slow[i].failed.attempts && identities->slow[i].device == device)
			return &identities->slow[i];
	return NULL;
}

/* A file system that does not answer for one file mostly does not for the next: each costs others
 * the time until that is known. */
static void set_slow(struct file_identities *identities, uint64_t device)
{
	struct slow_device *slow = find_slow(identities, device);

	if (!slow) {
		slow = &identities->slow[0];
		for (int i = 1; i < SLOW_DEVICES_MAX; i++)
			if (identities->slow[i].failed.until_s < slow->failed.until_s)
				slow = &identities->slow[i];
		*slow = (struct slow_device){.device = device};
	}
	back_off(identities, &slow->failed);
	log_warn("files not read: their file system does not answer",
		 "device=%u:%u again_in_s=%" PRIu32, major(device), minor(device),
		 slow->failed.until_s - executables_time(identities->executables));
}

/* --- asking --- */

static bool may_change(const char *path)
{
	return !strncmp(path, "/memfd:", strlen("/memfd:")) || !path[0];
}

static struct question *find_question(struct file_identities *identities, uint32_t number)
{
	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (identities->questions[i].number == number)
			return &identities->questions[i];
	return NULL;
}

static struct question *question_about(struct file_identities *identities,
				       const struct file_state *state)
{
	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (identities->questions[i].number &&
		    is_same_state(&identities->questions[i].state, state))
			return &identities->questions[i];
	return NULL;
}

static struct outcome *outcome_of(struct file_identities *identities, uint32_t number)
{
	return &identities->outcomes[number % OUTCOMES_MAX];
}

/* Takes question's fd. What the content says of the file. */
static enum file_found take_content(struct file_identities *identities, struct question *question,
				    const struct file_content *content, struct executable_ref *ref)
{
	const struct executable_content entry = {
		.path = question->path,
		.image = content->is_elf ? &content->image : NULL,
		.gnu = content->image.gnu,
		.htlhash = content->htlhash,
		.owner = question->owner,
		.is_private = question->is_private,
		.limit = content->is_elf ? 0 : question->state.size,
		.is_raw = !content->is_elf,
	};
	int fd = question->fd;

	if (!content->is_elf && may_change(question->path))
		return FILE_NOT_CODE;
	question->fd = -1;
	return executables_add(identities->executables, &entry, fd, ref) ? FILE_FOUND : FILE_FAILED;
}

static void settle(struct file_identities *identities, struct question *question,
		   const struct file_content *content, bool is_hung)
{
	struct outcome outcome = {.number = question->number, .found = FILE_FAILED};
	struct known_file *known = remember(identities, &question->state);

	if (content)
		outcome.found = (uint8_t)take_content(identities, question, content, &outcome.ref);
	identities->counters.opened += content != NULL;
	identities->counters.failed += outcome.found == FILE_FAILED;
	identities->counters.hung += is_hung;
	if (known) {
		known->found = outcome.found;
		known->ref = outcome.ref;
		if (outcome.found == FILE_FAILED)
			back_off(identities, &known->failed);
	}
	if (is_hung)
		set_slow(identities, question->state.device);
	*outcome_of(identities, outcome.number) = outcome;
	end_question(question);
	identities->answered++;
}

void file_identities_answer(struct file_identities *identities, uint32_t asked,
			    const struct file_content *content, bool is_hung)
{
	struct question *question = asked ? find_question(identities, asked) : NULL;

	if (question)
		settle(identities, question, content, is_hung);
}

enum file_found file_identities_outcome(const struct file_identities *identities, uint32_t asked,
					const struct build_id *expected,
					struct executable_ref *found)
{
	struct file_identities *own = (struct file_identities *)(uintptr_t)identities;
	const struct outcome *outcome = outcome_of(own, asked);

	if (asked && find_question(own, asked))
		return FILE_ASKED;
	if (!asked || outcome->number != asked)
		return FILE_FAILED;
	if (outcome->found != FILE_FOUND)
		return (enum file_found)outcome->found;
	if (!executables_get(identities->executables, outcome->ref))
		return FILE_FAILED;
	if (!is_expected(own, outcome->ref, expected))
		return FILE_OTHER;
	*found = outcome->ref;
	return FILE_FOUND;
}

/* Without a reader: here and now. */
static void read_here(struct file_identities *identities, struct question *question)
{
	struct file_content content;

	settle(identities, question,
	       file_content_read(question->fd, &content, NULL) ? &content : NULL, false);
}

static uint32_t next_number(struct file_identities *identities)
{
	identities->last_number = (identities->last_number + 1) % FILE_READER_NUMBERS;
	return identities->last_number ? identities->last_number : ++identities->last_number;
}

/* The question's number; 0: not now. *is_failed: the file cannot be opened. */
static uint32_t ask(struct file_identities *identities, int path_fd, const char *path,
		    bool is_private, const struct file_state *state, uint64_t owner,
		    bool *is_failed)
{
	struct question *question = find_question(identities, 0);
	uint32_t number;

	if (!question)
		return 0;
	*question = (struct question){
		.state = *state, .owner = owner, .is_private = is_private, .path = strdup(path)};
	question->fd = stranger_reopen(path_fd);
	*is_failed = question->fd < 0;
	if (!question->path || question->fd < 0) {
		end_question(question);
		return 0;
	}
	number = question->number = next_number(identities);
	if (!identities->reader.ask)
		read_here(identities, question);
	else if (!identities->reader.ask(identities->reader.context, number, question->fd)) {
		end_question(question);
		return 0;
	}
	return number;
}

/* Of one that is remembered. ASKED: it has to be read again. */
static enum file_found find_remembered(struct file_identities *identities,
				       const struct known_file *known, int path_fd, bool is_private,
				       const struct build_id *expected,
				       struct executable_ref *found)
{
	struct executable *shown;
	int fd;

	if (known->found == FILE_NOT_CODE)
		return FILE_NOT_CODE;
	if (known->found == FILE_FAILED)
		return is_backed_off(identities, &known->failed) ? FILE_FAILED : FILE_ASKED;
	shown = executables_get(identities->executables, known->ref);
	if (!shown)
		return FILE_ASKED;
	if (!is_expected(identities, known->ref, expected))
		return FILE_OTHER;
	*found = known->ref;
	shown->is_private &= is_private;
	if (shown->fd < 0 && !shown->is_raw && (fd = stranger_reopen(path_fd)) >= 0)
		executables_keep_open(identities->executables, known->ref, fd);
	return FILE_FOUND;
}

enum file_found file_identities_find(struct file_identities *identities, int path_fd,
				     const char *path, bool is_private,
				     const struct build_id *expected, struct executable_ref *found,
				     uint32_t *asked)
{
	const struct known_file *known;
	struct question *question;
	const struct slow_device *slow;
	enum file_found remembered = FILE_ASKED;
	struct file_state state;
	bool is_failed = false;
	struct stat st;

	*asked = 0;
	if (!stranger_file_stat(path_fd, &st) || !S_ISREG(st.st_mode))
		return FILE_FAILED;
	state = state_of(&st);
	known = find_known(identities, &state);
	if (known)
		remembered = find_remembered(identities, known, path_fd, is_private, expected,
					     found);
	if (remembered != FILE_ASKED)
		return remembered;
	question = question_about(identities, &state);
	if (question) {
		question->is_private &= is_private;
		*asked = question->number;
		return FILE_ASKED;
	}
	slow = find_slow(identities, state.device);
	if (slow && is_backed_off(identities, &slow->failed))
		return FILE_FAILED;
	*asked = ask(identities, path_fd, path, is_private, &state, executables_owner(&st),
		     &is_failed);
	identities->counters.failed += is_failed;
	if (is_failed)
		return FILE_FAILED;
	return *asked ? file_identities_outcome(identities, *asked, expected, found) : FILE_ASKED;
}

bool file_identities_find_open(struct file_identities *identities, const struct stat *st,
			       const struct build_id *expected, struct executable_ref *found)
{
	const struct file_state state = state_of(st);
	const struct known_file *known = S_ISREG(st->st_mode) ? find_known(identities, &state)
							      : NULL;
	const struct executable *shown = known && known->found == FILE_FOUND
						 ? executables_get(identities->executables,
								   known->ref)
						 : NULL;

	if (!shown || (shown->fd < 0 && !shown->is_raw) ||
	    !is_expected(identities, known->ref, expected))
		return false;
	*found = known->ref;
	return true;
}

/* Takes path_fd. Whether it was the very file, which is open then. */
static bool reopen_same(struct file_identities *identities, struct executable_ref ref, int path_fd,
			bool is_mapping)
{
	const struct executable *shown = executables_get(identities->executables, ref);
	struct stat st;
	int fd = -1;

	if (path_fd < 0)
		return false;
	if (stranger_file_stat(path_fd, &st) && stranger_place_same(&st, &shown->st, is_mapping))
		fd = stranger_reopen(path_fd);
	close(path_fd);
	if (fd >= 0)
		executables_keep_open(identities->executables, ref, fd);
	return fd >= 0;
}

static int open_mapping(const struct executable *shown, const char *proc_root)
{
	int directory = shown->tgid ? process_directory_open(proc_root, shown->tgid, 0) : -1, found;

	if (directory < 0)
		return -1;
	found = process_open_mapping(directory, shown->mapping_start, shown->mapping_end);
	close(directory);
	return found;
}

bool file_identities_reopen(struct file_identities *identities, const char *proc_root,
			    uint32_t index)
{
	const struct executable *shown = executables_by_index(identities->executables, index);
	struct executable_ref ref;
	bool is_public;

	if (!shown || shown->fd >= 0 ||
	    !executables_may_reopen(identities->executables, index, &ref))
		return shown && shown->fd >= 0;
	return reopen_same(identities, ref, open_mapping(shown, proc_root), true) ||
	       reopen_same(identities, ref, process_open_own_path(shown->path, &is_public), false);
}
