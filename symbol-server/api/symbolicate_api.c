/* SPDX-License-Identifier: Apache-2.0 */
/* POST /symbolicate/v5: names for offsets into modules, as Mozilla's symbolication service has it
 * (mozilla-eliot.readthedocs.io) and Firefox Profiler and samply ask for it.
 *
 * Scripts of any page may call it: it keeps no session and knows no cookies, whoever asks has to
 * name a module by its id of 16 bytes and more, and what comes back is what a file of that id has
 * in it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/api/symbolicate_request.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/naming/demangle.h"
#include "symbol-server/symbolize/module_find.h"
#include "symbol-server/symbolize/symbol_table.h"

enum {
	NAMES_BYTES_MAX = 64 << 20,
	ANSWER_BYTES_MAX = 96 << 20,
	SCRATCH_BYTES_MAX = 4 << 20, /* demangled names of one frame */
	REASON_ROOM = 240,
};

struct job_module {
	uint32_t first, count; /* of by_module */
	uint32_t same_as; /* the first module of that name and id: of equal ones one is shown */
	bool is_found;
	char reason[REASON_ROOM];
};

struct frame_text { /* members of a frame's object, in texts */
	size_t at, length;
};

/* One job on its way. Module by module, so that of all tables one at a time is held. */
struct symbolication {
	struct api *api;
	struct query_life *life;
	const struct symbolicate_job *job;
	struct job_module *modules;
	struct module_question *questions; /* by module */
	bool *is_readable;                 /* by module: its id is one */
	uint32_t *by_module;               /* frames, those of one module together */
	struct frame_text *frame_texts;    /* by frame */
	struct buffer texts;
	struct arena scratch;
};

/* ---- which frames are of which module ---- */

static bool allocate(struct symbolication *work, struct error *err)
{
	struct arena *arena = http_request_arena(query_life_request(work->life));
	const struct symbolicate_job *job = work->job;

	work->modules = arena_array(arena, job->module_count, sizeof(*work->modules));
	work->questions = arena_array(arena, job->module_count, sizeof(*work->questions));
	work->is_readable = arena_array(arena, job->module_count, sizeof(*work->is_readable));
	work->by_module = arena_array(arena, job->frame_count, sizeof(*work->by_module));
	work->frame_texts = arena_array(arena, job->frame_count, sizeof(*work->frame_texts));
	if (work->modules && work->questions && work->is_readable && work->by_module &&
	    work->frame_texts)
		return true;
	return error_no_memory(err);
}

static void sort_frames(struct symbolication *work)
{
	const struct symbolicate_job *job = work->job;
	uint32_t at = 0;

	for (uint32_t i = 0; i < job->frame_count; i++)
		if (job->frames[i].module >= 0)
			work->modules[job->frames[i].module].count++;
	for (uint32_t i = 0; i < job->module_count; i++) {
		work->modules[i].first = at;
		at += work->modules[i].count;
		work->modules[i].count = 0;
	}
	for (uint32_t i = 0; i < job->frame_count; i++)
		if (job->frames[i].module >= 0) {
			struct job_module *module = &work->modules[job->frames[i].module];

			work->by_module[module->first + module->count++] = i;
		}
}

/* A module may stand in the map twice; in the answer its name and id are a key. */
static bool join_equal(struct symbolication *work, struct error *err)
{
	const struct symbolicate_job *job = work->job;
	struct hash_table table;
	bool ok = true;

	hash_table_init(&table, job->module_count);
	for (uint32_t i = 0; ok && i < job->module_count; i++) {
		const struct symbolicate_module *module = &job->modules[i];
		uint64_t hash = hash_bytes(module->id, strlen(module->id),
					   hash_bytes(module->name, strlen(module->name), 0));
		uint32_t probe, same = hash_table_first(&table, hash, &probe);

		while (same != HASH_TABLE_NONE && (strcmp(job->modules[same].name, module->name) ||
						   strcmp(job->modules[same].id, module->id)))
			same = hash_table_next(&table, hash, &probe);
		work->modules[i].same_as = same == HASH_TABLE_NONE ? i : same;
		ok = same != HASH_TABLE_NONE || hash_table_add(&table, hash, i);
	}
	hash_table_release(&table);
	return ok || error_no_memory(err);
}

/* ---- names ---- */

static void put_hex(struct json *json, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	json_key_string(json, key, text);
}

static void put_function(struct symbolication *work, struct json *json,
			 const struct symbol_frame *frame)
{
	const char *signature = demangle_signature(frame->name, &work->scratch);

	json_key_string(json, "function",
			signature ? signature : demangle(frame->name, &work->scratch));
}

static void put_line(struct json *json, const struct symbol_frame *frame)
{
	if (*frame->file)
		json_key_string(json, "file", frame->file);
	if (*frame->file && frame->line)
		json_key_uint(json, "line", frame->line);
}

/* What the frames count from: the first PT_LOAD, or where a table of kallsyms begins. */
static bool find_base(const struct symbol_table *table, enum address_base *base, uint64_t *load)
{
	*base = table->load.is_known ? ADDRESS_ELF : ADDRESS_KERNEL_TEXT;
	*load = table->load.is_known ? table->load.address : 0;
	return table->bases[*base].is_known;
}

static void put_names(struct symbolication *work, struct json *json,
		      const struct symbol_table *table, int64_t offset)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	uint64_t load, start = 0, end = 0, address;
	enum address_base base;
	unsigned count;

	find_base(table, &base, &load);
	address = load + (uint64_t)offset;
	count = offset < 0 ? 0 : symbol_table_lookup(table, base, address, frames);
	if (!count) {
		json_key_string(json, "reason", "no symbol covers this address");
		return;
	}
	arena_clear(&work->scratch);
	put_function(work, json, &frames[count - 1]);
	if (symbol_table_extent(table, base, address, &start, &end)) {
		put_hex(json, "function_offset", address - start);
		put_hex(json, "function_size", end - start);
	}
	put_line(json, &frames[count - 1]);
	if (count == 1)
		return;
	json_key(json, "inlines");
	json_open(json, '[');
	for (unsigned i = 0; i + 1 < count; i++) {
		json_open(json, '{');
		put_function(work, json, &frames[i]);
		put_line(json, &frames[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* The table, or why there is none. What is not known yet is asked for: a later request has it. */
static struct symbol_table *take_table(struct symbolication *work, uint32_t number)
{
	const struct module_question *question = &work->questions[number];
	struct job_module *module = &work->modules[number];
	struct symbol_table *table;
	enum address_base base;
	uint64_t load;

	if (!work->is_readable[number]) {
		snprintf(module->reason, REASON_ROOM,
			 "its id is neither a build-id nor one of Breakpad's");
		return NULL;
	}
	if (!question->is_known && question->is_breakpad) {
		snprintf(module->reason, REASON_ROOM,
			 "no module is known whose build-id begins like this; asked for by its "
			 "whole build-id it would be looked for");
		return NULL;
	}
	if (!question->is_known)
		symbolizer_want(work->api->symbolizer, &question->id,
				work->job->modules[number].name, true, 0);
	table = symbolizer_take_table(work->api->symbolizer, &question->id, module->reason,
				      REASON_ROOM);
	if (!table || find_base(table, &base, &load))
		return table;
	snprintf(module->reason, REASON_ROOM,
		 "its symbols are known, but not where offsets into it count from");
	symbol_table_release(table);
	return NULL;
}

static bool name_module(struct symbolication *work, uint32_t number, struct error *err)
{
	struct job_module *module = &work->modules[number];
	struct symbol_table *table = take_table(work, number);
	struct json json = {.out = &work->texts, .needs_comma = true};
	size_t reason_at = work->texts.length;
	bool ok = true;

	module->is_found = table != NULL;
	if (!table)
		json_key_string(&json, "reason", module->reason);
	for (uint32_t i = 0; ok && i < module->count && !work->texts.failed; i++) {
		uint32_t frame = work->by_module[module->first + i];
		size_t at = table ? work->texts.length : reason_at;

		if (table)
			put_names(work, &json, table, work->job->frames[frame].offset);
		work->frame_texts[frame] = (struct frame_text){at, work->texts.length - at};
		ok = query_life_goes_on(work->life, err);
	}
	symbol_table_release(table);
	return ok && query_life_is_wanted(work->life, err);
}

/* ---- the answer ---- */

static void put_frame(const struct symbolication *work, struct json *json, uint32_t number,
		      uint32_t frame)
{
	const struct symbolicate_frame *asked = &work->job->frames[number];
	const struct frame_text *text = &work->frame_texts[number];

	json_open(json, '{');
	json_key_uint(json, "frame", frame);
	json_key_string(json, "module",
			asked->module < 0 ? "<unknown>" : work->job->modules[asked->module].name);
	if (asked->offset < 0)
		json_key_string(json, "module_offset", "-0x1");
	else
		put_hex(json, "module_offset", (uint64_t)asked->offset);
	if (asked->module < 0)
		json_key_string(json, "reason", "it is in none of the modules");
	else
		buffer_append(json->out, work->texts.bytes + text->at, text->length);
	json_close(json, '}');
}

static void put_stacks(const struct symbolication *work, struct json *json)
{
	json_key(json, "stacks");
	json_open(json, '[');
	for (uint32_t i = 0; i < work->job->stack_count && !json->out->failed; i++) {
		json_open(json, '[');
		for (uint32_t frame = 0; frame < work->job->stacks[i].count; frame++)
			put_frame(work, json, work->job->stacks[i].first + frame, frame);
		json_close(json, ']');
	}
	json_close(json, ']');
}

/* true, false; null for a module that no frame is in: it was not looked for. */
static void put_found(const struct symbolication *work, struct json *json)
{
	struct job_module *modules = work->modules;

	for (uint32_t i = 0; i < work->job->module_count; i++) {
		modules[modules[i].same_as].is_found |= modules[i].is_found;
		if (modules[i].same_as != i)
			modules[modules[i].same_as].count += modules[i].count;
	}
	json_key(json, "found_modules");
	json_open(json, '{');
	for (uint32_t i = 0; i < work->job->module_count; i++) {
		const struct symbolicate_module *module = &work->job->modules[i];
		char key[2100];

		if (modules[i].same_as != i)
			continue;
		snprintf(key, sizeof(key), "%s/%s", module->name, module->id);
		json_string(json, key);
		buffer_append_text(json->out, !modules[i].count     ? ":null"
					      : modules[i].is_found ? ":true"
								    : ":false");
	}
	json_close(json, '}');
}

static bool answer_job(struct symbolication *work, struct json *json, struct error *err)
{
	bool ok = true;

	buffer_init(&work->texts, NAMES_BYTES_MAX);
	arena_init(&work->scratch, SCRATCH_BYTES_MAX);
	if (!allocate(work, err) || !join_equal(work, err))
		return false;
	sort_frames(work);
	for (uint32_t i = 0; i < work->job->module_count; i++)
		work->is_readable[i] = module_question_parse(work->job->modules[i].id,
							     &work->questions[i]);
	symbolizer_find_modules(work->api->symbolizer, work->questions, work->job->module_count);
	for (uint32_t i = 0; ok && i < work->job->module_count; i++)
		ok = !work->modules[i].count || name_module(work, i, err);
	if (ok && !work->texts.failed) {
		json_open(json, '{');
		put_stacks(work, json);
		put_found(work, json);
		json_close(json, '}');
	}
	if (ok && (work->texts.failed || json->out->failed))
		ok = error_set(err, ERROR_LIMIT,
			       "the answer would have more than %d MB: ask for fewer frames",
			       NAMES_BYTES_MAX >> 20);
	buffer_release(&work->texts);
	arena_release(&work->scratch);
	return ok;
}

static bool answer_jobs(struct http_response *response, struct api *api,
			const struct symbolicate_request *asked, struct query_life *life,
			struct error *err)
{
	struct json json = json_start(&response->body);

	response->body.limit = ANSWER_BYTES_MAX;
	json_open(&json, '{');
	json_key(&json, "results");
	json_open(&json, '[');
	for (unsigned i = 0; i < asked->job_count; i++) {
		struct symbolication work = {.api = api, .life = life, .job = &asked->jobs[i]};

		if (!answer_job(&work, &json, err))
			return false;
	}
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
	return true;
}

void api_symbolicate_post(struct http_request *request, struct http_response *response,
			  void *context)
{
	struct api *api = context;
	struct bytes body = http_request_body(request);
	struct symbolicate_request asked;
	struct query_life *life = NULL;
	struct query query = {0};
	struct parameters none;
	struct error err = {0}, over = {0};

	if (parameters_open(&none, request, ENDPOINT_none, &err) &&
	    (life = query_life_start(request, &api->query_limits, &query, &err)) &&
	    symbolicate_request_read(body.at ? body.at : (const uint8_t *)"", body.length,
				     http_request_arena(request), &asked, &err) &&
	    answer_jobs(response, api, &asked, life, &err))
		return;
	if (err.kind == ERROR_LIMIT && life && !query_life_is_wanted(life, &over))
		answer_failure(response, &err);
	else
		answer_failure_of(response, ANSWER_TO_BODY, &err);
}

/* A page whose request says what it sends asks first whether it may (fetch.spec.whatwg.org). */
void api_symbolicate_options(struct http_request *request, struct http_response *response,
			     void *context)
{
	(void)request, (void)context;
	response->status = 204;
	answer_header(response, "Access-Control-Allow-Methods", "POST");
	answer_header(response, "Access-Control-Allow-Headers", "Content-Type, Content-Encoding");
	answer_header(response, "Access-Control-Max-Age", "86400");
}
