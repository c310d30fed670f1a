/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/rollups/rollup.h"

#include <stdlib.h>
#include <string.h>

/* --- sums by stack --- */

bool rollup_sums_init(struct rollup_sums *sums, uint32_t stacks)
{
	sums->room = stacks;
	sums->low = UINT32_MAX;
	sums->high = 0;
	sums->at = calloc(stacks, sizeof *sums->at);
	sums->touched = calloc(stacks / 64 + 1, sizeof *sums->touched);
	return sums->at && sums->touched;
}

void rollup_sums_release(struct rollup_sums *sums)
{
	free(sums->at);
	free(sums->touched);
	memset(sums, 0, sizeof *sums);
}

static bool keep_pair(struct rolling *rolling, size_t count, uint32_t stack,
		      const struct rollup_sum *sum)
{
	if (count == rolling->pair_capacity) {
		size_t larger = count ? count * 2 : 4096;
		struct packed_pair *copy = realloc(rolling->pairs, larger * sizeof *copy);

		if (!copy)
			return false;
		rolling->pairs = copy;
		rolling->pair_capacity = larger;
	}
	rolling->pairs[count] = (struct packed_pair){0, stack, sum->samples, sum->value};
	return true;
}

struct row_sums {
	size_t pairs;
	uint64_t samples, value;
};

/* Moves the sums to pairs, and adds them to others when there are any. */
static bool take_pairs(struct rolling *rolling, struct rollup_sums *sums,
		       struct rollup_sums *others, struct row_sums *row)
{
	*row = (struct row_sums){0};
	for (uint32_t word = sums->low; word < sums->high; word++) {
		uint64_t bits = sums->touched[word];

		sums->touched[word] = 0;
		for (; bits; bits &= bits - 1) {
			uint32_t stack = word * 64 + (uint32_t)__builtin_ctzll(bits);
			struct rollup_sum sum = sums->at[stack];

			sums->at[stack] = (struct rollup_sum){0};
			if (!keep_pair(rolling, row->pairs, stack, &sum))
				return false;
			row->pairs++;
			row->samples += sum.samples;
			row->value += sum.value;
			if (others)
				rollup_sums_add(others, stack, sum.samples, sum.value);
		}
	}
	sums->low = UINT32_MAX;
	sums->high = 0;
	return true;
}

/* --- rows --- */

struct target {
	uint32_t tenant, type, bucket;
};

static bool put_row(struct rolling *rolling, const struct target *target, enum day_level level,
		    uint32_t series, const struct row_sums *row, struct error *err)
{
	sqlite3_stmt *put = rolling->put;

	buffer_clear(&rolling->data);
	packed_encode(rolling->pairs, row->pairs, &rolling->data);
	if (rolling->data.failed)
		return error_set(err, ERROR_LIMIT, "a roll-up does not fit a row");
	sqlite3_bind_int64(put, 1, level);
	sqlite3_bind_int64(put, 2, target->tenant);
	sqlite3_bind_int64(put, 3, target->type);
	sqlite3_bind_int64(put, 4, target->bucket);
	sqlite3_bind_int64(put, 5, series);
	sqlite3_bind_int64(put, 6, (int64_t)rolling->through);
	sqlite3_bind_int64(put, 7, (int64_t)row->pairs);
	sqlite3_bind_int64(put, 8, (int64_t)row->samples);
	sqlite3_bind_int64(put, 9, (int64_t)row->value);
	sqlite3_bind_blob64(put, 10,
			    rolling->hosts_data.length ? (void *)rolling->hosts_data.bytes : "",
			    rolling->hosts_data.length, SQLITE_STATIC);
	sqlite3_bind_blob64(put, 11, rolling->data.bytes, rolling->data.length, SQLITE_STATIC);
	rolling->rows++;
	return database_run(put, err);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void encode_hosts(struct rolling *rolling)
{
	uint32_t previous = 0;

	buffer_clear(&rolling->hosts_data);
	if (rolling->host_count)
		qsort(rolling->hosts, rolling->host_count, sizeof *rolling->hosts, compare_numbers);
	for (size_t i = 0; i < rolling->host_count; i++) {
		if (rolling->hosts[i] == previous)
			continue;
		buffer_append_varint(&rolling->hosts_data, rolling->hosts[i] - previous);
		previous = rolling->hosts[i];
	}
	rolling->host_count = 0;
}

static bool keep_host(struct rolling *rolling, uint32_t host)
{
	if (!host)
		return true;
	if (rolling->host_count == rolling->host_capacity) {
		size_t larger = rolling->host_count ? rolling->host_count * 2 : 64;
		uint32_t *copy = realloc(rolling->hosts, larger * sizeof *copy);

		if (!copy)
			return false;
		rolling->hosts = copy;
		rolling->host_capacity = larger;
	}
	rolling->hosts[rolling->host_count++] = host;
	return true;
}

/* --- series without the labels of instances --- */

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

bool rollup_drops_label(const char *name)
{
	static const char *const names[] = {"host", "container", "pod", "node", "instance"};
	static const char *const more[] = {"service.instance.", "service_instance_", "k8s.pod.",
					   "k8s_pod_",          "k8s.node.",         "k8s_node_",
					   "k8s.container.",    "k8s_container_"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i]);

		if (has_prefix(name, names[i]) &&
		    (!name[length] || name[length] == '.' || name[length] == '_'))
			return true;
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (has_prefix(name, more[i]))
			return true;
	return false;
}

static struct text text_at(const struct catalog *catalog, uint32_t string)
{
	const struct catalog_string *at = catalog_string(catalog, string);

	return (struct text){at->text, at->length};
}

/* The number in "to" of a series of "from", with all labels or without those of instances. */
static uint32_t add_series(struct rolling *rolling, uint32_t number, bool is_fleet)
{
	const struct catalog_series *from = catalog_series(rolling->from, number);
	struct batch_label labels[SAMPLES_LABELS_MAX];
	struct batch_series series = {.labels = labels};
	uint32_t added;

	for (uint32_t i = 0; i < from->label_count && i < SAMPLES_LABELS_MAX; i++) {
		uint32_t name = from->labels[2 * i];

		if (is_fleet && rollup_drops_label(catalog_string(rolling->from, name)->text))
			continue;
		labels[series.label_count++] =
			(struct batch_label){text_at(rolling->from, name),
					     text_at(rolling->from, from->labels[2 * i + 1])};
	}
	pthread_mutex_lock(&rolling->store->lock);
	added = catalog_add_series(rolling->to, from->tenant, &series);
	pthread_mutex_unlock(&rolling->store->lock);
	return added;
}

static bool map_series(struct rolling *rolling, uint32_t from, uint32_t *series, uint32_t *fleet)
{
	*series = from;
	if (rolling->series_map) {
		if (!rolling->series_map[from])
			rolling->series_map[from] = add_series(rolling, from, false);
		*series = rolling->series_map[from];
	}
	if (!rolling->fleet_of[from])
		rolling->fleet_of[from] = add_series(rolling, from, true);
	/* Without room it stays as it is, and view.c looks for it there. Memory comes back. */
	if (!rolling->fleet_of[from] && !catalog_is_full(rolling->to))
		return false;
	*fleet = rolling->fleet_of[from] ? rolling->fleet_of[from] : *series;
	return *series;
}

/* --- stacks of another dictionary --- */

static void fill_location(const struct catalog *from, const struct catalog_location *location,
			  uint32_t number, struct sample_batch *batch)
{
	struct batch_location *to = &batch->locations[number];

	*to = (struct batch_location){.kind = location->kind,
				      .module = UINT32_MAX,
				      .address = location->address,
				      .function = text_at(from, location->function),
				      .file = text_at(from, location->file),
				      .type = text_at(from, location->type),
				      .line = location->line};
	if (location->module) {
		const struct catalog_module *module = catalog_module(from, location->module);

		to->module = number;
		batch->modules[number] = (struct batch_module){
			module->id, module->htlhash, text_at(from, module->go_id),
			text_at(from, module->name), module->base};
	}
	batch->location_indices[number] = number;
}

static uint32_t copy_stack(struct rolling *rolling, uint32_t number)
{
	const struct catalog_stack *stack = catalog_stack(rolling->from, number);
	struct batch_module modules[SAMPLES_DEPTH_MAX];
	struct batch_location locations[SAMPLES_DEPTH_MAX];
	uint32_t indices[SAMPLES_DEPTH_MAX], from[SAMPLES_DEPTH_MAX], module_map[SAMPLES_DEPTH_MAX],
		location_map[SAMPLES_DEPTH_MAX], stack_map = 0;
	struct batch_stack one = {.depth = stack->depth, .hash = {stack->hash[0], stack->hash[1]}};
	struct sample_batch batch = {.modules = modules,
				     .locations = locations,
				     .location_indices = indices,
				     .stacks = &one};
	struct catalog_translation translation = {&batch, module_map, location_map, &stack_map};

	if (stack->depth > SAMPLES_DEPTH_MAX)
		return CATALOG_OVERFLOW_STACK;
	memset(module_map, 0, stack->depth * sizeof *module_map);
	memset(location_map, 0, stack->depth * sizeof *location_map);
	catalog_stack_locations(rolling->from, stack, from);
	for (uint32_t i = 0; i < stack->depth; i++)
		fill_location(rolling->from, catalog_location(rolling->from, from[i]), i, &batch);
	pthread_mutex_lock(&rolling->store->lock);
	number = catalog_add_stack(rolling->to, &translation, 0);
	pthread_mutex_unlock(&rolling->store->lock);
	return number;
}

/* --- one row to be added --- */

static bool add_pair(void *context, const struct packed_pair *pair)
{
	struct rolling *rolling = context;
	uint32_t stack = pair->stack;

	if (!stack || stack >= rolling->mark.count[CATALOG_STACKS])
		return true; /* refers to nothing */
	if (rolling->stack_map) {
		if (!rolling->stack_map[stack])
			rolling->stack_map[stack] = copy_stack(rolling, stack);
		stack = rolling->stack_map[stack];
	}
	if (stack >= rolling->series.room) {
		rolling->is_full = true;
		return false;
	}
	rollup_sums_add(&rolling->series, stack, pair->samples, pair->value);
	rolling->pairs_read++;
	return true;
}

static bool add_rows(struct rolling *rolling, const struct target *target,
		     const struct rollup_key *key, struct error *err)
{
	sqlite3_stmt *row = rolling->row;
	bool ok = true;
	int code = SQLITE_DONE;

	sqlite3_bind_int64(row, 1, target->tenant);
	sqlite3_bind_int64(row, 2, target->type);
	sqlite3_bind_int64(row, 3, key->bucket);
	sqlite3_bind_int64(row, 4, key->from);
	sqlite3_bind_int64(row, 5, (int64_t)rolling->above);
	while (ok && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const void *data = sqlite3_column_blob(row, 0);

		ok = packed_each(data, (size_t)sqlite3_column_bytes(row, 0), add_pair, rolling);
	}
	sqlite3_reset(row);
	if (rolling->is_full)
		return error_set(err, ERROR_LIMIT, "the dictionary of roll-ups is full");
	if (!ok)
		return error_set(err, ERROR_FORMAT, "samples of a minute are damaged");
	return code == SQLITE_DONE || database_error(sqlite3_db_handle(row), "read", err);
}

/* --- a bucket of one type --- */

static int compare_keys(const void *a, const void *b)
{
	const struct rollup_key *x = a, *y = b;

	if (x->fleet != y->fleet)
		return x->fleet < y->fleet ? -1 : 1;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

static bool keep_key(struct rolling *rolling, const struct rollup_key *key)
{
	/* Folds of one minute follow each other. */
	if (rolling->key_count && rolling->keys_found[rolling->key_count - 1].from == key->from &&
	    rolling->keys_found[rolling->key_count - 1].bucket == key->bucket)
		return true;
	if (rolling->key_count == rolling->key_capacity) {
		size_t larger = rolling->key_count ? rolling->key_count * 2 : 1024;
		struct rollup_key *copy = realloc(rolling->keys_found, larger * sizeof *copy);

		if (!copy)
			return false;
		rolling->keys_found = copy;
		rolling->key_capacity = larger;
	}
	rolling->keys_found[rolling->key_count++] = *key;
	return true;
}

static bool find_keys(struct rolling *rolling, const struct target *target, uint32_t first,
		      uint32_t end, struct error *err)
{
	sqlite3_stmt *keys = rolling->keys;
	bool ok = true;
	int code = SQLITE_DONE;

	rolling->key_count = 0;
	sqlite3_bind_int64(keys, 1, target->tenant);
	sqlite3_bind_int64(keys, 2, target->type);
	sqlite3_bind_int64(keys, 3, first);
	sqlite3_bind_int64(keys, 4, end);
	sqlite3_bind_int64(keys, 5, (int64_t)rolling->above);
	while (ok && (code = sqlite3_step(keys)) == SQLITE_ROW) {
		struct rollup_key key = {.bucket = (uint32_t)sqlite3_column_int64(keys, 0),
					 .from = (uint32_t)sqlite3_column_int64(keys, 1)};

		if (!key.from || key.from >= rolling->mark.count[CATALOG_SERIES])
			continue; /* refers to nothing */
		ok = map_series(rolling, key.from, &key.series, &key.fleet) &&
		     keep_key(rolling, &key);
	}
	sqlite3_reset(keys);
	if (!ok)
		return error_set(err, ERROR_LIMIT, "no room to roll samples up");
	return code == SQLITE_DONE || database_error(sqlite3_db_handle(keys), "read", err);
}

static bool put_series(struct rolling *rolling, const struct target *target, uint32_t series,
		       struct error *err)
{
	struct row_sums row;

	buffer_clear(&rolling->hosts_data);
	if (!take_pairs(rolling, &rolling->series, &rolling->fleet, &row) ||
	    !keep_host(rolling, catalog_series(rolling->to, series)->host))
		return error_set(err, ERROR_MEMORY, "no memory to roll samples up");
	return put_row(rolling, target, rolling->level, series, &row, err);
}

static bool put_fleet(struct rolling *rolling, const struct target *target, uint32_t fleet,
		      struct error *err)
{
	struct row_sums row;

	encode_hosts(rolling);
	if (rolling->hosts_data.failed || !take_pairs(rolling, &rolling->fleet, NULL, &row))
		return error_set(err, ERROR_MEMORY, "no memory to roll samples up");
	return put_row(rolling, target, rolling->level + 1, fleet, &row, err);
}

static bool roll_type(struct rolling *rolling, const struct target *target, uint32_t first,
		      uint32_t end, struct error *err)
{
	const struct rollup_key *keys;
	size_t count;

	if (!find_keys(rolling, target, first, end, err))
		return false;
	keys = rolling->keys_found;
	count = rolling->key_count;
	if (count)
		qsort(rolling->keys_found, count, sizeof *keys, compare_keys);
	for (size_t i = 0; i < count; i++) {
		bool ends_fleet = i + 1 == count || keys[i + 1].fleet != keys[i].fleet;
		bool ends_series = ends_fleet || keys[i + 1].series != keys[i].series;

		if (!add_rows(rolling, target, &keys[i], err) ||
		    (ends_series && !put_series(rolling, target, keys[i].series, err)) ||
		    (ends_fleet && !put_fleet(rolling, target, keys[i].fleet, err)))
			return false;
	}
	return true;
}

/* The next (tenant, type) that the table has at all. False: none, or an error. */
static bool next_type(sqlite3_stmt *types, struct target *target, struct error *err)
{
	int code;

	sqlite3_bind_int64(types, 1, target->tenant);
	sqlite3_bind_int64(types, 2, target->type);
	code = sqlite3_step(types);
	if (code == SQLITE_ROW) {
		target->tenant = (uint32_t)sqlite3_column_int64(types, 0);
		target->type = (uint32_t)sqlite3_column_int64(types, 1);
	} else if (code != SQLITE_DONE) {
		database_error(sqlite3_db_handle(types), "read", err);
	}
	sqlite3_reset(types);
	return code == SQLITE_ROW;
}

/* Types are numbered from 0, tenants from 1: before all of them is (0, anything). */
bool rolling_samples(struct rolling *rolling, uint32_t first, uint32_t end, uint32_t to,
		     struct error *err)
{
	struct target target = {.bucket = to};

	while (next_type(rolling->types, &target, err))
		if (!roll_type(rolling, &target, first, end, err))
			return false;
	return !err->kind;
}

/* --- accounts --- */

static uint32_t map_string(struct rolling *rolling, uint32_t from)
{
	uint32_t *known;

	if (!rolling->string_map || !from)
		return from;
	known = &rolling->string_map[from];
	if (!*known) {
		pthread_mutex_lock(&rolling->store->lock);
		*known = catalog_add_string(rolling->to, text_at(rolling->from, from));
		pthread_mutex_unlock(&rolling->store->lock);
	}
	return *known;
}

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
	if (rolling->account_count == rolling->account_capacity) {
		size_t larger = rolling->account_count ? rolling->account_count * 2 : 64;
		struct packed_account *copy = realloc(rolling->accounts_found,
						      larger * sizeof *copy);

		if (!copy)
			return NULL;
		rolling->accounts_found = copy;
		rolling->account_capacity = larger;
	}
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
	account.host = map_string(rolling, from->host);
	for (unsigned i = 0; i < account.lost_count; i++)
		account.lost[i].reason = account.lost[i].reason <
							 rolling->mark.count[CATALOG_STRINGS]
						 ? map_string(rolling, account.lost[i].reason)
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

static bool put_accounts(struct rolling *rolling, const struct target *target, enum day_level level,
			 uint64_t fold, struct error *err)
{
	sqlite3_stmt *put = rolling->put_accounts;

	buffer_clear(&rolling->data);
	for (size_t i = 0; i < rolling->account_count; i++)
		account_encode(&rolling->accounts_found[i], &rolling->data);
	if (rolling->data.failed)
		return error_set(err, ERROR_LIMIT, "accounts of a roll-up do not fit a row");
	sqlite3_bind_int64(put, 1, level);
	sqlite3_bind_int64(put, 2, target->tenant);
	sqlite3_bind_int64(put, 3, target->type);
	sqlite3_bind_int64(put, 4, target->bucket);
	sqlite3_bind_int64(put, 5, (int64_t)fold);
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
static bool add_to_hour(struct rolling *rolling, const struct target *from, struct error *err)
{
	struct target hour = {from->tenant, from->type, from->bucket / 60 * 60};
	sqlite3_stmt *get = rolling->get_accounts;

	sqlite3_bind_int64(get, 1, hour.tenant);
	sqlite3_bind_int64(get, 2, hour.type);
	sqlite3_bind_int64(get, 3, hour.bucket);
	return add_entries(get, add_own, rolling, err) &&
	       put_accounts(rolling, &hour, DAY_1H, 1, err);
}

static bool roll_accounts(struct rolling *rolling, const struct target *target, uint32_t first,
			  uint32_t end, struct error *err)
{
	sqlite3_stmt *accounts = rolling->accounts;
	bool ok;

	sqlite3_bind_int64(accounts, 1, target->tenant);
	sqlite3_bind_int64(accounts, 2, target->type);
	sqlite3_bind_int64(accounts, 3, first);
	sqlite3_bind_int64(accounts, 4, end);
	sqlite3_bind_int64(accounts, 5, (int64_t)rolling->above);
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
	struct target target = {.bucket = to};

	while (next_type(rolling->account_types, &target, err))
		if (!roll_accounts(rolling, &target, first, end, err))
			return false;
	return !err->kind;
}

void rolling_release(struct rolling *rolling)
{
	sqlite3_stmt *const statements[] = {
		rolling->types,    rolling->keys, rolling->row,          rolling->account_types,
		rolling->accounts, rolling->put,  rolling->put_accounts, rolling->get_accounts};

	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		sqlite3_finalize(statements[i]);
	rollup_sums_release(&rolling->series);
	rollup_sums_release(&rolling->fleet);
	free(rolling->series_map);
	free(rolling->stack_map);
	free(rolling->string_map);
	free(rolling->fleet_of);
	free(rolling->keys_found);
	free(rolling->pairs);
	free(rolling->hosts);
	free(rolling->accounts_found);
	free(rolling->account_of);
	buffer_release(&rolling->data);
	buffer_release(&rolling->hosts_data);
}
