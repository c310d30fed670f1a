/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as text has a line for each frame of both lists. */
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

#include "bpf/runtime_frames.h"
#include "node-agent/stacks/stack_print.h"

static union {
	struct sample_event event;
	uint64_t room[sizeof(struct sample_event) / 8 + 16];
} sample;

static char text[1024];

static void print(const struct located_frame *frames, size_t count)
{
	FILE *to = fmemopen(text, sizeof text, "w");

	stack_print(to, &sample.event, WALK_complete, false, frames, count);
	fclose(to);
}

static bool has_line(const char *line)
{
	const char *found = strstr(text, line);

	return found && found > text && found[-1] == '\n' && found[strlen(line)] == '\n';
}

int main(void)
{
	struct located_frame frames[2] = {{.place = PLACE_ANONYMOUS}, {.place = PLACE_UNKNOWN}};
	uint64_t *words;

	sample_event_add_native(&sample.event, 0x1000);
	sample_event_add_native(&sample.event, 0x2000);
	print(frames, 2);
	CHECK(strstr(text, " frames 2 ") && !strstr(text, "interpreter"));
	words = (uint64_t *)sample_runtime_frames(&sample.event);
	words[0] = runtime_frame_code(0x7000);
	words[1] = runtime_frame_place(0x24, 5, 0);
	words[2] = runtime_frame_code(0x8000);
	words[3] = runtime_frame_place(0, 5, 1);
	words[4] = runtime_frame_end(RUNTIME_END_LOOP);
	sample.event.runtime_count = 5;
	print(frames, 2);
	CHECK(has_line("1000 [anon]+0x1000") && has_line("2000 [unknown]+0x2000"));
	CHECK(has_line("interpreter 7000+0x24") && has_line("interpreter 8000+0x0 entry"));
	CHECK(has_line("interpreter end 3"));
	sample.event.runtime_count = 3; /* cut within a frame, by nobody of ours */
	print(frames, 2);
	CHECK(has_line("interpreter 7000+0x24") && !strstr(text, "8000"));
	return checks_done();
}
