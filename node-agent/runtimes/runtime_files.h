/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the files that processes run are interpreters: each is asked about once, of the parser
 * of strangers' files. A new process' mappings are known by the files that others had, so that what
 * has no interpreter costs no more than a look into a table. */
#ifndef NODE_AGENT_RUNTIMES_RUNTIME_FILES_H
#define NODE_AGENT_RUNTIMES_RUNTIME_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/file_parser/runtime_symbols.h"
#include "node-agent/kernel/mapping_event.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/stacks/code_pages.h"

struct runtime_files;

/* Both are borrowed. */
struct runtime_files *runtime_files_new(struct process_table *table, struct code_pages *pages,
					struct error *err);
void runtime_files_free(struct runtime_files *files);

/* False: it is being asked, or has to be. *symbols NULL: it is none. Borrowed until the next call.
 */
bool runtime_files_find(struct runtime_files *files, uint32_t executable,
			const struct runtime_symbols **symbols);

/* So many answers have come; so many of them were interpreters. */
uint32_t runtime_files_answers(const struct runtime_files *files);
uint32_t runtime_files_known(const struct runtime_files *files);
/* Of a file that was found: runtime_symbols.thread_bytes. */
uint32_t runtime_files_thread_bytes(const struct runtime_files *files, uint32_t executable);

/* Of a file that was found: whether it is a Java virtual machine other than HotSpot. */
bool runtime_files_is_other_jvm(const struct runtime_files *files, uint32_t executable);

/* Whether that mapping's file may be one: it is, or nothing is known of it. */
bool runtime_files_may_be(struct runtime_files *files, const struct mapping_event *mapping);

/* Whether it is greenlet's, which gives Python's functions stacks of their own. Asks, if nobody
 * has: it is loaded when its process has long been looked at. */
bool runtime_files_has_greenlets(struct runtime_files *files, uint32_t executable);

/* Of what has been found: whether a file is that language's, whether an ELF address of it is in its
 * loop. */
bool runtime_files_is_file(const struct runtime_files *files, uint32_t executable,
			   enum runtime_language language);
bool runtime_files_is_loop(const struct runtime_files *files, uint32_t executable,
			   uint64_t address);

#endif
