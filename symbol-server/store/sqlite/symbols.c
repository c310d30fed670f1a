/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/embedded.h"
#include "symbol-server/store/sqlite/database.h"

#define NAME_OF(name_, meaning_) #name_,
static const char *const state_names[] = {MODULE_STATES(NAME_OF)};
static const char *const answer_names[] = {CANDIDATE_ANSWERS(NAME_OF)};

#define MODULE_COLUMNS                                                                           \
	"id, name, state, quality, reason, source, raw_bytes, packed_bytes, functions, ranges, " \
	"retry_at, first_seen, updated, failures, is_uploaded, flags, converter, files, "        \
	"file_bytes, fetch_ms, conversion_ms, last_used, is_dropped, is_gnu"

#define CANDIDATE_COLUMNS "id, side, source, answer, detail, bytes, ms, at"

enum { GIVEN_BACK_PAGES = 1024 }; /* at a time: 8 MB */

enum { /* statements */
       GET_MODULE,
       LIST_MODULES,
       PUT_MODULE,
       GET_ALIAS,
       PUT_ALIAS,
       PUT_TABLE,
       DROP_TABLE,
       LIST_CANDIDATES,
       DROP_CANDIDATES,
       PUT_CANDIDATE,
       JUDGE_CANDIDATE,
       STATEMENTS,
};

#define GET_ALIAS_TEXT "SELECT id FROM aliases WHERE tenant = 1 AND alias = ?"

static const char *const texts[STATEMENTS] = {
	[GET_MODULE] = "SELECT " MODULE_COLUMNS " FROM modules WHERE tenant = 1 AND id = ?",
	[LIST_MODULES] = "SELECT " MODULE_COLUMNS " FROM modules WHERE tenant = 1 ORDER BY id",
	[PUT_MODULE] = "INSERT OR REPLACE INTO modules (" MODULE_COLUMNS ")",
	[GET_ALIAS] = GET_ALIAS_TEXT,
	[PUT_ALIAS] = "INSERT OR REPLACE INTO aliases (alias, id)",
	[PUT_TABLE] = "INSERT OR REPLACE INTO tables (id, format, data)",
	[DROP_TABLE] = "DELETE FROM tables WHERE tenant = 1 AND id = ?",
	[LIST_CANDIDATES] = "SELECT " CANDIDATE_COLUMNS
			    " FROM candidates WHERE tenant = 1 ORDER BY id, side, number",
	[DROP_CANDIDATES] = "DELETE FROM candidates WHERE tenant = 1 AND id = ? AND side = ?",
	[PUT_CANDIDATE] = "INSERT INTO candidates (" CANDIDATE_COLUMNS ", number)",
	[JUDGE_CANDIDATE] = "UPDATE candidates SET answer = ?, detail = ? WHERE tenant = 1 AND "
			    "id = ? AND side = ? AND source = ? AND answer = 'found'",
};

/* Two connections, each behind a lock: who loads a table for a query does not wait for one that is
 * being written. */
struct symbols_store {
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];

	pthread_mutex_t read_lock;
	sqlite3 *reader;
	sqlite3_stmt *read_alias, *read_table;
};

static const char *const migrations[] = {embedded_symbols_0001_sql, embedded_symbols_0002_sql,
					 NULL};
const struct database_schema symbols_schema = {APPLICATION_SYMBOLS, migrations, .gives_back = true,
					       .is_made_anew = true};

static bool open_writer(struct symbols_store *store, const char *path, struct error *err)
{
	store->db = database_open(path, &symbols_schema, err);
	/* Tables are made anew from their files; uploads are files too. */
	if (!store->db && err->kind == ERROR_FORMAT) {
		database_set_aside(path, err->message);
		*err = (struct error){0};
		store->db = database_open(path, &symbols_schema, err);
	}
	for (int i = 0; store->db && i < STATEMENTS; i++) {
		store->statements[i] = (strncmp(texts[i], "INSERT", 6) ? database_prepare
								       : database_prepare_insert)(
			store->db, texts[i], err);
		if (!store->statements[i])
			return false;
	}
	return store->db != NULL;
}

static bool open_reader(struct symbols_store *store, const char *path, struct error *err)
{
	static const char table[] = "SELECT rowid, format FROM tables WHERE tenant = 1 AND id = ?";

	store->reader = database_open_reader(path, &symbols_schema, err);
	if (!store->reader)
		return false;
	store->read_alias = database_prepare(store->reader, GET_ALIAS_TEXT, err);
	store->read_table = database_prepare(store->reader, table, err);
	return store->read_alias && store->read_table;
}

struct symbols_store *symbols_open(const char *directory, struct error *err)
{
	struct symbols_store *store = calloc(1, sizeof *store);
	struct error own = {0};
	char path[4096];

	if (!err)
		err = &own;
	if (!store) {
		error_set(err, ERROR_MEMORY, "no memory for the symbol store");
		return NULL;
	}
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->read_lock, NULL);
	snprintf(path, sizeof path, "%s/symbols.db", directory);
	if (open_writer(store, path, err) && open_reader(store, path, err))
		return store;
	symbols_close(store);
	return NULL;
}

void symbols_close(struct symbols_store *store)
{
	if (!store)
		return;
	sqlite3_finalize(store->read_alias);
	sqlite3_finalize(store->read_table);
	database_close(store->reader);
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(store->statements[i]);
	database_close(store->db);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->read_lock);
	free(store);
}

static void bind_id(sqlite3_stmt *statement, int column, const struct build_id *id)
{
	sqlite3_bind_blob(statement, column, id->bytes, id->length, SQLITE_TRANSIENT);
}

static bool column_id(sqlite3_stmt *statement, int column, struct build_id *id)
{
	const void *bytes = sqlite3_column_blob(statement, column);

	return build_id_set(id, bytes, (size_t)sqlite3_column_bytes(statement, column));
}

static enum module_state state_of(const char *name)
{
	for (int i = 0; name && i < MODULE_STATE_COUNT; i++)
		if (!strcmp(state_names[i], name))
			return i;
	return MODULE_wanted;
}

static const char *column_text(sqlite3_stmt *statement, int column, struct arena *arena)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return arena_text(arena, text ? text : "", text ? strlen(text) : 0);
}

static bool read_row(sqlite3_stmt *statement, struct arena *arena, void *to)
{
	struct module_row *row = to;

	memset(row, 0, sizeof *row);
	if (!column_id(statement, 0, &row->id))
		return false;
	row->name = column_text(statement, 1, arena);
	row->state = state_of((const char *)sqlite3_column_text(statement, 2));
	row->quality = symbol_quality_of(sqlite3_column_int64(statement, 3));
	if (row->quality == QUALITY_COUNT)
		row->quality = QUALITY_NONE;
	row->reason = column_text(statement, 4, arena);
	row->source = column_text(statement, 5, arena);
	row->raw_bytes = (uint64_t)sqlite3_column_int64(statement, 6);
	row->packed_bytes = (uint64_t)sqlite3_column_int64(statement, 7);
	row->functions = (uint32_t)sqlite3_column_int64(statement, 8);
	row->ranges = (uint32_t)sqlite3_column_int64(statement, 9);
	row->retry_at_ms = sqlite3_column_int64(statement, 10);
	row->first_seen_ms = sqlite3_column_int64(statement, 11);
	row->updated_ms = sqlite3_column_int64(statement, 12);
	row->failures = (uint32_t)sqlite3_column_int64(statement, 13);
	row->is_uploaded = sqlite3_column_int(statement, 14);
	row->flags = (uint32_t)sqlite3_column_int64(statement, 15);
	row->converter = (uint32_t)sqlite3_column_int64(statement, 16);
	row->files = (uint64_t)sqlite3_column_int64(statement, 17);
	row->file_bytes = (uint64_t)sqlite3_column_int64(statement, 18);
	row->fetch_ms = (uint32_t)sqlite3_column_int64(statement, 19);
	row->conversion_ms = (uint32_t)sqlite3_column_int64(statement, 20);
	row->last_used_ms = sqlite3_column_int64(statement, 21);
	row->is_dropped = sqlite3_column_int(statement, 22);
	row->is_gnu = sqlite3_column_int(statement, 23);
	return row->name && row->reason && row->source;
}

/* The id itself, or what it is an alias of. Under the statement's lock. */
static bool resolve(sqlite3_stmt *statement, const struct build_id *id, struct build_id *found,
		    struct error *err)
{
	bool ok, has_row;

	*found = *id;
	bind_id(statement, 1, id);
	ok = database_next(statement, &has_row, err);
	if (ok && has_row && !column_id(statement, 0, found))
		*found = *id;
	sqlite3_reset(statement);
	return ok;
}

static bool get_module(struct symbols_store *store, const struct build_id *id, struct arena *arena,
		       struct module_row *row, struct error *err)
{
	sqlite3_stmt *statement = store->statements[GET_MODULE];
	bool ok = false;
	int code;

	bind_id(statement, 1, id);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		ok = read_row(statement, arena, row) ||
		     error_set(err, arena->failed ? ERROR_LIMIT : ERROR_FORMAT,
			       "a row of symbols.db cannot be read");
	else if (code == SQLITE_DONE)
		error_set(err, ERROR_NOT_FOUND, "no such module");
	else
		database_error(store->db, "read", err);
	sqlite3_reset(statement);
	return ok;
}

bool symbols_module(struct symbols_store *store, const struct build_id *id, struct arena *arena,
		    struct module_row *row, struct error *err)
{
	struct build_id canonical;
	bool ok;

	pthread_mutex_lock(&store->lock);
	ok = resolve(store->statements[GET_ALIAS], id, &canonical, err) &&
	     get_module(store, &canonical, arena, row, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

/* Reads the statement's row; false: it is passed over. */
typedef bool read_fn(sqlite3_stmt *statement, struct arena *arena, void *row);

/* rows: the address of the list's pointer. */
static bool list_rows(struct symbols_store *store, unsigned which, read_fn *read, size_t row_bytes,
		      struct arena *arena, void *rows, size_t *count, struct error *err)
{
	sqlite3_stmt *statement = store->statements[which];
	uint8_t *list = NULL;
	size_t room = 0;
	bool ok = true;
	int code;

	*count = 0;
	pthread_mutex_lock(&store->lock);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (*count == room &&
		    !array_grow(arena, &list, row_bytes, *count + 1, &room, SIZE_MAX))
			break;
		*count += read(statement, arena, list + *count * row_bytes);
	}
	sqlite3_reset(statement);
	if (!arena->failed && code != SQLITE_DONE)
		ok = database_error(store->db, "read", err);
	pthread_mutex_unlock(&store->lock);
	memcpy(rows, &list, sizeof list);
	return arena->failed ? error_set(err, ERROR_LIMIT, "the list does not fit its room") : ok;
}

bool symbols_modules(struct symbols_store *store, struct arena *arena, struct module_row **rows,
		     size_t *count, struct error *err)
{
	return list_rows(store, LIST_MODULES, read_row, sizeof **rows, arena, rows, count, err);
}

static bool put_module(struct symbols_store *store, const struct module_row *row, struct error *err)
{
	sqlite3_stmt *statement = store->statements[PUT_MODULE];

	bind_id(statement, 1, &row->id);
	sqlite3_bind_text(statement, 2, row->name ? row->name : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 3,
			  row->state < MODULE_STATE_COUNT ? state_names[row->state] : "wanted", -1,
			  SQLITE_STATIC);
	sqlite3_bind_int(statement, 4, symbol_quality_numbers[row->quality]);
	sqlite3_bind_text(statement, 5, row->reason ? row->reason : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 6, row->source ? row->source : "", -1, SQLITE_TRANSIENT);
	DATABASE_BIND(statement, 7, (int64_t)row->raw_bytes, (int64_t)row->packed_bytes,
		      row->functions, row->ranges, row->retry_at_ms, row->first_seen_ms,
		      row->updated_ms, row->failures, row->is_uploaded, row->flags, row->converter,
		      (int64_t)row->files, (int64_t)row->file_bytes, row->fetch_ms,
		      row->conversion_ms, row->last_used_ms, row->is_dropped, row->is_gnu);
	return database_run(statement, err);
}

/* Commits what went well; otherwise nothing of it was. */
static bool end_transaction(struct symbols_store *store, bool ok, struct error *err)
{
	ok = ok && database_exec(store->db, "COMMIT", err);
	if (!ok)
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return ok;
}

bool symbols_put_modules(struct symbols_store *store, const struct module_row *rows, size_t count,
			 struct error *err)
{
	bool ok;

	pthread_mutex_lock(&store->lock);
	ok = database_exec(store->db, "BEGIN IMMEDIATE", err);
	for (size_t i = 0; ok && i < count; i++)
		ok = put_module(store, &rows[i], err);
	ok = end_transaction(store, ok, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

/* All rows of one table whose id is one of them: one look at the table, whatever it is ordered by.
 */
static bool drop_of(struct symbols_store *store, const char *table, const struct build_id *ids,
		    size_t count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct buffer text;
	bool ok = false;

	buffer_init(&text, 64 << 10);
	buffer_printf(&text, "DELETE FROM %s WHERE tenant = 1 AND id IN (?", table);
	for (size_t i = 1; i < count; i++)
		buffer_printf(&text, ",?");
	buffer_append(&text, ")", 2);
	if (!text.failed)
		statement = database_prepare(store->db, (const char *)text.bytes, err);
	else
		error_set(err, ERROR_MEMORY, "no memory to forget modules");
	for (size_t i = 0; statement && i < count; i++)
		bind_id(statement, (int)i + 1, &ids[i]);
	ok = statement && database_run(statement, err);
	sqlite3_finalize(statement);
	buffer_release(&text);
	return ok;
}

bool symbols_drop_modules(struct symbols_store *store, const struct build_id *ids, size_t count,
			  struct error *err)
{
	bool ok;

	if (!count)
		return true;
	pthread_mutex_lock(&store->lock);
	ok = database_exec(store->db, "BEGIN IMMEDIATE", err) &&
	     drop_of(store, "modules", ids, count, err) &&
	     drop_of(store, "aliases", ids, count, err) &&
	     drop_of(store, "candidates", ids, count, err);
	ok = end_transaction(store, ok, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

bool symbols_put_module(struct symbols_store *store, const struct module_row *row,
			struct error *err)
{
	return symbols_put_modules(store, row, 1, err);
}

/* ---- what the sources said ---- */

static bool put_candidate(struct symbols_store *store, const struct build_id *id,
			  enum candidate_side side, const struct candidate_row *row, size_t number,
			  struct error *err)
{
	sqlite3_stmt *statement = store->statements[PUT_CANDIDATE];

	bind_id(statement, 1, id);
	sqlite3_bind_int(statement, 2, side);
	sqlite3_bind_text(statement, 3, row->source, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 4, answer_names[row->answer], -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 5, row->detail, -1, SQLITE_TRANSIENT);
	DATABASE_BIND(statement, 6, (int64_t)row->bytes, row->ms, row->at_ms, (int64_t)number);
	return database_run(statement, err);
}

bool symbols_put_candidates(struct symbols_store *store, const struct build_id *id,
			    enum candidate_side side, const struct candidate_row *rows,
			    size_t count, struct error *err)
{
	sqlite3_stmt *statement = store->statements[DROP_CANDIDATES];
	bool ok;

	pthread_mutex_lock(&store->lock);
	bind_id(statement, 1, id);
	sqlite3_bind_int(statement, 2, side);
	ok = database_exec(store->db, "BEGIN IMMEDIATE", err) && database_run(statement, err);
	for (size_t i = 0; ok && i < count; i++)
		ok = put_candidate(store, id, side, &rows[i], i, err);
	ok = end_transaction(store, ok, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

bool symbols_judge_candidate(struct symbols_store *store, const struct build_id *id,
			     enum candidate_side side, const char *source,
			     enum candidate_answer answer, const char *detail, struct error *err)
{
	sqlite3_stmt *statement = store->statements[JUDGE_CANDIDATE];
	bool ok;

	pthread_mutex_lock(&store->lock);
	sqlite3_bind_text(statement, 1, answer_names[answer], -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, detail, -1, SQLITE_TRANSIENT);
	bind_id(statement, 3, id);
	sqlite3_bind_int(statement, 4, side);
	sqlite3_bind_text(statement, 5, source, -1, SQLITE_TRANSIENT);
	ok = database_run(statement, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

static bool read_candidate(sqlite3_stmt *statement, struct arena *arena, void *to)
{
	struct candidate_row *row = to;
	const char *answer = (const char *)sqlite3_column_text(statement, 3);

	memset(row, 0, sizeof *row);
	if (!column_id(statement, 0, &row->id))
		return false;
	row->side = (enum candidate_side)sqlite3_column_int(statement, 1);
	if (row->side >= CANDIDATE_SIDES)
		return false;
	row->source = column_text(statement, 2, arena);
	row->answer = CANDIDATE_not_found;
	for (int i = 0; answer && i < CANDIDATE_ANSWER_COUNT; i++)
		if (!strcmp(answer_names[i], answer))
			row->answer = i;
	row->detail = column_text(statement, 4, arena);
	row->bytes = (uint64_t)sqlite3_column_int64(statement, 5);
	row->ms = (uint32_t)sqlite3_column_int64(statement, 6);
	row->at_ms = sqlite3_column_int64(statement, 7);
	return row->source && row->detail;
}

bool symbols_candidates(struct symbols_store *store, struct arena *arena,
			struct candidate_row **rows, size_t *count, struct error *err)
{
	return list_rows(store, LIST_CANDIDATES, read_candidate, sizeof **rows, arena, rows, count,
			 err);
}

/* ---- aliases and tables ---- */

bool symbols_put_alias(struct symbols_store *store, const struct build_id *alias,
		       const struct build_id *id, struct error *err)
{
	sqlite3_stmt *statement = store->statements[PUT_ALIAS];
	bool ok = true;

	pthread_mutex_lock(&store->lock);
	if (!build_id_equal(alias, id)) {
		bind_id(statement, 1, alias);
		bind_id(statement, 2, id);
		ok = database_run(statement, err);
	}
	pthread_mutex_unlock(&store->lock);
	return ok;
}

bool symbols_put_table(struct symbols_store *store, const struct build_id *id, uint32_t format,
		       const void *bytes, size_t length, struct error *err)
{
	sqlite3_stmt *statement = store->statements[PUT_TABLE];
	bool ok;

	pthread_mutex_lock(&store->lock);
	bind_id(statement, 1, id);
	sqlite3_bind_int64(statement, 2, format);
	sqlite3_bind_blob64(statement, 3, bytes ? bytes : "", length, SQLITE_STATIC);
	ok = database_run(statement, err);
	sqlite3_clear_bindings(statement);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

bool symbols_drop_table(struct symbols_store *store, const struct build_id *id, struct error *err)
{
	bool ok;

	pthread_mutex_lock(&store->lock);
	bind_id(store->statements[DROP_TABLE], 1, id);
	ok = database_run(store->statements[DROP_TABLE], err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

static int free_pages(sqlite3 *db)
{
	sqlite3_stmt *statement = database_prepare(db, "PRAGMA freelist_count", NULL);
	int pages = 0;

	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		pages = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return pages;
}

bool symbols_give_back(struct symbols_store *store)
{
	char text[64];
	int before, after;

	snprintf(text, sizeof text, "PRAGMA incremental_vacuum(%d)", GIVEN_BACK_PAGES);
	pthread_mutex_lock(&store->lock);
	before = free_pages(store->db);
	database_exec(store->db, text, NULL);
	after = free_pages(store->db);
	pthread_mutex_unlock(&store->lock);
	return after > 0 && after < before;
}

/* A BLOB is read in place of being copied by SQLite first: tables have up to hundreds of MB. The
 * statement that found it is still open, so both see the same state of the file. */
static bool read_blob(sqlite3 *db, int64_t row, struct buffer *out, struct error *err)
{
	sqlite3_blob *blob = NULL;
	uint8_t *room = NULL;
	bool ok = false;
	int length = 0;

	if (sqlite3_blob_open(db, "main", "tables", "data", row, 0, &blob) != SQLITE_OK)
		return database_error(db, "read", err);
	length = sqlite3_blob_bytes(blob);
	room = buffer_reserve(out, (size_t)length);
	if (!room)
		error_set(err, ERROR_LIMIT, "a symbol table of %d bytes is over the limit", length);
	else if (sqlite3_blob_read(blob, room, length, 0) != SQLITE_OK)
		database_error(db, "read", err);
	else
		ok = true;
	if (ok)
		out->length += (size_t)length;
	sqlite3_blob_close(blob);
	return ok;
}

bool symbols_get_table(struct symbols_store *store, const struct build_id *id, uint32_t *format,
		       struct buffer *out, struct error *err)
{
	sqlite3_stmt *statement = store->read_table;
	struct build_id canonical;
	bool ok = false;
	int code;

	pthread_mutex_lock(&store->read_lock);
	if (!resolve(store->read_alias, id, &canonical, err)) {
		pthread_mutex_unlock(&store->read_lock);
		return false;
	}
	bind_id(statement, 1, &canonical);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*format = (uint32_t)sqlite3_column_int64(statement, 1);
		ok = read_blob(store->reader, sqlite3_column_int64(statement, 0), out, err);
	} else if (code == SQLITE_DONE) {
		error_set(err, ERROR_NOT_FOUND, "no symbol table of that module");
	} else {
		database_error(store->reader, "read", err);
	}
	sqlite3_reset(statement);
	pthread_mutex_unlock(&store->read_lock);
	return ok;
}
