/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/modules: every build-id, what is known of it, and what it costs in names. */
#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/api/sources_json.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/naming/named_stacks.h"
#include "symbol-server/symbolize/module_files.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"
#include "symbol-server/symbolize/symbol_table.h"

enum { CANDIDATES_BYTES_MAX = 512 << 20 };

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
	uint64_t hash = frame_name_hash(build_id_format(&row->id, hex));

	HASH_TABLE_EACH(at, &shares->by_id, hash) {
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
		return error_no_memory(err);
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
		sources_json_servers(&json, symbolizer_sources(api->symbolizer));
		json_close(&json, '}');
		buffer_append_char(&response->body, '\n');
	}
	arena_release(&answers.arena);
	return ok;
}

struct watch {
	struct query_life *life;
	struct error *err;
};

static bool watch_goes_on(void *context)
{
	const struct watch *watch = context;

	return query_life_goes_on(watch->life, watch->err);
}

void api_modules_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct parameters asked;
	struct query query = {0};
	struct stack_view view = {.demangle = DEMANGLE_NONE};
	struct samples_result *result = NULL;
	struct named_stacks *stacks = NULL;
	struct shares shares = {0};
	struct error err = {0};
	struct watch watch = {NULL, &err};
	struct page page = {0};
	bool ok = false;

	if (!parameters_open(&asked, request, ENDPOINT_modules, &err) ||
	    !parameter_number(&asked, "limit", &page.limit, &err) ||
	    !parameter_number(&asked, "offset", &page.offset, &err) ||
	    !parameters_query(&asked, &query, &err) ||
	    !(watch.life = query_life_start(request, &api->query_limits, &query, &err)))
		goto out;
	view.goes_on = watch_goes_on;
	view.context = &watch;
	result = query_run(api->samples, &query, &err);
	if (!result)
		goto out;
	stacks = named_stacks_new(result, api->symbolizer, &view, &err);
	if (!stacks)
		goto out;
	if (!shares_init(&shares, stacks, result)) {
		error_no_memory(&err);
		goto out;
	}
	ok = query_life_is_wanted(watch.life, &err) &&
	     put_modules(request, response, api, &shares, &page, watch.life, &err);
out:
	if (!ok)
		answer_failure(response, &err);
	hash_table_release(&shares.by_id);
	named_stacks_free(stacks);
	samples_result_free(result);
	selector_release(&query.selector);
}
