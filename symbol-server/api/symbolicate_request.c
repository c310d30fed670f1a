/* SPDX-License-Identifier: Apache-2.0 */
/* Door to cJSON. Its tree takes 30 times the text: it is built in an arena with a limit, and gone
 * when the request has been read. */
#include "symbol-server/api/symbolicate_request.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <string.h>

enum { TREE_BYTES_MAX = 40 << 20, TEXT_MAX = 1024 };

#define OFFSET_MAX ((double)(INT64_C(1) << 53)) /* larger ones do not fit a JSON number */

/* ---- the tree's memory ---- */

static _Thread_local struct arena *tree_arena;

static void *tree_alloc(size_t bytes)
{
	return tree_arena ? arena_alloc(tree_arena, bytes) : NULL;
}

static void tree_free(void *at)
{
	(void)at; /* with the arena */
}

static void use_arenas(void)
{
	cJSON_Hooks hooks = {.malloc_fn = tree_alloc, .free_fn = tree_free};

	cJSON_InitHooks(&hooks);
}

/* In the arena tree; what is behind the value counts as not JSON. cJSON 1.7.15 reads past a text
 * that does not end in NUL. */
static const cJSON *parse(const void *bytes, size_t length, struct arena *tree, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *text = arena_text(tree, bytes, length);
	const char *end = text;
	const cJSON *root;

	pthread_once(&once, use_arenas);
	if (!text) {
		error_no_memory(err);
		return NULL;
	}
	tree_arena = tree;
	root = cJSON_ParseWithLengthOpts(text, length + 1, &end, 1);
	tree_arena = NULL;
	if (tree->failed)
		error_set(err, ERROR_LIMIT, "the body has more values than are read at a time");
	else if (!root || strlen(text) != length)
		error_set(err, ERROR_FORMAT, "the body is not JSON; read up to byte %zu",
			  end ? (size_t)(end - text) : 0);
	else
		return root;
	return NULL;
}

/* ---- its shape ---- */

/* Where in the request the reader is, for its sentences. */
struct place {
	struct arena *arena;
	unsigned job;
	uint32_t modules, frames; /* of all jobs */
	struct error *err;
};

static bool is_wrong(struct place *place, const char *what)
{
	return error_set(place->err, ERROR_FORMAT, "job %u: %s", place->job, what);
}

static uint32_t count_of(const cJSON *list)
{
	const cJSON *item;
	uint32_t count = 0;

	cJSON_ArrayForEach(item, list) count++;
	return count;
}

static void *make_rows(struct place *place, uint32_t count, size_t size)
{
	void *rows = arena_array(place->arena, count, size);

	if (!rows)
		error_no_memory(place->err);
	return rows;
}

static const char *read_text(struct place *place, const cJSON *value)
{
	size_t length;

	if (!cJSON_IsString(value))
		return NULL;
	length = strlen(value->valuestring);
	return length > TEXT_MAX ? NULL : arena_text(place->arena, value->valuestring, length);
}

static bool read_modules(struct place *place, const cJSON *list, struct symbolicate_job *job)
{
	struct symbolicate_module *module;
	const cJSON *pair;

	if (!cJSON_IsArray(list))
		return is_wrong(place, "memoryMap is not a list");
	job->module_count = count_of(list);
	place->modules += job->module_count;
	if (place->modules > SYMBOLICATE_MODULES)
		return error_set(place->err, ERROR_LIMIT, "more than %d modules in one request",
				 SYMBOLICATE_MODULES);
	module = job->modules = make_rows(place, job->module_count, sizeof(*module));
	if (!module)
		return false;
	cJSON_ArrayForEach(pair, list)
	{
		const cJSON *name = cJSON_IsArray(pair) ? pair->child : NULL;

		module->name = name ? read_text(place, name) : NULL;
		module->id = name && name->next ? read_text(place, name->next) : NULL;
		if (!module->name || !module->id || name->next->next)
			return is_wrong(place,
					"a module in memoryMap is not [name, debug id], texts "
					"of at most 1024 bytes");
		module++;
	}
	return true;
}

static bool read_whole(const cJSON *value, double from, double to, int64_t *out)
{
	if (!cJSON_IsNumber(value) || !(value->valuedouble >= from && value->valuedouble <= to) ||
	    value->valuedouble != (double)(int64_t)value->valuedouble)
		return false;
	*out = (int64_t)value->valuedouble;
	return true;
}

static bool read_frame(struct place *place, const cJSON *pair, const struct symbolicate_job *job,
		       struct symbolicate_frame *frame)
{
	const cJSON *module = cJSON_IsArray(pair) ? pair->child : NULL;
	const cJSON *offset = module ? module->next : NULL;
	int64_t number;

	if (!offset || offset->next)
		return is_wrong(place, "a frame is not [module index, offset]");
	if (!read_whole(module, -1, (double)job->module_count - 1, &number))
		return is_wrong(place, "a frame's module index is not one of memoryMap, nor -1");
	frame->module = (int32_t)number;
	if (!read_whole(offset, -1, OFFSET_MAX, &frame->offset))
		return is_wrong(place, "a frame's offset is not a whole number from -1 to 2^53");
	return true;
}

static bool count_frames(struct place *place, const cJSON *stacks, struct symbolicate_job *job)
{
	const cJSON *stack;

	if (!cJSON_IsArray(stacks))
		return is_wrong(place, "stacks is not a list");
	job->stack_count = count_of(stacks);
	cJSON_ArrayForEach(stack, stacks)
	{
		if (!cJSON_IsArray(stack))
			return is_wrong(place, "a stack is not a list of frames");
		job->frame_count += count_of(stack);
	}
	place->frames += job->frame_count;
	if (place->frames > SYMBOLICATE_FRAMES)
		return error_set(place->err, ERROR_LIMIT, "more than %d frames in one request",
				 SYMBOLICATE_FRAMES);
	return true;
}

static bool read_stacks(struct place *place, const cJSON *stacks, struct symbolicate_job *job)
{
	struct symbolicate_stack *row;
	const cJSON *stack, *pair;
	uint32_t at = 0;

	if (!count_frames(place, stacks, job))
		return false;
	row = job->stacks = make_rows(place, job->stack_count, sizeof(*row));
	job->frames = make_rows(place, job->frame_count, sizeof(*job->frames));
	if (!row || !job->frames)
		return false;
	cJSON_ArrayForEach(stack, stacks)
	{
		row->first = at;
		cJSON_ArrayForEach(pair, stack)
		{
			if (!read_frame(place, pair, job, &job->frames[at++]))
				return false;
		}
		row->count = at - row->first;
		row++;
	}
	return true;
}

static bool read_job(struct place *place, const cJSON *from, struct symbolicate_job *job)
{
	const cJSON *modules = cJSON_GetObjectItemCaseSensitive(from, "memoryMap");
	const cJSON *stacks = cJSON_GetObjectItemCaseSensitive(from, "stacks");

	if (!cJSON_IsObject(from) || !modules || !stacks)
		return is_wrong(place, "it is not an object with memoryMap and stacks");
	return read_modules(place, modules, job) && read_stacks(place, stacks, job);
}

static bool read_jobs(struct place *place, const cJSON *root, struct symbolicate_request *out)
{
	const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(root, "jobs"), *job;

	if (!jobs) { /* one alone */
		out->job_count = 1;
		return read_job(place, root, &out->jobs[0]);
	}
	if (!cJSON_IsArray(jobs))
		return error_set(place->err, ERROR_FORMAT, "jobs is not a list");
	if (count_of(jobs) > SYMBOLICATE_JOBS)
		return error_set(place->err, ERROR_FORMAT, "more than %d jobs in one request",
				 SYMBOLICATE_JOBS);
	cJSON_ArrayForEach(job, jobs)
	{
		place->job = out->job_count++;
		if (!read_job(place, job, &out->jobs[place->job]))
			return false;
	}
	return true;
}

bool symbolicate_request_read(const void *bytes, size_t length, struct arena *arena,
			      struct symbolicate_request *out, struct error *err)
{
	struct place place = {.arena = arena, .err = err};
	struct arena tree;
	const cJSON *root;
	bool ok;

	*out = (struct symbolicate_request){0};
	arena_init(&tree, TREE_BYTES_MAX);
	root = parse(bytes, length, &tree, err);
	ok = root && read_jobs(&place, root, out);
	arena_release(&tree);
	return ok;
}
