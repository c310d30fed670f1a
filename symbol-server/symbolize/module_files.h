/* SPDX-License-Identifier: Apache-2.0 */
/* The files there are of a module, for those who want the file and not its names: debuginfod's
 * clients, and builds that ask what to send. Only what lies here: uploads and --symbol-dir. What
 * other servers have is not passed on, so servers that name each other as sources cannot ask in
 * circles. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_MODULE_FILES_H
#define SYMBOL_SERVER_SYMBOLIZE_MODULE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/symbolize/file_functions.h"
#include "symbol-server/symbolize/file_section.h"
#include "symbol-server/symbolize/sources/upload_room.h"
#include "symbol-server/symbolize/symbolizer.h"

enum module_file_kind {
	MODULE_FILE_DEBUG,      /* with debug information; else with a symbol table and no code */
	MODULE_FILE_EXECUTABLE, /* with code */
};

struct module_file {
	int fd; /* the caller's */
	uint64_t bytes;
	char name[256]; /* of the file; printable ASCII */
};

/* Opens the best one of its kind. ERROR_NOT_FOUND: err says what of the module there is. */
bool symbolizer_open_file(struct symbolizer *symbolizer, const struct build_id *id,
			  enum module_file_kind kind, struct module_file *out, struct error *err);

/* A section of the module as it lies in a file: of the debug file, or the executable where that one
 * has it without bytes. */
bool symbolizer_open_section(struct symbolizer *symbolizer, const struct build_id *id,
			     const char *name, struct module_file *out,
			     struct file_section *section, struct error *err);

/* A source file that the module's debug information names; path: as that has it, with or without
 * its first "/". A table of the module's names is waited for, for seconds,
 * where there are files to make one of. ERROR_NOT_FOUND, ERROR_LIMIT: err says why. */
bool symbolizer_open_source(struct symbolizer *symbolizer, const struct build_id *id,
			    const char *path, struct module_file *out, struct error *err);

/* Where functions of these names lie, by the file that has most of them: ERROR_NOT_FOUND where
 * there is none of that build-id; the others are file_functions_find()'s. */
bool symbolizer_find_functions(struct symbolizer *symbolizer, const struct build_id *id,
			       const char *const *names, size_t name_count,
			       struct file_search_limits *limits,
			       struct file_function found[FILE_FUNCTIONS_MAX], size_t *count,
			       struct error *err);

/* Would a file of that kind be new here? For who asks once and does not come back, as builds do:
 * other sources are not waited for. */
bool symbolizer_lacks_file(struct symbolizer *symbolizer, const struct build_id *id,
			   enum module_file_kind kind);

/* What was uploaded of it. */
struct upload_usage symbolizer_uploaded(struct symbolizer *symbolizer, const struct build_id *id);

struct module_deleted {
	char name[64];
	uint32_t files;
	uint64_t bytes;
	bool has_table; /* it had one */
};
/* Deletes what was uploaded of it and the table of its names, which is made again from other
 * sources when it is next asked for; agents are not asked for the file for a day. ERROR_NOT_FOUND;
 * ERROR_BUSY: its table is being made, the files are gone. */
bool symbolizer_forget_files(struct symbolizer *symbolizer, const struct build_id *id,
			     struct module_deleted *deleted, struct error *err);

#endif
