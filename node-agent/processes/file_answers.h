/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of strangers' files has said of executables in answer to one kind of question:
 * each is asked about once, when somebody first wants to know. What has no number yet is asked
 * about elsewhere: file_identities.h asks which executable it is, and what allocations/ probes is
 * held open by its own users, so that nothing but the question would be shared. */
#ifndef NODE_AGENT_PROCESSES_FILE_ANSWERS_H
#define NODE_AGENT_PROCESSES_FILE_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/processes/process_table.h"

struct file_answers;

/* Asks about an open file; false: not now. */
typedef bool file_answers_ask(void *context, const struct executable *executable);

/* table: borrowed. */
struct file_answers *file_answers_new(struct process_table *table, file_answers_ask *ask,
				      void *context, struct error *err);
void file_answers_free(struct file_answers *answers);

/* False: it has to be asked, or is being. *answer: as it was put; NULL: there is nothing to say of
 * the file, or it is not to be had. Borrowed until the next call. */
bool file_answers_find(struct file_answers *answers, uint32_t executable, const void **answer);
/* The same of what is known already, without asking. */
const void *file_answers_known(const struct file_answers *answers, uint32_t executable);

/* The first answer is kept, a copy; NULL: there is nothing to say. */
void file_answers_put(struct file_answers *answers, uint32_t executable, const void *answer,
		      size_t bytes);

#endif
