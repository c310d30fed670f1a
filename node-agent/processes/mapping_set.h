/* SPDX-License-Identifier: Apache-2.0 */
/* The executable mappings of one address space, sorted; shared between a process and the children
 * it forks until one of them changes. */
#ifndef NODE_AGENT_PROCESSES_MAPPING_SET_H
#define NODE_AGENT_PROCESSES_MAPPING_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mapping_kind {
	MAPPING_FILE, /* file is its number in the file table */
	MAPPING_VDSO,
	MAPPING_ANONYMOUS,
	MAPPING_UPROBE,
};

#define MAPPING_SINCE_NOW UINT32_MAX

struct mapping {
	uint64_t start, end, file_offset;
	uint32_t file;             /* MAPPING_FILE: a reference is held */
	uint32_t executable;       /* slot, once resolved; before, the question about it, or 0 */
	uint32_t executable_index; /* 0: not resolved; the slot may have been given away since */
	uint32_t retry_s;          /* not resolved: no earlier than this second again */
	uint32_t since; /* the set's version that brought it; 0: nothing else was there before */
	enum mapping_kind kind;
};

/* All sets of a table: what they may hold together, and how a file reference is kept. */
struct mapping_pool {
	size_t used, limit; /* rows */
	uint32_t last_version;
	void (*file_keep)(void *context, uint32_t file);
	void (*file_drop)(void *context, uint32_t file);
	void *context;
};

struct mapping_set {
	struct mapping_pool *pool;
	uint32_t references;
	uint32_t version; /* never 0, later ones are higher; equal versions have equal rows */
	uint32_t count, capacity;
	bool is_truncated; /* a row was refused: what is not found is unknown, not "not code" */
	struct mapping *rows;
};

/* NULL: no memory. One reference. */
struct mapping_set *mapping_set_new(struct mapping_pool *pool);
struct mapping_set *mapping_set_share(struct mapping_set *set); /* one more reference */
void mapping_set_free(struct mapping_set *set);                 /* one less; NULL is fine */

/* *set becomes one that nobody else refers to. false: no memory or the pool's limit, *set stays. */
bool mapping_set_own(struct mapping_set **set);

/* To be called when a row was changed in place: the set gets a new version. */
void mapping_set_changed(struct mapping_set *set);

/* Whether some row has an address of that range. */
bool mapping_set_overlaps(const struct mapping_set *set, uint64_t start, uint64_t end);

/* Adds row; what it overlaps is cut or goes, as mmap(2) does it. since MAPPING_SINCE_NOW becomes
 * the set's new version. Takes over the row's file reference, also when false is returned: the
 * pool's limit or memory; the set is then truncated. Adjacent anonymous rows become one. The set
 * must be the caller's own. */
bool mapping_set_add(struct mapping_set *set, const struct mapping *row);

/* The row that has the address, or NULL. near: where the last search ended, tried first. */
struct mapping *mapping_set_find(const struct mapping_set *set, uint64_t address, uint32_t *near);

#endif
