/* SPDX-License-Identifier: Apache-2.0 */
/* The files this host runs code from, and what the server knows of each: announced, wanted,
 * uploaded. Pure bookkeeping on a clock that is handed in; not locked: the owner does.
 *
 * A module is announced at once, again after 15 s, then at doubling distances up to ten minutes,
 * and at once when the server was away: a server that lost its memory, or looked elsewhere first,
 * asks then. */
#ifndef NODE_AGENT_SHIP_ANNOUNCED_MODULES_H
#define NODE_AGENT_SHIP_ANNOUNCED_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/hash_table.h"
#include "node-agent/ship/ship.h"

enum {
	MODULES_MAX = 4096,
	ANNOUNCE_BATCH = 256, /* modules per request */
	ANNOUNCE_FIRST_MS = 15 * 1000,
	ANNOUNCE_MOST_MS = 600 * 1000,
	UPLOAD_AGAIN_MS = 3600 *
			  1000, /* a server that was never away must ask twice an hour apart */
	UPLOAD_TRIES = 5,
	HOLD_MS = 30 * 1000, /* a descriptor, over two announcements */
};

struct known_module {
	struct ship_module module;
	int64_t announce_ms;          /* when it is due */
	int64_t announce_interval_ms; /* what comes after that */
	int64_t announced_ms;         /* last time; 0: never */
	uint64_t size;                /* bytes to send, near enough */
	int64_t uploaded_ms;          /* 0: never */
	unsigned uploaded_presence;   /* the server's presence it was uploaded in */
	unsigned tries;               /* of uploading, in this presence */
	int64_t hold_until_ms;        /* then its descriptor is closed; its place stays */
	bool is_wanted, is_sent;      /* is_sent: right now */
};

struct announced_modules {
	struct known_module *modules;
	size_t count, capacity;
	struct hash_table by_id;
	unsigned presence; /* counts the times the server was there after having been away */
};

void announced_modules_init(struct announced_modules *list);

/* Takes the module, its descriptor and place; of one that is known and has no descriptor these two.
 * False: it had one already (its samples are taken over) or there are too many; both go then. */
bool announced_modules_add(struct announced_modules *list, struct ship_module *module,
			   int64_t now_ms, bool *is_over_limit);

/* The server is there after having been away: everything is announced anew, failed uploads may be
 * tried anew, uploaded files are sent again if it asks. */
void announced_modules_server_returned(struct announced_modules *list, int64_t now_ms);

/* Writes the lines of up to ANNOUNCE_BATCH modules that are due, hottest first. Returns how many;
 * they count as announced from now on. */
size_t announced_modules_announce(struct announced_modules *list, int64_t now_ms,
				  struct buffer *out);

/* The request with what was announced at that time did not arrive: due again at when_ms. */
void announced_modules_announce_again(struct announced_modules *list, int64_t announced_ms,
				      int64_t when_ms);

/* The server's answer: one build-id per line. Lines that are none, or not ours, are passed over.
 * Returns how many modules became wanted. */
size_t announced_modules_take_wanted(struct announced_modules *list, struct bytes answer,
				     int64_t now_ms);

/* The wanted module with most samples per byte to send, or NULL: a browser's 300 MB do not hold up
 * twenty libraries. It stays where it is until the list changes. */
struct known_module *announced_modules_wanted(struct announced_modules *list);
struct known_module *announced_modules_find(struct announced_modules *list,
					    const struct build_id *id);

/* Closes the descriptors of files that were uploaded, or held for HOLD_MS: they keep their file
 * systems busy, and are opened again by their places. Returns when the next is due; INT64_MAX. */
int64_t announced_modules_let_go(struct announced_modules *list, int64_t now_ms);

/* When the next announcement is due; INT64_MAX: never. */
int64_t announced_modules_due_ms(const struct announced_modules *list);
void announced_modules_release(struct announced_modules *list);

#endif
