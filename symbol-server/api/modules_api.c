/* SPDX-License-Identifier: Apache-2.0 */
/* GET, POST /api/v1/modules; PUT, DELETE /api/v1/modules/{build_id} */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/naming/named_stacks.h"
#include "symbol-server/symbolize/module_files.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"
#include "symbol-server/symbolize/symbol_table.h"

/* ---- GET: every build-id, what is known of it, and what it costs in names ---- */

enum { CANDIDATES_BYTES_MAX = 512 << 20, PAGE_DEFAULT = 5000, PAGE_MOST = 100000 };

struct shares { /* samples without a name, by the modules of one answer */
	const struct flame_module *modules;
	const uint64_t *unsymbolized, *nameless, *met; /* nameless: value */
	uint32_t count;
	uint64_t samples, value;
	uint64_t cut;            /* of them: in stacks that did not fit --query-memory */
	struct hash_table by_id; /* build-id as text → index */
};

struct listed {
	const struct module_row *row;
	uint64_t samples, unsymbolized, nameless;
	double share;          /* of all samples, those that it leaves without names */
	double nameless_share; /* of all value, that in its functions without names */
};

struct answers { /* what the sources said of all modules, by ascending build-id */
	struct arena arena;
	struct candidate_row *rows;
	size_t count;
};

static bool shares_init(struct shares *shares, const struct named_stacks *stacks,
			const struct samples_result *result)
{
	shares->modules = named_stacks_modules(stacks, &shares->count);
	shares->unsymbolized = named_stacks_unsymbolized(stacks);
	shares->nameless = named_stacks_nameless(stacks);
	shares->met = named_stacks_samples(stacks);
	shares->value = result->cut.value;
	for (size_t i = 0; i < result->stack_count; i++) {
		shares->samples += result->stacks[i].samples;
		shares->value += result->stacks[i].value;
	}
	shares->cut = result->cut.samples;
	shares->samples += shares->cut;
	hash_table_init(&shares->by_id, shares->count);
	for (uint32_t i = 0; i < shares->count; i++)
		if (!hash_table_add(&shares->by_id, frame_name_hash(shares->modules[i].build_id),
				    i))
			return false;
	return true;
}

static struct listed listed_of(const struct shares *shares, const struct module_row *row)
{
	struct listed listed = {.row = row};
	char hex[BUILD_ID_HEX];
	uint32_t probe, at;
	uint64_t hash = frame_name_hash(build_id_format(&row->id, hex));

	for (at = hash_table_first(&shares->by_id, hash, &probe); at != HASH_TABLE_NONE;
	     at = hash_table_next(&shares->by_id, hash, &probe)) {
		if (strcmp(shares->modules[at].build_id, hex) != 0)
			continue;
		listed.samples = shares->met[at];
		listed.unsymbolized = shares->unsymbolized[at];
		if (shares->samples)
			listed.share = (double)listed.unsymbolized / (double)shares->samples;
		listed.nameless = shares->nameless[at];
		if (shares->value)
			listed.nameless_share = (double)listed.nameless / (double)shares->value;
		break;
	}
	return listed;
}

/* The worklist: most time in functions without names first, then most samples with any. */
static int compare_listed(const void *left, const void *right)
{
	const struct listed *a = left, *b = right;

	if (a->nameless_share != b->nameless_share)
		return a->nameless_share < b->nameless_share ? 1 : -1;
	if (a->share != b->share)
		return a->share < b->share ? 1 : -1;
	return strcmp(a->row->name, b->row->name);
}

static const char *state_text(enum module_state state)
{
#define STATE_TEXT(name_, meaning_) #name_,
	static const char *const texts[] = {MODULE_STATES(STATE_TEXT)};
#undef STATE_TEXT

	return state < MODULE_STATE_COUNT ? texts[state] : "";
}

static const char *quality_text(enum symbol_quality quality)
{
	static const char *const texts[] = {
		[QUALITY_NONE] = "none",       [QUALITY_KALLSYMS] = "kallsyms",
		[QUALITY_DYNSYM] = "dynsym",   [QUALITY_MINIDEBUG] = "minidebug",
		[QUALITY_PCLNTAB] = "pclntab", [QUALITY_SYMTAB] = "symtab",
		[QUALITY_DWARF] = "dwarf",
	};

	return quality < sizeof(texts) / sizeof(*texts) ? texts[quality] : "";
}

static const char *source_text(enum candidate_answer answer)
{
#define ANSWER_TEXT(name_, meaning_) #name_,
	static const char *const texts[] = {CANDIDATE_ANSWERS(ANSWER_TEXT)};
#undef ANSWER_TEXT

	return answer < CANDIDATE_ANSWER_COUNT ? texts[answer] : "";
}

/* As SQLite orders BLOBs. */
static int compare_ids(const struct build_id *left, const struct build_id *right)
{
	size_t length = left->length < right->length ? left->length : right->length;
	int order = memcmp(left->bytes, right->bytes, length);

	return order ? order : (int)left->length - (int)right->length;
}

static size_t first_answer(const struct answers *answers, const struct build_id *id)
{
	size_t low = 0, high = answers->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_ids(&answers->rows[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void put_sources(struct json *json, const struct answers *answers, const struct build_id *id)
{
	json_key(json, "sources");
	json_open(json, '[');
	for (size_t i = first_answer(answers, id); i < answers->count; i++) {
		const struct candidate_row *row = &answers->rows[i];

		if (!build_id_equal(&row->id, id))
			break;
		json_open(json, '{');
		json_key_string(json, "source", row->source);
		json_key_string(json, "answer", source_text(row->answer));
		json_key_string(json, "detail", row->detail);
		json_key_uint(json, "bytes", row->bytes);
		json_key_uint(json, "ms", row->ms);
		json_key_int(json, "at", row->at_ms);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* What the table could not have: enum symbol_table_flags. */
static void put_missing(struct json *json, const struct module_row *row)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} parts[] = {
		{SYMBOL_TABLE_DWO_MISSING, "dwo"},
		{SYMBOL_TABLE_ALT_MISSING, "alt"},
		{SYMBOL_TABLE_CUT, "cut"},
		{SYMBOL_TABLE_DAMAGED, "damaged"},
		{SYMBOL_TABLE_UNRELOCATED, "relocations"},
		{SYMBOL_TABLE_NO_INLINES, "inlines"},
	};

	json_key(json, "missing");
	json_open(json, '[');
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (row->quality != QUALITY_NONE && row->flags & parts[i].flag)
			json_string(json, parts[i].text);
	json_close(json, ']');
}

static void put_download(struct json *json, struct symbol_sources *sources,
			 const struct build_id *id)
{
	struct source_download now;

	if (!symbol_sources_download(sources, id, &now))
		return;
	json_key(json, "download");
	json_open(json, '{');
	json_key_string(json, "source", now.url);
	json_key_uint(json, "bytes", now.bytes);
	json_key_int(json, "ms", now.ms);
	json_close(json, '}');
}

static void put_module(struct json *json, struct api *api, const struct listed *listed,
		       const struct answers *answers)
{
	const struct module_row *row = listed->row;
	struct upload_usage uploaded = {0};
	char hex[BUILD_ID_HEX];

	json_open(json, '{');
	json_key_string(json, "build_id", build_id_format(&row->id, hex));
	json_key_string(json, "name", row->name);
	json_key_string(json, "state", state_text(row->state));
	json_key_string(json, "reason", row->reason);
	json_key_string(json, "source", row->source);
	json_key_string(json, "quality", quality_text(row->quality));
	put_missing(json, row);
	json_key(json, "nameless_share");
	json_share(json, listed->nameless_share);
	json_key_uint(json, "nameless_value", listed->nameless);
	json_key(json, "unsymbolized_share");
	json_share(json, listed->share);
	json_key_uint(json, "unsymbolized", listed->unsymbolized);
	json_key_uint(json, "samples", listed->samples);
	json_key_uint(json, "functions", row->functions);
	json_key_uint(json, "ranges", row->ranges);
	json_key_uint(json, "file_bytes", row->file_bytes);
	json_key_uint(json, "table_bytes", row->raw_bytes);
	json_key_uint(json, "packed_bytes", row->packed_bytes);
	if (row->is_uploaded)
		uploaded = symbolizer_uploaded(api->symbolizer, &row->id);
	json_key_uint(json, "uploaded_files", uploaded.files);
	json_key_uint(json, "uploaded_bytes", uploaded.bytes);
	json_key_int(json, "first_seen", row->first_seen_ms);
	json_key_int(json, "updated", row->updated_ms);
	json_key_int(json, "last_used", row->last_used_ms);
	json_key_int(json, "retry_at", row->retry_at_ms);
	json_key_uint(json, "fetch_ms", row->fetch_ms);
	json_key_uint(json, "conversion_ms", row->conversion_ms);
	json_key_uint(json, "working", row->is_working);
	if (row->is_working)
		put_download(json, symbolizer_sources(api->symbolizer), &row->id);
	put_sources(json, answers, &row->id);
	json_close(json, '}');
}

static bool list_modules(struct http_request *request, struct api *api, const struct shares *shares,
			 struct listed **listed, size_t *count, struct error *err)
{
	struct module_row *rows = NULL;

	if (!symbolizer_modules(api->symbolizer, http_request_arena(request), &rows, count, err))
		return false;
	*listed = arena_array(http_request_arena(request), *count, sizeof(**listed));
	if (!*listed)
		return error_set(err, ERROR_MEMORY, "out of memory; try again later");
	for (size_t i = 0; i < *count; i++)
		(*listed)[i] = listed_of(shares, &rows[i]);
	if (*count)
		qsort(*listed, *count, sizeof(**listed), compare_listed);
	return true;
}

/* How far the reading of --symbol-dir is. */
static void put_directories(struct json *json, struct symbol_directories *directories)
{
	struct symbol_directories_progress now;

	symbol_directories_progress(directories, &now);
	json_key(json, "symbol_dirs");
	json_open(json, '{');
	json_key_uint(json, "first_pass_done", now.first_pass_done);
	json_key_uint(json, "reading", now.is_reading);
	json_key_uint(json, "passes", now.passes);
	json_key_uint(json, "pass_ms", (uint64_t)now.pass_ms);
	json_key_uint(json, "read_at", now.read_at_ms);
	json_key_uint(json, "folders", now.folders);
	json_key_uint(json, "files", now.files);
	json_key_uint(json, "elf_files", now.elf_files);
	json_key_uint(json, "packages", now.packages);
	json_key_uint(json, "links", now.links);
	json_key_uint(json, "unreadable", now.unreadable);
	json_key_uint(json, "damaged", now.damaged);
	json_key_uint(json, "left_out", now.left_out);
	json_key_uint(json, "wrong_checksums", now.wrong_checksums);
	json_key_uint(json, "not_answering", now.not_answering);
	json_key_string(json, "last_refusal", now.last_refusal);
	json_close(json, '}');
}

/* Who is asked, in order. */
static void put_servers(struct json *json, struct symbol_sources *sources)
{
	struct source_state states[SOURCES_MAX];
	size_t count = symbol_sources_states(sources, states, SOURCES_MAX);

	json_key(json, "debuginfod");
	json_open(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(json, '{');
		json_key_string(json, "source", states[i].url);
		json_key_uint(json, "is_down", states[i].is_closed);
		json_key_string(json, "detail", states[i].sentence);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_uploads(struct json *json, struct symbolizer *symbolizer)
{
	struct symbolizer_counters now;

	symbolizer_counters(symbolizer, &now);
	json_key(json, "uploads");
	json_open(json, '{');
	json_key_uint(json, "files", now.upload_files);
	json_key_uint(json, "bytes", now.upload_bytes);
	json_key_uint(json, "limit_bytes", now.upload_limit_bytes);
	json_key_uint(json, "evicted_files", now.uploads_evicted);
	json_close(json, '}');
}

/* Of the list, which part. */
struct page {
	uint32_t offset, limit;
};

static bool put_modules(struct http_request *request, struct http_response *response,
			struct api *api, const struct shares *shares, const struct page *page,
			struct query_life *life, struct error *err)
{
	struct json json = json_start(&response->body);
	struct answers answers = {0};
	struct listed *listed = NULL;
	size_t count = 0;
	bool ok;

	arena_init(&answers.arena, CANDIDATES_BYTES_MAX);
	ok = list_modules(request, api, shares, &listed, &count, err) &&
	     symbolizer_candidates(api->symbolizer, &answers.arena, &answers.rows, &answers.count,
				   err);
	if (ok) {
		json_open(&json, '{');
		if (shares->cut)
			json_key_uint(&json, "cut_samples", shares->cut);
		json_key(&json, "modules");
		json_open(&json, '[');
		for (size_t i = page->offset; ok && i < count && i - page->offset < page->limit;
		     i++) {
			put_module(&json, api, &listed[i], &answers);
			ok = query_life_goes_on(life, err);
		}
		json_close(&json, ']');
		json_key_uint(&json, "total", count);
		put_uploads(&json, api->symbolizer);
		put_directories(&json, symbolizer_directories(api->symbolizer));
		put_servers(&json, symbolizer_sources(api->symbolizer));
		json_close(&json, '}');
		buffer_append_char(&response->body, '\n');
	}
	arena_release(&answers.arena);
	return ok;
}

struct naming {
	struct query_life *life;
	struct error *err;
};

static bool naming_goes_on(void *context)
{
	const struct naming *naming = context;

	return query_life_goes_on(naming->life, naming->err);
}

void api_modules_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct query query = {0};
	struct stack_view view = {.demangle = DEMANGLE_NONE};
	struct samples_result *result = NULL;
	struct named_stacks *stacks = NULL;
	struct shares shares = {0};
	struct error err = {0};
	struct naming naming = {NULL, &err};
	struct page page = {.limit = PAGE_DEFAULT};
	bool ok = false;

	if (!parameters_check(request, "type from until match limit offset", &err) ||
	    !parameter_uint(request, "limit", 1, PAGE_MOST, &page.limit, &err) ||
	    !parameter_uint(request, "offset", 0, UINT32_MAX, &page.offset, &err) ||
	    !parameters_query(request, false, &query, &err) ||
	    !(naming.life = query_life_start(request, &api->query_limits, &query, &err)))
		goto out;
	view.goes_on = naming_goes_on;
	view.context = &naming;
	result = query_run(api->samples, &query, &err);
	if (!result)
		goto out;
	stacks = named_stacks_new(result, api->symbolizer, &view, &err);
	if (!stacks)
		goto out;
	if (!shares_init(&shares, stacks, result)) {
		error_set(&err, ERROR_MEMORY, "out of memory; try again later");
		goto out;
	}
	ok = query_life_is_wanted(naming.life, &err) &&
	     put_modules(request, response, api, &shares, &page, naming.life, &err);
out:
	if (!ok)
		answer_failure(response, &err);
	hash_table_release(&shares.by_id);
	named_stacks_free(stacks);
	samples_result_free(result);
	selector_release(&query.selector);
}

/* ---- POST: an agent says what it has met, and hears what would help ---- */

/* "<hex> <gnu|htlhash> <name>" → id. */
static bool read_line(const char *line, size_t length, struct build_id *id, bool *is_gnu,
		      const char **name, size_t *name_length)
{
	const char *kind = memchr(line, ' ', length);
	const char *rest;
	size_t kind_length;

	if (!kind || !build_id_parse(id, line, (size_t)(kind - line)))
		return false;
	kind++;
	rest = memchr(kind, ' ', length - (size_t)(kind - line));
	kind_length = rest ? (size_t)(rest - kind) : length - (size_t)(kind - line);
	*is_gnu = kind_length == 3 && !memcmp(kind, "gnu", 3);
	if (!*is_gnu && (kind_length != 7 || memcmp(kind, "htlhash", 7)))
		return false;
	*name = rest ? rest + 1 : line + length;
	*name_length = length - (size_t)(*name - line);
	return true;
}

/* What the sender has of its modules, when it asks once and does not come back: a build. Such a
 * module has not been met in samples, and nothing is done about it here. */
enum { OFFER_NONE = 2 }; /* else enum module_file_kind */

static bool announce(struct api *api, const char *line, size_t length, unsigned offer,
		     struct arena *arena, struct buffer *wanted)
{
	char hex[BUILD_ID_HEX];
	struct build_id id;
	size_t name_length;
	const char *name;
	bool is_gnu;

	if (!read_line(line, length, &id, &is_gnu, &name, &name_length))
		return false;
	if (offer == OFFER_NONE) {
		name = arena_text(arena, name, name_length);
		symbolizer_want(api->symbolizer, &id, name, is_gnu, 0);
	}
	if (offer == OFFER_NONE ? symbolizer_wants_upload(api->symbolizer, &id)
				: symbolizer_lacks_file(api->symbolizer, &id, offer))
		buffer_printf(wanted, "%s\n", build_id_format(&id, hex));
	return true;
}

/* An agent announces some hundred at a time; all programs of a large build are some thousand. */
enum { ANNOUNCED_LINES = 10000 };

void api_modules_post(struct http_request *request, struct http_response *response, void *context)
{
	const char *type = http_request_header(request, "Content-Type");
	struct bytes body = http_request_body(request);
	const char *at = (const char *)body.at, *end = at + body.length;
	unsigned number = 1, offer = OFFER_NONE;
	struct error err = {0};

	if (!type || strncasecmp(type, "text/plain", 10)) {
		answer_error(response, 415, "Content-Type must be text/plain: one module per line");
		return;
	}
	if (!parameters_check(request, "offer", &err) ||
	    !parameter_choice(request, "offer", "debug|executable", &offer, &err)) {
		answer_failure(response, &err);
		return;
	}
	response->content_type = "text/plain; charset=utf-8";
	for (; at < end; number++) {
		if (number > ANNOUNCED_LINES) {
			buffer_clear(&response->body);
			answer_error(response, 413,
				     "more than 10000 modules in one request: send them in parts");
			return;
		}
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
		size_t used = length && at[length - 1] == '\r' ? length - 1 : length;

		if (used && !announce(context, at, used, offer, http_request_arena(request),
				      &response->body)) {
			error_set(&err, ERROR_OPTION,
				  "line %u is not '<build-id in hexadecimal> <gnu|htlhash> <name>'",
				  number);
			answer_failure(response, &err);
			return;
		}
		at += length + 1;
	}
}

/* ---- PUT: one file, as it arrives ---- */

struct put {
	struct symbol_upload *upload;
	struct error err;
};

static struct put *put_take(struct http_request *request, struct api *api)
{
	struct put *put = http_request_data(request);
	const char *length = http_request_header(request, "Content-Length");
	const char *part = http_request_part(request);
	struct build_id id;

	if (put)
		return put;
	put = arena_alloc(http_request_arena(request), sizeof(*put));
	if (!put)
		return NULL;
	http_request_set_data(request, put);
	if (!build_id_parse(&id, part, strlen(part)))
		error_set(&put->err, ERROR_FORMAT,
			  "'%.140s' in the path is not a build-id: 4 to 64 bytes in hexadecimal",
			  part);
	else
		put->upload = symbolizer_upload(api->symbolizer, &id,
						length ? strtoull(length, NULL, 10) : 0, &put->err);
	return put;
}

bool api_module_body(struct http_request *request, const void *bytes, size_t length, void *context)
{
	struct put *put = put_take(request, context);

	return put && put->upload && put->err.kind == ERROR_NONE &&
	       symbol_upload_write(put->upload, bytes, length, &put->err);
}

static int upload_status(const struct error *err)
{
	switch (err->kind) {
	case ERROR_LIMIT:
		return 413;
	case ERROR_CONFLICT:
		return 409;
	case ERROR_FORMAT:
	case ERROR_OPTION:
	case ERROR_UNSUPPORTED:
		return 422;
	default:
		return 503; /* disk, memory, too many at a time */
	}
}

void api_module_put(struct http_request *request, struct http_response *response, void *context)
{
	struct put *put = put_take(request, context);
	struct symbol_upload *upload;
	bool is_new = false;

	if (!put) {
		answer_error(response, 503, "out of memory; try again later");
		return;
	}
	upload = put->upload;
	if (upload && put->err.kind == ERROR_NONE) {
		put->upload = NULL; /* finish ends it in either case */
		symbol_upload_finish(upload, &is_new, &put->err);
	}
	if (put->err.kind != ERROR_NONE) {
		answer_error(response, upload_status(&put->err), put->err.message);
		if (error_is_no_room(&put->err))
			response->retry_after_s = RETRY_FULL_DISK_S;
		return;
	}
	response->status = is_new ? 201 : 200;
	answer_text(response, is_new ? "new or better: it will be used\n"
				     : "nothing new: what is here is as good\n");
}

void api_module_end(struct http_request *request, void *context)
{
	struct put *put = http_request_data(request);

	(void)context;
	if (put && put->upload)
		symbol_upload_abort(put->upload);
}

/* ---- POST …/fetch: somebody wants its names now ---- */

static bool read_id(const struct http_request *request, struct build_id *id, struct error *err)
{
	const char *part = http_request_part(request);

	return build_id_parse(id, part, strlen(part)) ||
	       error_set(err, ERROR_OPTION,
			 "'%.140s' in the path is not a build-id: 4 to 64 bytes in hexadecimal",
			 part);
}

void api_module_fetch(struct http_request *request, struct http_response *response, void *context)
{
	struct json json = json_start(&response->body);
	struct symbol_directories_progress directories;
	struct api *api = context;
	struct error err = {0};
	struct build_id id;

	if (!read_id(request, &id, &err) || !parameters_check(request, "", &err) ||
	    !symbolizer_ask_again(api->symbolizer, &id, &err)) {
		answer_failure(response, &err);
		return;
	}
	symbol_directories_progress(symbolizer_directories(api->symbolizer), &directories);
	response->status = 202;
	json_open(&json, '{');
	json_key_uint(&json, "has_symbol_dirs", directories.passes > 0 || directories.is_reading);
	put_servers(&json, symbolizer_sources(api->symbolizer));
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

/* ---- DELETE: what was uploaded, and the names made of it ---- */

void api_module_delete(struct http_request *request, struct http_response *response, void *context)
{
	struct json json = json_start(&response->body);
	struct module_deleted deleted;
	struct api *api = context;
	struct error err = {0};
	char hex[BUILD_ID_HEX];
	struct build_id id;

	if (read_id(request, &id, &err) && parameters_check(request, "", &err))
		symbolizer_forget_files(api->symbolizer, &id, &deleted, &err);
	if (err.kind != ERROR_NONE) {
		answer_failure(response, &err);
		return;
	}
	json_open(&json, '{');
	json_key_uint(&json, "deleted_files", deleted.files);
	json_key_uint(&json, "deleted_bytes", deleted.bytes);
	json_key_uint(&json, "deleted_tables", deleted.has_table);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
	log_info("module deleted on request",
		 "peer=%s module=\"%s\" build_id=%s files=%u bytes=%llu tables=%d",
		 http_request_peer(request), deleted.name, build_id_format(&id, hex), deleted.files,
		 (unsigned long long)deleted.bytes, deleted.has_table);
}
