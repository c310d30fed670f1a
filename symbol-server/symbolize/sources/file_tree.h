/* SPDX-License-Identifier: Apache-2.0 */
/* One --symbol-dir: a thread that reads its tree again and again. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_TREE_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_TREE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"

struct file_tree;

struct file_tree_options {
	const char *path;
	void (*found)(void *context, const struct build_id *id);
	void *context;
};

struct file_tree *file_tree_start(const struct file_tree_options *options, struct error *err);
/* A thread that its file system holds up is left to itself. */
void file_tree_stop(struct file_tree *tree); /* NULL is fine */

struct file_place {
	struct file_tree *tree;
	struct build_id id;
	unsigned content; /* FILE_HAS_* */
	unsigned rank; /* how many components its path has in common with the one asked for */
	char folder[PATH_MAX]; /* below the tree */
	char name[PATH_MAX];   /* in the folder */
};

/* From memory; copies up to room places. path: those that end like it are preferred; may be NULL.
 */
size_t file_tree_find_id(struct file_tree *tree, const struct build_id *id,
			 struct file_place *places, size_t room);
/* One whose id begins with those FILE_GUID_BYTES bytes. */
size_t file_tree_find_guid(struct file_tree *tree, const uint8_t *first, struct file_place *place);
size_t file_tree_find_name(struct file_tree *tree, const char *base_name, const char *path,
			   struct file_place *places, size_t room);

/* Opens a path below the tree; see file_opener_open(). */
int file_tree_open(struct file_tree *tree, const char *path, const struct build_id *id);

const char *file_tree_path(const struct file_tree *tree);
void file_tree_missed(struct file_tree *tree);
/* Adds this tree's numbers to what is there. */
void file_tree_progress(struct file_tree *tree, struct symbol_directories_progress *progress);
/* Something there could not be used: shown as the last refusal. */
void file_tree_refused(struct file_tree *tree, const char *path, const char *reason);

#endif
