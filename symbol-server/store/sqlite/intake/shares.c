/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/intake/shares.h"

#include <string.h>

struct text share_host(const struct batch_series *series)
{
	for (uint32_t i = 0; i < series->label_count; i++)
		if (series->labels[i].name.length == 4 &&
		    !memcmp(series->labels[i].name.at, "host", 4))
			return series->labels[i].value;
	return (struct text){"", 0};
}

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
static bool may_add_series(struct catalog *catalog, uint32_t tenant, uint32_t limit,
			   const struct batch_series *series)
{
	if (catalog->is_closed)
		return false;
	if (shares_are_free(catalog->items[CATALOG_SERIES].count - 1, limit))
		return true;
	count_series(catalog, tenant);
	return share_allows(sender_shares_used(&catalog->series_counted.hosts,
					       catalog_find_string(catalog, share_host(series))),
			    catalog->series_counted.series, limit);
}

static uint32_t take_other(struct catalog *catalog, uint32_t tenant, uint32_t limit,
			   const struct batch_series *series)
{
	struct batch_label labels[] = {{{"host", 4}, share_host(series), false},
				       {{"process", 7}, {"other", 5}, false},
				       {{"service", 7}, {"other", 5}, false}};
	bool has_host = labels[0].value.length;
	struct batch_series other = {has_host ? labels : labels + 1, has_host ? 3 : 2};
	uint32_t known = catalog_find_series(catalog, tenant, &other);

	count_series(catalog, tenant);
	if (known || catalog->series_counted.series > limit + limit / 4)
		return known;
	return catalog_add_series(catalog, tenant, &other);
}

uint32_t share_take_series(struct sqlite_samples *store, struct day *day, uint32_t tenant,
			   const struct batch_series *series, bool *is_other)
{
	struct catalog *catalog = day->catalog;
	uint32_t number;

	*is_other = false;
	if (may_add_series(catalog, tenant, store->series_max, series))
		return catalog_add_series(catalog, tenant, series);
	number = catalog_find_series(catalog, tenant, series);
	if (number)
		return number;
	*is_other = true;
	return take_other(catalog, tenant, store->series_max, series);
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
