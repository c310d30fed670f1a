/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/upkeep/erase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/log.h"
#include "symbol-server/store/sqlite/dictionary/catalog_items.h"
#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/rollups/retention.h"
#include "symbol-server/store/sqlite/days/day_tables.h"

enum {
	DATA_BYTES_MAX = 256 << 20,
	RETRY_MS = 300000,
	SILENT_MS = 600000, /* an agent that reports is there again at once */
};

/* A context that no sample has any more may still tell of a process of which there are some. */
enum { UNUSED, USED, USED_OF_PROCESS };

static const struct text gone_host = {"[deleted]", 9}, deleted_reason = {"deleted", 7};

struct erasure {
	struct sqlite_samples *store;
	struct day *day;
	struct catalog *from, *to;
	uint8_t *used[CATALOG_KINDS], *used_nodes;
	uint8_t *has_deleted, *has_rest; /* by string: hosts in accounts */
	uint32_t reason, gone;           /* strings: "deleted", and the host that stands for them */
	uint32_t *gone_hosts, gone_count; /* strings */
	struct packed_account *accounts;  /* of one row */
	size_t account_count, account_capacity;
	bool is_bad;
};

bool erase_is_due(sqlite3 *db, struct error *err)
{
	return database_put_fact(db, "names_due", 1, err);
}

/* --- what is used --- */

static void use(struct erasure *erasure, enum catalog_kind kind, uint32_t n)
{
	if (n < erasure->from->items[kind].count)
		erasure->used[kind][n] = USED;
	else
		erasure->is_bad = true;
}

static bool use_pair(void *context, const struct packed_pair *pair)
{
	use(context, CATALOG_STRINGS, pair->thread);
	use(context, CATALOG_STACKS, pair->stack);
	return true;
}

static bool use_moment(void *context, const struct moment *moment)
{
	use(context, CATALOG_STRINGS, moment->thread);
	use(context, CATALOG_STACKS, moment->stack);
	return true;
}

static bool use_span(void *context, const struct span_sample *span)
{
	use(context, CATALOG_STRINGS, span->thread);
	use(context, CATALOG_STACKS, span->stack);
	return true;
}

/* LEB128 differences. */
static bool use_hosts(struct erasure *erasure, const uint8_t *at, size_t length)
{
	const uint8_t *end = length ? at + length : at; /* an empty BLOB is NULL */
	uint64_t host = 0, more;

	while (at < end) {
		if (!varint_read(&at, end, &more) || (host += more) > UINT32_MAX)
			return false;
		use(erasure, CATALOG_STRINGS, (uint32_t)host);
	}
	return true;
}

static bool use_account(void *context, const struct packed_account *account)
{
	struct erasure *erasure = context;
	uint32_t strings = erasure->from->items[CATALOG_STRINGS].count;

	if (account->host >= strings)
		return false;
	erasure->has_rest[account->host] |= account->samples > 0;
	for (unsigned i = 0; i < account->lost_count; i++) {
		use(erasure, CATALOG_STRINGS, account->lost[i].reason);
		if (account->lost[i].reason == erasure->reason && erasure->reason)
			erasure->has_deleted[account->host] = 1;
	}
	return true;
}

enum row_kind { ROW_PAIRS, ROW_MOMENTS, ROW_SPANS, ROW_ACCOUNTS };

/* Columns: data, series, hosts. */
static bool use_row(struct erasure *erasure, sqlite3_stmt *row, enum row_kind kind)
{
	const uint8_t *data = sqlite3_column_blob(row, 0);
	size_t length = (size_t)sqlite3_column_bytes(row, 0);

	if (kind == ROW_ACCOUNTS)
		return account_each(data, length, use_account, erasure);
	use(erasure, CATALOG_SERIES, (uint32_t)sqlite3_column_int64(row, 1));
	if (kind == ROW_MOMENTS)
		return moments_each(data, length, use_moment, erasure);
	if (kind == ROW_SPANS)
		return spans_each(data, length, use_span, erasure);
	return packed_each(data, length, use_pair, erasure) &&
	       use_hosts(erasure, sqlite3_column_blob(row, 2),
			 (size_t)sqlite3_column_bytes(row, 2));
}

static bool use_rows(struct erasure *erasure, sqlite3 *db, struct error *err)
{
	static const struct {
		const char *sql;
		enum row_kind kind;
	} tables[] = {
		{"SELECT data, series, x'' FROM samples", ROW_PAIRS},
		{"SELECT data, series, hosts FROM rollups", ROW_PAIRS},
		{"SELECT data, series FROM moments", ROW_MOMENTS},
		{"SELECT data, series FROM spans", ROW_SPANS},
		{"SELECT data FROM accounts", ROW_ACCOUNTS},
		{"SELECT data FROM rollup_accounts", ROW_ACCOUNTS},
	};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++) {
		sqlite3_stmt *statement = database_prepare(db, tables[i].sql, err);

		ok = statement;
		while (database_row(statement, &ok, err))
			if (!use_row(erasure, statement, tables[i].kind) || erasure->is_bad)
				ok = error_set(err, ERROR_FORMAT,
					       "a row refers to what is not defined");
		sqlite3_finalize(statement);
	}
	return ok;
}

static void use_module(struct erasure *erasure, uint32_t n)
{
	const struct catalog_module *module = catalog_module(erasure->from, n);

	use(erasure, CATALOG_MODULES, n);
	use(erasure, CATALOG_STRINGS, module->name);
	use(erasure, CATALOG_STRINGS, module->go_id);
}

static void use_location(struct erasure *erasure, uint32_t n)
{
	const struct catalog_location *location = catalog_location(erasure->from, n);

	if (erasure->used[CATALOG_LOCATIONS][n])
		return;
	use(erasure, CATALOG_LOCATIONS, n);
	use(erasure, CATALOG_STRINGS, location->function);
	use(erasure, CATALOG_STRINGS, location->file);
	use(erasure, CATALOG_STRINGS, location->type);
	if (location->module)
		use_module(erasure, location->module);
}

/* Callers are shared: whoever was met brought all above it. */
static void use_stack(struct erasure *erasure, uint32_t n)
{
	const struct catalog_stack *stack = catalog_stack(erasure->from, n);
	uint32_t at = stack->node;

	for (uint32_t i = 0; i < stack->depth && at && !erasure->used_nodes[at]; i++) {
		const struct catalog_node *node = catalog_node(erasure->from, at);

		erasure->used_nodes[at] = 1;
		use_location(erasure, node->location);
		at = node->caller;
	}
}

static void use_series(struct erasure *erasure, uint32_t n)
{
	const struct catalog_series *series = catalog_series(erasure->from, n);

	for (uint32_t i = 0; i < 2 * series->label_count; i++)
		use(erasure, CATALOG_STRINGS, series->labels[i]);
}

static bool is_gone(const struct erasure *erasure, uint32_t host)
{
	return erasure->has_deleted[host] && !erasure->has_rest[host];
}

/* What rows refer to brings what it is made of. */
static void use_rest(struct erasure *erasure)
{
	const struct catalog *from = erasure->from;

	for (uint32_t n = 1; n < from->items[CATALOG_STACKS].count; n++)
		if (erasure->used[CATALOG_STACKS][n] || n == CATALOG_OVERFLOW_STACK)
			use_stack(erasure, n);
	for (uint32_t n = 1; n < from->items[CATALOG_SERIES].count; n++)
		if (erasure->used[CATALOG_SERIES][n])
			use_series(erasure, n);
}

static bool use_lifetimes(struct erasure *erasure, struct error *err)
{
	const struct catalog *from = erasure->from;
	const uint32_t count = from->items[CATALOG_STRINGS].count;
	struct lifetimes *lifetimes = catalog_lifetimes_new(from, count);
	uint8_t *used = erasure->used[CATALOG_STRINGS];

	if (!lifetimes)
		return error_set(err, ERROR_MEMORY, "no memory for a day's processes");
	for (uint32_t n = 1; n < count; n++) {
		uint32_t teller = used[n] == USED ? lifetimes_teller(lifetimes,
								     catalog_string(from, n)->text)
						  : 0;

		if (teller && used[teller] == UNUSED)
			used[teller] = USED_OF_PROCESS;
	}
	lifetimes_free(lifetimes);
	return true;
}

/* --- accounts, whose hosts may go --- */

static bool keep_account(void *context, const struct packed_account *account)
{
	struct erasure *erasure = context;
	struct packed_account *to;

	if (!ARRAY_GROW(erasure->accounts, erasure->account_count, erasure->account_capacity))
		return false;
	to = &erasure->accounts[erasure->account_count++];
	*to = *account;
	if (is_gone(erasure, account->host))
		to->host = erasure->gone;
	else
		use(erasure, CATALOG_STRINGS, account->host);
	return true;
}

static bool encode_accounts(struct erasure *erasure, const void *data, size_t length,
			    struct buffer *out)
{
	erasure->account_count = 0;
	buffer_clear(out);
	if (!account_each(data, length, keep_account, erasure))
		return false;
	accounts_encode(erasure->accounts, erasure->account_count, out);
	return !out->failed;
}

/* data is the last of so many columns; the others are numbers. */
static bool copy_accounts(struct erasure *erasure, sqlite3 *db, const char *select,
			  const char *insert, struct error *err)
{
	sqlite3_stmt *get = database_prepare(db, select, err);
	sqlite3_stmt *put = get ? database_prepare_insert(db, insert, err) : NULL;
	int columns = sqlite3_column_count(get); /* data is the last */
	struct buffer data;
	bool ok = put;

	buffer_init(&data, DATA_BYTES_MAX);
	while (database_row(get, &ok, err)) {
		if (!encode_accounts(erasure, sqlite3_column_blob(get, columns - 1),
				     (size_t)sqlite3_column_bytes(get, columns - 1), &data))
			ok = error_set(err, ERROR_MEMORY, "no memory for accounts");
		for (int i = 0; ok && i + 1 < columns; i++)
			sqlite3_bind_int64(put, i + 1, sqlite3_column_int64(get, i));
		if (ok)
			sqlite3_bind_blob64(put, columns, data.bytes, data.length, SQLITE_STATIC);
		ok = ok && database_run(put, err);
	}
	buffer_release(&data);
	sqlite3_finalize(get);
	sqlite3_finalize(put);
	return ok;
}

/* --- the dictionary without what is not used --- */

static bool put_string(struct erasure *erasure, uint32_t n)
{
	const struct catalog_string *string = catalog_string(erasure->from, n);
	char told[CONTEXT_BYTES_MAX] = "";

	if (erasure->used[CATALOG_STRINGS][n] == USED)
		return catalog_put_string(erasure->to, string->text, string->length);
	if (erasure->used[CATALOG_STRINGS][n] == USED_OF_PROCESS)
		lifetime_reduce(string->text, told);
	return catalog_put_string(erasure->to, told, (uint32_t)strlen(told));
}

static bool put_module(struct erasure *erasure, uint32_t n)
{
	static const struct catalog_module none;

	return catalog_put_module(erasure->to, erasure->used[CATALOG_MODULES][n]
						       ? catalog_module(erasure->from, n)
						       : &none);
}

static bool put_location(struct erasure *erasure, uint32_t n)
{
	static const struct catalog_location none = {.kind = LOCATION_ANONYMOUS};

	return catalog_put_location(erasure->to, erasure->used[CATALOG_LOCATIONS][n]
							 ? catalog_location(erasure->from, n)
							 : &none);
}

static bool put_stack(struct erasure *erasure, uint32_t n)
{
	const struct catalog_stack *stack = catalog_stack(erasure->from, n);
	uint32_t locations[SAMPLES_DEPTH_MAX] = {0};
	static const uint64_t none[2];

	if (!erasure->used[CATALOG_STACKS][n] && n != CATALOG_OVERFLOW_STACK)
		return catalog_put_stack(erasure->to, none, locations, 0);
	catalog_stack_locations(erasure->from, stack, locations);
	return catalog_put_stack(erasure->to, stack->hash, locations, stack->depth);
}

static bool put_series(struct erasure *erasure, uint32_t n)
{
	const struct catalog_series *series = catalog_series(erasure->from, n);
	bool is_used = erasure->used[CATALOG_SERIES][n];

	return catalog_put_series(erasure->to, series->tenant, series->labels,
				  is_used ? series->label_count : 0);
}

/* What is defined after the last one that is used goes wholly. */
static uint32_t end_of(const struct erasure *erasure, unsigned kind)
{
	uint32_t end = erasure->from->items[kind].count;

	while (end > 1 && !erasure->used[kind][end - 1])
		end--;
	return end;
}

static bool make_dictionary(struct erasure *erasure, struct error *err)
{
	static bool (*const put[CATALOG_KINDS])(struct erasure *, uint32_t) = {
		put_string, put_module, put_location, put_stack, put_series};
	bool ok = true;

	erasure->to = catalog_new();
	if (erasure->to)
		erasure->to->is_indexed = false;
	for (unsigned kind = 0; erasure->to && kind < CATALOG_KINDS; kind++)
		for (uint32_t n = erasure->to->items[kind].count, end = end_of(erasure, kind);
		     ok && n < end; n++)
			ok = put[kind](erasure, n);
	return (ok && erasure->to) ||
	       error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
}

static bool put_definitions(struct erasure *erasure, sqlite3 *db, struct error *err)
{
	struct catalog_mark from = {0}, to = catalog_mark(erasure->to);
	struct day_writer writer = {.db = db};
	bool ok;

	buffer_init(&writer.data, DATA_BYTES_MAX);
	writer.put_definitions = database_prepare_insert(db, "INSERT OR REPLACE " INTO_DEFINITIONS,
							 err);
	ok = writer.put_definitions &&
	     day_writer_definitions(&writer, erasure->to, &from, &to, err);
	sqlite3_finalize(writer.put_definitions);
	buffer_release(&writer.data);
	return ok;
}

/* --- a file --- */

/* The old one is attached as old, in a transaction. */
static bool copy_used(sqlite3 *db, void *context, struct error *err)
{
	struct erasure *erasure = context;

	return database_exec(db,
			     "DELETE FROM rollup_marks;"
			     "INSERT OR REPLACE INTO facts (name, value) SELECT name, value "
			     "FROM old.facts WHERE name <> 'names_due'",
			     err) &&
	       database_exec(db,
			     COPY_SAMPLES COPY_ROLLUPS COPY_ROLLUP_MARKS COPY_MOMENTS COPY_SPANS,
			     err) &&
	       copy_accounts(erasure, db, "SELECT " ACCOUNTS_COLUMNS " FROM old.accounts",
			     "INSERT " INTO_ACCOUNTS, err) &&
	       copy_accounts(erasure, db,
			     "SELECT " ROLLUP_ACCOUNTS_COLUMNS " FROM old.rollup_accounts",
			     "INSERT " INTO_ROLLUP_ACCOUNTS, err) &&
	       make_dictionary(erasure, err) && put_definitions(erasure, db, err);
}

static bool make_room(struct erasure *erasure, struct error *err)
{
	const struct catalog *from = erasure->from;
	bool ok = true;

	for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
		ok &= (erasure->used[kind] = calloc(from->items[kind].count + 1, 1)) != NULL;
	erasure->used_nodes = calloc(from->nodes.count + 1, 1);
	erasure->has_deleted = calloc(from->items[CATALOG_STRINGS].count + 1, 1);
	erasure->has_rest = calloc(from->items[CATALOG_STRINGS].count + 1, 1);
	return (ok && erasure->used_nodes && erasure->has_deleted && erasure->has_rest) ||
	       error_set(err, ERROR_MEMORY, "no memory to write a day's file anew");
}

static bool read_file(struct erasure *erasure, const char *path, struct error *err)
{
	struct day_reader *reader;
	uint64_t folded;
	sqlite3 *db = day_file_create(path, err); /* migrated, all tables are there */
	bool ok = db;

	database_close(db);
	reader = ok ? day_reader_open(path, err) : NULL;
	erasure->from = catalog_new();
	ok = reader && day_reader_begin(reader, &folded, err);
	if (ok && !erasure->from)
		ok = error_set(err, ERROR_MEMORY, "no memory for a day's dictionary");
	if (ok) {
		ok = day_reader_catalog(reader, erasure->from, err);
		erasure->reason = ok ? catalog_add_string(erasure->from, deleted_reason) : 0;
		erasure->gone = ok ? catalog_add_string(erasure->from, gone_host) : 0;
		ok = ok && make_room(erasure, err) && use_rows(erasure, reader->db, err);
		day_reader_end(reader);
	}
	day_reader_close(reader);
	if (!ok)
		return false;
	use_rest(erasure);
	use(erasure, CATALOG_STRINGS, erasure->gone);
	return use_lifetimes(erasure, err);
}

static void erasing_release(struct erasure *erasure)
{
	for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
		free(erasure->used[kind]);
	free(erasure->used_nodes);
	free(erasure->has_deleted);
	free(erasure->has_rest);
	free(erasure->accounts);
	free(erasure->gone_hosts);
	catalog_release(erasure->from);
	catalog_release(erasure->to);
}

/* Nothing refers to what only the dictionary in memory has, which is read again. */
static bool may_take_name(struct sqlite_samples *store, struct day *day)
{
	return day->is_month || ((!day->catalog || catalog_is_persisted(day->catalog)) &&
				 retention_is_quiet(store, day, store_now_ms()));
}

static struct catalog *took_name(struct sqlite_samples *store, struct day *day)
{
	day->names_due = false;
	return store_take_dictionary(store, day);
}

/* --- agents --- */

/* A dictionary has many strings, and few of them are hosts that went. */
static bool list_gone(struct erasure *erasure)
{
	uint32_t strings = erasure->from->items[CATALOG_STRINGS].count;

	for (uint32_t n = 1; n < strings; n++)
		erasure->gone_count += is_gone(erasure, n);
	erasure->gone_hosts = calloc((size_t)erasure->gone_count + 1, sizeof(uint32_t));
	for (uint32_t n = 1, i = 0; erasure->gone_hosts && n < strings; n++)
		if (is_gone(erasure, n))
			erasure->gone_hosts[i++] = n;
	return erasure->gone_hosts;
}

static bool forgets_host(void *context, const char *host)
{
	const struct erasure *erasure = context;

	for (uint32_t i = 0; i < erasure->gone_count; i++)
		if (!strcmp(catalog_string(erasure->from, erasure->gone_hosts[i])->text, host))
			return true;
	return false;
}

static void forget_agents(struct erasure *erasure, int64_t now_ms)
{
	struct sqlite_samples *store = erasure->store;
	struct error err = {0};

	if (!list_gone(erasure)) {
		log_warn("agents of deleted hosts are not forgotten", "reason=\"%s\"", "no memory");
		return;
	}
	if (!erasure->gone_count)
		return;
	pthread_mutex_lock(&store->lock);
	agent_table_forget(&store->agents, now_ms - SILENT_MS, forgets_host, erasure);
	pthread_mutex_unlock(&store->lock);
	if (!state_file_forget(store->state, now_ms - SILENT_MS, forgets_host, erasure, &err))
		log_warn("agents of deleted hosts are not forgotten", "reason=\"%s\"", err.message);
}

static bool erase_file(struct sqlite_samples *store, struct day *day, int64_t now_ms)
{
	struct erasure erasure = {.store = store, .day = day};
	char path[4096], new_path[4200];
	struct error err = {0};
	bool ok;

	store_day_path(store, day, path, sizeof path);
	snprintf(new_path, sizeof new_path, "%s.new", path);
	ok = read_file(&erasure, path, &err) &&
	     retention_write_new(path, new_path, copy_used, &erasure, &err) &&
	     retention_take_name(store, day, new_path, path, may_take_name, took_name, &err);
	if (ok) {
		log_fault_over(&store->not_erased,
			       "file not written anew without what was deleted");
		log_info("file written anew without what was deleted", "path=\"%s\"", path);
		forget_agents(&erasure, now_ms);
	} else {
		retention_unlink(new_path);
		if (err.kind != ERROR_BUSY)
			day->erase_retry_ms = now_ms + RETRY_MS;
		if (err.kind != ERROR_BUSY)
			log_fault_write(&store->not_erased, 0, LOG_ERROR,
					"file not written anew without what was deleted",
					"path=\"%s\" reason=\"%s\"", path, err.message);
	}
	erasing_release(&erasure);
	return ok;
}

/* From this one on, days before months. */
static struct day *find_due(struct sqlite_samples *store, unsigned *at, int64_t now_ms)
{
	struct day *found = NULL, *day;

	store_lock_all(store);
	for (; !found && !store->days.deletions && (day = store_day_at(store, *at)); ++*at)
		if (day->names_due && day->has_file && day->erase_retry_ms <= now_ms &&
		    (day->is_month || retention_is_quiet(store, day, now_ms)))
			found = day;
	store_unlock_all(store);
	return found;
}

void erase_turn(struct sqlite_samples *store, int64_t now_ms)
{
	unsigned at = 0;
	struct day *day;

	while (!store->is_closing && (day = find_due(store, &at, now_ms)))
		erase_file(store, day, now_ms);
}
