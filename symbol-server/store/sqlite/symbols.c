/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/embedded.h"
#include "symbol-server/store/sqlite/database.h"

#define STATE_NAME(name_, meaning_) #name_,
static const char *const state_names[] = {MODULE_STATES(STATE_NAME)};

#define MODULE_COLUMNS                                                                           \
	"id, name, state, quality, reason, source, raw_bytes, packed_bytes, functions, ranges, " \
	"retry_at, first_seen, updated, failures, is_uploaded"

enum { /* statements */
       GET_MODULE,
       LIST_MODULES,
       PUT_MODULE,
       GET_ALIAS,
       PUT_ALIAS,
       GET_TABLE,
       PUT_TABLE,
       STATEMENTS,
};

static const char *const texts[STATEMENTS] = {
	[GET_MODULE] = "SELECT " MODULE_COLUMNS " FROM modules WHERE tenant = 1 AND id = ?",
	[LIST_MODULES] = "SELECT " MODULE_COLUMNS " FROM modules WHERE tenant = 1 ORDER BY id",
	[PUT_MODULE] = "INSERT OR REPLACE INTO modules (" MODULE_COLUMNS
		       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[GET_ALIAS] = "SELECT id FROM aliases WHERE tenant = 1 AND alias = ?",
	[PUT_ALIAS] = "INSERT OR REPLACE INTO aliases (alias, id) VALUES (?, ?)",
	[GET_TABLE] = "SELECT format, data FROM tables WHERE tenant = 1 AND id = ?",
	[PUT_TABLE] = "INSERT OR REPLACE INTO tables (id, format, data) VALUES (?, ?, ?)",
};

struct symbols_store { /* one connection behind one lock: calls are short and few */
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
};

struct symbols_store *symbols_open(const char *directory, struct error *err)
{
	static const char *const migrations[] = {embedded_symbols_0001_sql, NULL};
	static const struct database_schema schema = {APPLICATION_SYMBOLS, migrations};
	struct symbols_store *store = calloc(1, sizeof *store);
	char path[4096];

	if (!store) {
		error_set(err, ERROR_MEMORY, "no memory for the symbol store");
		return NULL;
	}
	pthread_mutex_init(&store->lock, NULL);
	snprintf(path, sizeof path, "%s/symbols.db", directory);
	store->db = database_open(path, &schema, err);
	/* Tables are made anew from their files; uploads are files too. */
	if (!store->db && err->kind == ERROR_FORMAT) {
		database_set_aside(path, err->message);
		*err = (struct error){0};
		store->db = database_open(path, &schema, err);
	}
	for (int i = 0; store->db && i < STATEMENTS; i++) {
		store->statements[i] = database_prepare(store->db, texts[i], err);
		if (!store->statements[i]) {
			symbols_close(store);
			return NULL;
		}
	}
	if (!store->db) {
		symbols_close(store);
		return NULL;
	}
	return store;
}

void symbols_close(struct symbols_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(store->statements[i]);
	database_close(store->db);
	pthread_mutex_destroy(&store->lock);
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

static bool read_row(sqlite3_stmt *statement, struct arena *arena, struct module_row *row)
{
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
	return row->name && row->reason && row->source;
}

/* The id itself, or what it is an alias of. Under the lock. */
static struct build_id resolve(struct symbols_store *store, const struct build_id *id)
{
	sqlite3_stmt *statement = store->statements[GET_ALIAS];
	struct build_id found = *id;

	bind_id(statement, 1, id);
	if (sqlite3_step(statement) == SQLITE_ROW && !column_id(statement, 0, &found))
		found = *id;
	sqlite3_reset(statement);
	return found;
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
	canonical = resolve(store, id);
	ok = get_module(store, &canonical, arena, row, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

static bool list_modules(struct symbols_store *store, struct arena *arena, struct module_row **rows,
			 size_t *count, struct error *err)
{
	sqlite3_stmt *statement = store->statements[LIST_MODULES];
	size_t capacity = 0;
	int code;

	*rows = NULL;
	*count = 0;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (*count == capacity) {
			struct module_row *larger = arena_array(arena, capacity ? capacity * 2 : 64,
								sizeof **rows);

			if (!larger)
				break;
			if (*count)
				memcpy(larger, *rows, *count * sizeof **rows);
			*rows = larger;
			capacity = capacity ? capacity * 2 : 64;
		}
		if (read_row(statement, arena, &(*rows)[*count]))
			++*count;
	}
	sqlite3_reset(statement);
	if (arena->failed)
		return error_set(err, ERROR_LIMIT, "the list of modules does not fit its room");
	return code == SQLITE_DONE || database_error(store->db, "read", err);
}

bool symbols_modules(struct symbols_store *store, struct arena *arena, struct module_row **rows,
		     size_t *count, struct error *err)
{
	bool ok;

	pthread_mutex_lock(&store->lock);
	ok = list_modules(store, arena, rows, count, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

bool symbols_put_module(struct symbols_store *store, const struct module_row *row,
			struct error *err)
{
	sqlite3_stmt *statement = store->statements[PUT_MODULE];
	bool ok;

	pthread_mutex_lock(&store->lock);
	bind_id(statement, 1, &row->id);
	sqlite3_bind_text(statement, 2, row->name ? row->name : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 3,
			  row->state < MODULE_STATE_COUNT ? state_names[row->state] : "wanted", -1,
			  SQLITE_STATIC);
	sqlite3_bind_int(statement, 4, symbol_quality_numbers[row->quality]);
	sqlite3_bind_text(statement, 5, row->reason ? row->reason : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 6, row->source ? row->source : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(statement, 7, (int64_t)row->raw_bytes);
	sqlite3_bind_int64(statement, 8, (int64_t)row->packed_bytes);
	sqlite3_bind_int64(statement, 9, row->functions);
	sqlite3_bind_int64(statement, 10, row->ranges);
	sqlite3_bind_int64(statement, 11, row->retry_at_ms);
	sqlite3_bind_int64(statement, 12, row->first_seen_ms);
	sqlite3_bind_int64(statement, 13, row->updated_ms);
	sqlite3_bind_int64(statement, 14, row->failures);
	sqlite3_bind_int(statement, 15, row->is_uploaded);
	ok = database_run(statement, err);
	pthread_mutex_unlock(&store->lock);
	return ok;
}

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

bool symbols_get_table(struct symbols_store *store, const struct build_id *id, uint32_t *format,
		       struct buffer *out, struct error *err)
{
	sqlite3_stmt *statement = store->statements[GET_TABLE];
	struct build_id canonical;
	bool ok = false;
	int code;

	pthread_mutex_lock(&store->lock);
	canonical = resolve(store, id);
	bind_id(statement, 1, &canonical);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*format = (uint32_t)sqlite3_column_int64(statement, 0);
		buffer_append(out, sqlite3_column_blob(statement, 1),
			      (size_t)sqlite3_column_bytes(statement, 1));
		ok = !out->failed ||
		     error_set(err, ERROR_LIMIT, "a symbol table of %d bytes is over the limit",
			       sqlite3_column_bytes(statement, 1));
	} else if (code == SQLITE_DONE) {
		error_set(err, ERROR_NOT_FOUND, "no symbol table of that module");
	} else {
		database_error(store->db, "read", err);
	}
	sqlite3_reset(statement);
	pthread_mutex_unlock(&store->lock);
	return ok;
}
