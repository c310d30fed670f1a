/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts' accounts of a bucket, added up host by host. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/rollups/rolling.h"

static struct packed_account *account_of(struct rolling *rolling, uint32_t host)
{
	if (host >= rolling->account_room) {
		uint32_t larger = host + 65536;
		uint32_t *copy = realloc(rolling->account_of, larger * sizeof *copy);

		if (!copy)
			return NULL;
		memset(copy + rolling->account_room, 0,
		       (larger - rolling->account_room) * sizeof *copy);
		rolling->account_of = copy;
		rolling->account_room = larger;
	}
	if (rolling->account_of[host])
		return &rolling->accounts_found[rolling->account_of[host] - 1];
	if (!ARRAY_GROW(rolling->accounts_found, rolling->account_count, rolling->account_capacity))
		return NULL;
	rolling->accounts_found[rolling->account_count] = (struct packed_account){.host = host};
	rolling->account_of[host] = (uint32_t)++rolling->account_count;
	return &rolling->accounts_found[rolling->account_count - 1];
}

static bool add_translated(struct rolling *rolling, const struct packed_account *account)
{
	struct packed_account *to = account_of(rolling, account->host);

	if (to)
		account_add(to, account);
	return to;
}

static bool add_account(void *context, const struct packed_account *from)
{
	struct rolling *rolling = context;
	struct packed_account account = *from;

	if (from->host >= rolling->mark.count[CATALOG_STRINGS])
		return true; /* refers to nothing */
	account.host = rolling_string(rolling, from->host);
	for (unsigned i = 0; i < account.lost_count; i++)
		account.lost[i].reason = account.lost[i].reason <
							 rolling->mark.count[CATALOG_STRINGS]
						 ? rolling_string(rolling, account.lost[i].reason)
						 : 0;
	return add_translated(rolling, &account);
}

/* As it is in a roll-up already: numbers of "to". */
static bool add_own(void *context, const struct packed_account *account)
{
	const struct rolling *rolling = context;

	return account->host >= rolling->to->items[CATALOG_STRINGS].count ||
	       add_translated(context, account);
}

static bool put_accounts(struct rolling *rolling, const struct rolling_target *target,
			 enum day_level level, uint64_t fold, struct error *err)
{
	sqlite3_stmt *put = rolling->put_accounts;

	buffer_clear(&rolling->data);
	for (size_t i = 0; i < rolling->account_count; i++)
		account_encode(&rolling->accounts_found[i], &rolling->data);
	if (rolling->data.failed)
		return error_set(err, ERROR_LIMIT, "accounts of a roll-up do not fit a row");
	DATABASE_BIND(put, 1, level, target->tenant, target->type, target->bucket, (int64_t)fold);
	sqlite3_bind_blob64(put, 6, rolling->data.bytes, rolling->data.length, SQLITE_STATIC);
	rolling->rows++;
	return database_run(put, err);
}

static void forget_accounts(struct rolling *rolling)
{
	for (size_t i = 0; i < rolling->account_count; i++)
		rolling->account_of[rolling->accounts_found[i].host] = 0;
	rolling->account_count = 0;
}

static bool add_entries(sqlite3_stmt *statement, packed_account_fn *fn, struct rolling *rolling,
			struct error *err)
{
	bool ok = true;
	int code = SQLITE_DONE;

	while (ok && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const void *data = sqlite3_column_blob(statement, 0);

		ok = account_each(data, (size_t)sqlite3_column_bytes(statement, 0), fn, rolling);
	}
	sqlite3_reset(statement);
	if (!ok)
		return error_set(err, ERROR_FORMAT, "accounts of a minute are damaged");
	return code == SQLITE_DONE || database_error(sqlite3_db_handle(statement), "read", err);
}

/* The hour's accounts get what this bucket of it brought, in one row of fold 1. */
static bool add_to_hour(struct rolling *rolling, const struct rolling_target *from,
			struct error *err)
{
	struct rolling_target hour = {from->tenant, from->type, from->bucket / 60 * 60};
	sqlite3_stmt *get = rolling->get_accounts;

	DATABASE_BIND(get, 1, DAY_1H, hour.tenant, hour.type, hour.bucket);
	return add_entries(get, add_own, rolling, err) &&
	       put_accounts(rolling, &hour, DAY_1H, 1, err);
}

static bool roll_accounts(struct rolling *rolling, const struct rolling_target *target,
			  uint32_t first, uint32_t end, struct error *err)
{
	sqlite3_stmt *accounts = rolling->accounts;
	bool ok;

	DATABASE_BIND(accounts, 1, target->tenant, target->type, first, end,
		      (int64_t)rolling->above);
	ok = add_entries(accounts, add_account, rolling, err);
	if (ok && rolling->account_count)
		ok = put_accounts(rolling, target, rolling->account_level, rolling->through, err) &&
		     (!rolling->get_accounts || add_to_hour(rolling, target, err));
	forget_accounts(rolling);
	return ok;
}

bool rolling_accounts(struct rolling *rolling, uint32_t first, uint32_t end, uint32_t to,
		      struct error *err)
{
	struct rolling_target target = {.bucket = to};

	while (rolling_next_type(rolling->account_types, &target, err))
		if (!roll_accounts(rolling, &target, first, end, err))
			return false;
	return !err->kind;
}
