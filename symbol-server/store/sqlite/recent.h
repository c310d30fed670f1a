/* SPDX-License-Identifier: Apache-2.0 */
/* The newest minutes once more, by the second in which a report began: what time lines of seconds
 * and ranges that do not begin and end with a minute are answered from. In memory and bounded: with
 * a restart it begins anew. All under the store's lock.
 *
 * Cells are of a second and a type. Their series is what they have (enum recent_content). */
#ifndef SYMBOL_SERVER_STORE_SQLITE_RECENT_H
#define SYMBOL_SERVER_STORE_SQLITE_RECENT_H

#include "common/buffer.h"
#include "symbol-server/store/sqlite/cells/memory_table.h"

enum {
	RECENT_MINUTES = 20,         /* fifteen, and for how long a picture of them is looked at */
	RECENT_PLACES = 32,          /* and those that a host's clock may be ahead */
	RECENT_BYTES_MAX = 96 << 20, /* the oldest minutes make room */
	RECENT_HOST_BYTES_MAX = 4 << 20, /* of one host, or those that share a place, in a minute */
	RECENT_HOSTS = 1024,
};

enum recent_content {
	RECENT_ACCOUNTS, /* of all hosts, as in other cells */
	RECENT_SAMPLES,  /* recent_each()'s rows */
	RECENT_CUT,      /* series, LEB128, of which some found no room in their host's share */
};

struct recent_minute {
	int64_t minute; /* since 1970 */
	struct memory_table *table;
	uint32_t host_bytes[RECENT_HOSTS];
};

struct recent {
	struct recent_minute *places[RECENT_PLACES];
	int64_t whole_from; /* minutes before this one are not, or not whole */
	size_t bytes;
	struct buffer entry; /* reused */
};

struct recent_row {
	uint32_t series;
	uint64_t samples, value;
	struct bytes packed; /* packed.h */
};

void recent_init(struct recent *recent);
/* key: its series is what it has. Without room the minute is not whole. */
void recent_add(struct recent *recent, int64_t now_ms, const struct cell_key *key, uint32_t host,
		const struct recent_row *row);
void recent_add_account(struct recent *recent, int64_t now_ms, const struct cell_key *key,
			const struct bytes *account);
/* Something of that minute is not here. */
void recent_miss(struct recent *recent, int64_t minute);
/* All that is here, and may come for minutes that are here, is not what the store has any more. */
void recent_forget(struct recent *recent, int64_t now_ms);
/* What is too old goes. */
void recent_age(struct recent *recent, int64_t now_ms);
/* Whether all of that time is here. */
bool recent_has(const struct recent *recent, int64_t now_ms, int64_t from_ms, int64_t until_ms);
void recent_release(struct recent *recent);

/* A cell's rows, a run of its bytes at a time. False: fn said so. */
typedef bool recent_row_fn(void *context, const struct recent_row *row);
bool recent_each(const uint8_t *at, size_t length, recent_row_fn *fn, void *context);

#endif
