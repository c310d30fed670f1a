/* SPDX-License-Identifier: Apache-2.0 */
/* One module in the hands of one thread: symbolizer_work.c leads it, symbolizer_convert.c makes its
 * tables, symbolizer_fetch.c asks the servers. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_TASK_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_TASK_H

#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/symbolizer_files.h"
#include "symbol-server/symbolize/symbolizer_state.h"

/* Of a table that can become better when these come. */
#define MISSING_PARTS (SYMBOL_TABLE_DWO_MISSING | SYMBOL_TABLE_ALT_MISSING)

struct task {
	struct symbolizer *symbolizer;
	struct build_id id;
	struct module_files files;
	struct extra_files extras;
	char url[128];
	int alt_downloaded;
	/* As they were, and then of the newest table. */
	enum symbol_quality quality;
	uint32_t flags, converter;
	uint64_t known_files;
	bool may_ask_alt; /* a server may have a dwz file that is not here */
	bool waits_for_alt;
};

/* Takes the symbolizer's lock; task_unlock() gives it back. */
struct module *task_module(struct task *task);
void task_unlock(struct task *task);
void task_set_state(struct task *task, enum module_state state, const char *reason);

/* Were the files of the task converted before, by this converter? */
bool task_is_known(const struct task *task);
/* A table of names only, where there is none yet; reason: why it is not more. */
void task_convert_names(struct task *task, const char *reason);
/* The best table the files give. True: there is one now. False: err says why not, unless that was
 * known already. */
bool task_convert(struct task *task, struct error *err);

/* What a table of that quality is to people: a state, and a sentence about what it lacks, "" for
 * nothing. */
enum module_state module_state_of(enum symbol_quality quality, uint32_t flags);
const char *module_sentence(enum symbol_quality quality, uint32_t flags);

/* Nobody has more now: asked again after a pause that grows. Lock held. */
void module_give_up(struct module *module);

/* Asks the debuginfod servers for what the module lacks. */
void symbolizer_fetch(struct symbolizer *symbolizer, const struct build_id *id);

#endif
