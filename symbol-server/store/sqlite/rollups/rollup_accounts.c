/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts' accounts of a bucket, added up host by host. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/rollups/rollup_pass.h"

static struct packed_account *account_of(struct rollup_pass *pass, uint32_t host)
{
	if (host >= pass->account_room) {
		uint32_t larger = host + 65536;
		uint32_t *copy = realloc(pass->account_of, larger * sizeof *copy);

		if (!copy)
			return NULL;
		memset(copy + pass->account_room, 0, (larger - pass->account_room) * sizeof *copy);
		pass->account_of = copy;
		pass->account_room = larger;
	}
	if (pass->account_of[host])
		return &pass->accounts_found[pass->account_of[host] - 1];
	if (!ARRAY_GROW(pass->accounts_found, pass->account_count, pass->account_capacity))
		return NULL;
	pass->accounts_found[pass->account_count] = (struct packed_account){.host = host};
	pass->account_of[host] = (uint32_t)++pass->account_count;
	return &pass->accounts_found[pass->account_count - 1];
}

static bool add_translated(struct rollup_pass *pass, const struct packed_account *account)
{
	struct packed_account *to = account_of(pass, account->host);

	if (to)
		account_add(to, account);
	return to;
}

static bool add_account(void *context, const struct packed_account *from)
{
	struct rollup_pass *pass = context;
	struct packed_account account = *from;

	if (from->host >= pass->mark.count[CATALOG_STRINGS])
		return true; /* refers to nothing */
	account.host = rollup_pass_string(pass, from->host);
	for (unsigned i = 0; i < account.lost_count; i++)
		account.lost[i].reason = account.lost[i].reason < pass->mark.count[CATALOG_STRINGS]
						 ? rollup_pass_string(pass, account.lost[i].reason)
						 : 0;
	return add_translated(pass, &account);
}

/* As it is in a roll-up already: numbers of "to". */
static bool add_own(void *context, const struct packed_account *account)
{
	const struct rollup_pass *pass = context;

	return account->host >= pass->to->items[CATALOG_STRINGS].count ||
	       add_translated(context, account);
}

static bool put_accounts(struct rollup_pass *pass, const struct rollup_target *target,
			 enum day_level level, uint64_t fold, struct error *err)
{
	sqlite3_stmt *put = pass->put_accounts;

	buffer_clear(&pass->data);
	for (size_t i = 0; i < pass->account_count; i++)
		account_encode(&pass->accounts_found[i], &pass->data);
	if (pass->data.failed)
		return error_set(err, ERROR_LIMIT, "accounts of a roll-up do not fit a row");
	DATABASE_BIND(put, 1, level, target->tenant, target->type, target->bucket, (int64_t)fold);
	sqlite3_bind_blob64(put, 6, pass->data.bytes, pass->data.length, SQLITE_STATIC);
	pass->rows++;
	return database_run(put, err);
}

static void forget_accounts(struct rollup_pass *pass)
{
	for (size_t i = 0; i < pass->account_count; i++)
		pass->account_of[pass->accounts_found[i].host] = 0;
	pass->account_count = 0;
}

static bool add_entries(sqlite3_stmt *statement, packed_account_fn *fn, struct rollup_pass *pass,
			struct error *err)
{
	bool ok = true;

	while (database_row(statement, &ok, err)) {
		const void *data = sqlite3_column_blob(statement, 0);

		ok = account_each(data, (size_t)sqlite3_column_bytes(statement, 0), fn, pass) ||
		     error_set(err, ERROR_FORMAT, "accounts of a minute are damaged");
	}
	sqlite3_reset(statement);
	return ok;
}

/* The hour's accounts get what this bucket of it brought, in one row of fold 1. */
static bool add_to_hour(struct rollup_pass *pass, const struct rollup_target *from,
			struct error *err)
{
	struct rollup_target hour = {from->tenant, from->type, from->bucket / 60 * 60};
	sqlite3_stmt *get = pass->get_accounts;

	DATABASE_BIND(get, 1, DAY_1H, hour.tenant, hour.type, hour.bucket);
	return add_entries(get, add_own, pass, err) && put_accounts(pass, &hour, DAY_1H, 1, err);
}

static bool roll_accounts(struct rollup_pass *pass, const struct rollup_target *target,
			  uint32_t first, uint32_t end, struct error *err)
{
	sqlite3_stmt *accounts = pass->accounts;
	bool ok;

	DATABASE_BIND(accounts, 1, target->tenant, target->type, first, end, (int64_t)pass->above);
	ok = add_entries(accounts, add_account, pass, err);
	if (ok && pass->account_count)
		ok = put_accounts(pass, target, pass->account_level, pass->through, err) &&
		     (!pass->get_accounts || add_to_hour(pass, target, err));
	forget_accounts(pass);
	return ok;
}

bool rollup_pass_accounts(struct rollup_pass *pass, uint32_t first, uint32_t end, uint32_t to,
			  struct error *err)
{
	struct rollup_target target = {.bucket = to};

	while (rollup_pass_next_type(pass->account_types, &target, err))
		if (!roll_accounts(pass, &target, first, end, err))
			return false;
	return !err->kind;
}
