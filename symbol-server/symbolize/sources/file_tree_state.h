/* SPDX-License-Identifier: Apache-2.0 */
/* What file_tree.c (its thread, who asks) and file_tree_scan.c (one pass) share. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_TREE_STATE_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_TREE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "symbol-server/symbolize/sources/file_index.h"
#include "symbol-server/symbolize/sources/file_opener.h"
#include "symbol-server/symbolize/sources/file_tree.h"

struct file_tree {
	char path[PATH_MAX];
	void (*found)(void *context, const struct build_id *id);
	void *context;
	struct file_opener *opener;
	pthread_t thread;
	atomic_bool stops;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct file_index *index; /* what the last pass found; NULL before the first */
	struct file_index *next;  /* what this pass has found so far; NULL between passes */
	struct symbol_directories_progress last, now; /* of the last pass, of this one */
	atomic_bool was_missed;
	bool has_ended, is_orphan; /* the thread; an orphan cleans up */
};

/* One pass. The thread's own. */
void file_tree_scan(struct file_tree *tree);

#endif
