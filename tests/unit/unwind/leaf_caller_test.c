/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/leaf_caller.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum {
	LEAF = 0x1000,
	CALLER = 0x2000,
	FAR = 0x3000,
	ROOT = 0x4000,
	FP = 0x7000,
	OTHER_FP = 0x7100
};

#define STACK_RULE(return_, keeps_, fp_)               \
	{                                              \
		FRAME_RULE_STACK, keeps_, return_, fp_ \
	}
#define KIND_RULE(kind_)                   \
	{                                  \
		.kind = FRAME_RULE_##kind_ \
	}

struct row {
	const char *what;
	struct frame_rule rule;
	int way;
	uint64_t top[4];       /* all 0: did not come along */
	uint64_t frames[4];    /* what the kernel side found, 0-terminated */
	uint64_t corrected[5]; /* what it should be */
	bool is_whole;
};

static const struct row rows[] = {
	{"a frame, found by it",
	 KIND_RULE(FRAME_POINTER),
	 LEAF_FRAME_POINTER,
	 {1},
	 {LEAF, FAR, ROOT},
	 {LEAF, FAR, ROOT},
	 true},
	{"a frame, but an old return address was believed",
	 KIND_RULE(FRAME_POINTER),
	 LEAF_RETURN_ON_TOP,
	 {CALLER},
	 {LEAF, CALLER, FAR},
	 {LEAF, FAR},
	 true},
	{"no frame, found",
	 STACK_RULE(0, true, 0),
	 LEAF_RETURN_ON_TOP,
	 {CALLER},
	 {LEAF, CALLER, FAR},
	 {LEAF, CALLER, FAR},
	 true},
	{"no frame, its caller was skipped",
	 STACK_RULE(0, true, 0),
	 LEAF_FRAME_POINTER,
	 {CALLER, 5},
	 {LEAF, FAR, ROOT},
	 {LEAF, CALLER, FAR, ROOT},
	 true},
	{"no frame and nothing above",
	 STACK_RULE(8, true, 0),
	 LEAF_FRAME_POINTER,
	 {1, CALLER},
	 {LEAF},
	 {LEAF, CALLER},
	 true},
	{"the frame pointer was just pushed",
	 STACK_RULE(8, false, 0),
	 LEAF_FRAME_POINTER,
	 {FP, CALLER},
	 {LEAF, FAR},
	 {LEAF, CALLER, FAR},
	 true},
	{"pushed, and found so",
	 STACK_RULE(8, false, 0),
	 LEAF_FRAME_ON_TOP,
	 {OTHER_FP, CALLER},
	 {LEAF, CALLER, FAR},
	 {LEAF, CALLER, FAR},
	 true},
	{"the register is used for something else",
	 STACK_RULE(24, false, 16),
	 LEAF_FRAME_POINTER,
	 {1, 2, OTHER_FP, CALLER},
	 {LEAF, FAR, ROOT},
	 {LEAF, CALLER},
	 false},
	{"another word was believed",
	 STACK_RULE(16, true, 0),
	 LEAF_RETURN_ON_TOP,
	 {FAR, 2, CALLER},
	 {LEAF, FAR, ROOT},
	 {LEAF, CALLER, ROOT},
	 true},
	{"too far up to have come along",
	 STACK_RULE(200, true, 0),
	 LEAF_FRAME_POINTER,
	 {1, 2, 3, 4},
	 {LEAF, FAR},
	 {LEAF},
	 false},
	{"the stack's words did not come along",
	 STACK_RULE(0, true, 0),
	 LEAF_FRAME_POINTER,
	 {0},
	 {LEAF, FAR},
	 {LEAF},
	 false},
	{"nor here, but it was found",
	 STACK_RULE(0, true, 0),
	 LEAF_RETURN_ON_TOP,
	 {0},
	 {LEAF, CALLER, FAR},
	 {LEAF, CALLER, FAR},
	 true},
	{"a handler's trampoline",
	 STACK_RULE(0, true, 0),
	 LEAF_RETURN_ON_TOP,
	 {CALLER},
	 {LEAF, CALLER + 1, FAR},
	 {LEAF, CALLER + 1, FAR},
	 true},
	{"in the trampoline itself",
	 KIND_RULE(SIGNAL),
	 LEAF_FRAME_POINTER,
	 {1},
	 {LEAF, FAR},
	 {LEAF},
	 false},
	{"by another register",
	 KIND_RULE(OTHER),
	 LEAF_FRAME_POINTER,
	 {1},
	 {LEAF, FAR},
	 {LEAF},
	 false},
	{"no table", KIND_RULE(UNKNOWN), LEAF_FRAME_POINTER, {1}, {LEAF, FAR}, {LEAF, FAR}, true},
};

static size_t length_of(const uint64_t *frames, size_t most)
{
	size_t count = 0;

	while (count < most && frames[count])
		count++;
	return count;
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct sample_event sample = {.leaf_way = (uint8_t)row->way, .user_fp = FP};
		size_t count = length_of(row->frames, 4);
		uint64_t frames[5];

		printf("# %s\n", row->what);
		memcpy(frames, row->frames, sizeof row->frames);
		memcpy(sample.stack_top, row->top, sizeof row->top);
		if (row->top[0])
			sample.flags = SAMPLE_HAS_STACK_TOP;
		CHECK(leaf_caller_correct(&row->rule, &sample, frames, &count) == row->is_whole);
		CHECK_NUMBER(count, length_of(row->corrected, 5));
		CHECK(!memcmp(frames, row->corrected, count * sizeof *frames));
	}
	return checks_done();
}
