/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/intake/shares.h"

#include <string.h>

#include "symbol-server/store/rules/series_limit.h"

/* --- series --- */

/* Those that came since it was looked last are counted by tenant and host. */
static void count_series(struct catalog *catalog, uint32_t tenant)
{
	struct series_counted *counted = &catalog->series_counted;
	uint32_t all = catalog->items[CATALOG_SERIES].count;

	if (counted->tenant != tenant) {
		sender_shares_release(&counted->hosts);
		counted->tenant = tenant;
		counted->through = 1;
		counted->series = 0;
	}
	for (; counted->through < all; counted->through++) {
		const struct catalog_series *series = catalog_series(catalog, counted->through);

		if (series->tenant != tenant || !series->host) /* a roll-up's has none */
			continue;
		counted->series++;
		sender_shares_add(&counted->hosts, series->host, 1);
	}
}

/* Exactly only when there may be too many of them. */
uint32_t share_take_series(struct sqlite_samples *store, struct day *day, uint32_t tenant,
			   const struct batch_series *series, bool *is_other)
{
	struct catalog *catalog = day->catalog;
	struct text host = series_host(series);
	struct other_series other;
	uint32_t number, other_number;
	enum series_verdict verdict;

	*is_other = false;
	if (!catalog->is_closed &&
	    shares_are_free(catalog->items[CATALOG_SERIES].count - 1, store->series_max))
		return catalog_add_series(catalog, tenant, series);
	count_series(catalog, tenant);
	other_series_init(&other, host);
	number = catalog_find_series(catalog, tenant, series);
	other_number = catalog_find_series(catalog, tenant, &other.series);
	verdict = series_limit_judge(&(struct series_asked){
		.is_known = number,
		.is_closed = catalog->is_closed,
		.is_other_known = other_number,
		.host = sender_shares_used(&catalog->series_counted.hosts,
					   catalog_find_string(catalog, host)),
		.all = catalog->series_counted.series,
		.most = store->series_max,
	});
	*is_other = verdict != SERIES_OWN;
	if (verdict == SERIES_OWN)
		return number ? number : catalog_add_series(catalog, tenant, series);
	if (verdict == SERIES_REFUSED || other_number)
		return other_number;
	return catalog_add_series(catalog, tenant, &other.series);
}

/* --- memory of dictionaries --- */

static uint64_t sender_of(struct text host)
{
	return hash_bytes(host.at, host.length, 0);
}

/* In all days that are in memory. Under the set's lock, too. */
static uint64_t bytes_of(const struct sqlite_samples *store, uint64_t sender)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < store->days.count; i++)
		if (store->days.at[i]->catalog)
			bytes += sender_shares_used(&store->days.at[i]->catalog->senders, sender);
	return bytes;
}

void share_begin(struct dictionary_share *share, struct text host)
{
	struct sqlite_samples *store = share->store;
	struct catalog *catalog = share->day->catalog;

	if (share->is_begun && host.length == share->host.length &&
	    !memcmp(host.at, share->host.at, host.length))
		return;
	share_end(share);
	store_lock_days(store);
	store_count_dictionary(store, share->day);
	catalog->is_closed = !shares_are_free(store->days.written_bytes, store->dictionary_max) &&
			     !share_allows(bytes_of(store, sender_of(host)),
					   store->days.written_bytes, store->dictionary_max);
	store_unlock_days(store);
	share->weight = catalog_weight(catalog);
	share->host = host;
	share->is_begun = true;
}

void share_end(struct dictionary_share *share)
{
	struct catalog *catalog = share->day->catalog;
	uint64_t came;

	if (!share->is_begun)
		return;
	came = catalog_weight(catalog) - share->weight;
	if (came)
		sender_shares_add(&catalog->senders, sender_of(share->host), came);
	catalog->is_closed = false;
	share->is_begun = false;
	store_lock_days(share->store);
	store_count_dictionary(share->store, share->day);
	store_unlock_days(share->store);
}
