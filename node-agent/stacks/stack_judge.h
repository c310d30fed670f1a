/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a stack reaches its thread's start, by what is mapped where its frames are: the kernel
 * side, which saw registers and words alone, may have taken something for it. Pure. */
#ifndef NODE_AGENT_STACKS_STACK_JUDGE_H
#define NODE_AGENT_STACKS_STACK_JUDGE_H

#include <stddef.h>

#include "bpf/events.h"
#include "bpf/results.h"
#include "node-agent/processes/process_table.h"

/* located: of the sample's user frames; in_code: the first that is not in code, as
 * process_table_locate() says. */
enum walk_result stack_judge(const struct sample_event *sample, const struct located_frame *located,
			     size_t in_code);

/* The first of count frames whose caller the kernel side looked for by what had been mapped there
 * before; count: there is none. */
size_t stack_outdated(const struct sample_event *sample, const struct located_frame *located,
		      size_t count);

/* The sentence of bpf/results.h; "" for complete. */
const char *walk_result_sentence(enum walk_result result);
const char *walk_result_name(enum walk_result result);

#endif
