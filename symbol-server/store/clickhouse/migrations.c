/* SPDX-License-Identifier: Apache-2.0 */
/* schema/store/clickhouse → tables. Several servers may do it at once: every statement is one that
 * does nothing when it was done before. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/embedded.h"
#include "symbol-server/store/clickhouse/samples_store.h"

enum { ATTEMPTS = 5, STATEMENT_MAX = 16 << 10, CODECS_SINCE = 20 };

struct migration {
	const char *alone, *cluster;
};

/* The position + 1 is the version. Those applied somewhere are never edited. */
static const struct migration migrations[] = {
	{embedded_clickhouse_samples_0001_sql, embedded_clickhouse_cluster_0001_sql},
	{embedded_clickhouse_samples_0002_sql, embedded_clickhouse_cluster_0002_sql},
	{embedded_clickhouse_samples_0003_sql, embedded_clickhouse_cluster_0003_sql},
	{embedded_clickhouse_samples_0004_sql, embedded_clickhouse_cluster_0004_sql},
};

enum { NEWEST = sizeof migrations / sizeof *migrations };

/* $database and $cluster are put in; comments are left out. */
static void put_statement(struct buffer *sql, const char *at, const char *end,
			  const struct clickhouse_address *address)
{
	while (at < end) {
		if (!strncmp(at, "--", 2)) {
			while (at < end && *at != '\n')
				at++;
		} else if (!strncmp(at, "$database", 9)) {
			buffer_append_text(sql, address->database);
			at += 9;
		} else if (!strncmp(at, "$cluster", 8)) {
			buffer_append_text(sql, address->cluster);
			at += 8;
		} else {
			buffer_append_char(sql, *at++);
		}
	}
}

static bool is_blank(const struct buffer *sql)
{
	for (size_t i = 0; i < sql->length; i++)
		if (!strchr(" \t\r\n", sql->bytes[i]))
			return false;
	return true;
}

static bool run_script(struct clickhouse *client, const char *script, bool goes_on,
		       struct error *err)
{
	struct buffer sql;
	bool ok = true;

	buffer_init(&sql, STATEMENT_MAX);
	while (ok && *script) {
		const char *end = strstr(script, ";\n");
		struct error why = {0};

		end = end ? end : script + strlen(script);
		buffer_clear(&sql);
		put_statement(&sql, script, end, clickhouse_address(client));
		script = *end ? end + 2 : end;
		if (is_blank(&sql))
			continue;
		buffer_append_char(&sql, '\0');
		ok = sql.failed
			     ? error_set(err, ERROR_LIMIT, "a statement of the schema is too long")
			     : clickhouse_run(client, (const char *)sql.bytes, &why);
		if (!ok && goes_on && why.kind == ERROR_REMOTE) {
			log_warn("ClickHouse refuses an improvement", "reason=\"%s\"", why.message);
			ok = true;
		} else if (!ok && !sql.failed && err) {
			*err = why;
		}
	}
	buffer_release(&sql);
	return ok;
}

static bool keep_number(void *context, struct row_reader *row)
{
	uint32_t number = (uint32_t)row_number(row, 4);

	if (!row->is_short)
		*(uint32_t *)context = number;
	return true;
}

static bool ask_number(struct clickhouse *client, const char *sql, uint32_t *number,
		       struct error *err)
{
	return clickhouse_ask(
		client,
		&(struct clickhouse_question){
			.sql = sql, .row = keep_number, .context = number, .total_s = 30},
		err);
}

static bool migrate_once(struct clickhouse *client, uint32_t engine, struct error *err)
{
	bool has_cluster = *clickhouse_address(client)->cluster;
	uint32_t version = 0, exists = 0;
	char sql[200];

	snprintf(sql, sizeof sql,
		 "SELECT toUInt32(count()) FROM system.tables WHERE database = '%s' "
		 "AND name = 'schema_migrations'",
		 clickhouse_address(client)->database);
	if (!ask_number(client, sql, &exists, err))
		return false;
	if (exists &&
	    !ask_number(client, "SELECT max(version) FROM schema_migrations", &version, err))
		return false;
	if (version > NEWEST)
		return error_set(err, ERROR_UNSUPPORTED,
				 "the tables in ClickHouse are of version %u, written by a newer "
				 "farflame-server; this one knows versions up to %u",
				 version, NEWEST);
	for (; version < NEWEST; version++) {
		const struct migration *migration = &migrations[version];

		if (!run_script(client, has_cluster ? migration->cluster : migration->alone, false,
				err))
			return false;
		if (!version && engine >= CODECS_SINCE && !has_cluster &&
		    !run_script(client, embedded_clickhouse_codecs_0001_sql, true, err))
			return false;
		snprintf(sql, sizeof sql, "INSERT INTO schema_migrations (version) VALUES (%u)",
			 version + 1);
		if (!clickhouse_run(client, sql, err))
			return false;
		log_info("ClickHouse has the tables", "version=%u database=%s", version + 1,
			 clickhouse_address(client)->database);
	}
	return true;
}

/* The right to make one may be missing where there is one already. */
static void make_database(struct clickhouse *client)
{
	const struct clickhouse_address *address = clickhouse_address(client);
	char sql[300];

	snprintf(sql, sizeof sql, "CREATE DATABASE IF NOT EXISTS %s%s%s", address->database,
		 *address->cluster ? " ON CLUSTER " : "", address->cluster);
	clickhouse_run_whole(client, sql, NULL);
}

bool clickhouse_migrate(struct clickhouse *client, struct error *err)
{
	uint32_t engine = 0;
	struct error why = {0};
	bool ok = false;

	make_database(client);
	if (!ask_number(client, "SELECT toUInt32(splitByChar('.', version())[1])", &engine, err))
		return false;
	/* Older versions may say that a table exists although it was asked not to mind. */
	for (int i = 0; i < ATTEMPTS && !ok && why.kind != ERROR_UNSUPPORTED; i++) {
		if (i)
			usleep(200000);
		why = (struct error){0};
		ok = migrate_once(client, engine, &why);
	}
	if (!ok && err)
		*err = why;
	return ok;
}
