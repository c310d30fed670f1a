/* SPDX-License-Identifier: Apache-2.0 */
/* The first step of a sample's user stack, held to the unwind tables of the code that was
 * interrupted. The kernel side tells a leaf without a frame by its looks; here the few words of the
 * stack that came with the sample show where its return address really is. */
#ifndef NODE_AGENT_UNWIND_LEAF_CALLER_H
#define NODE_AGENT_UNWIND_LEAF_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "node-agent/unwind/frame_rule.h"

/* rule: of the leaf's code. frames: the user part, leaf first, *count of them and room for one
 * more. The caller is put in, corrected or taken out; what cannot be right behind it is cut off.
 * False: something was cut, the stack does not reach its start. */
bool leaf_caller_correct(const struct frame_rule *rule, const struct sample_event *sample,
			 uint64_t *frames, size_t *count);

#endif
