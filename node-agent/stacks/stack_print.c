/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/stack_print.h"

#include <inttypes.h>

#include "bpf/hotspot_frames.h"
#include "bpf/runtime_frames.h"
#include "common/clock.h"
#include "node-agent/stacks/stack_judge.h"

static void print_frame(FILE *to, uint64_t address, const struct located_frame *frame,
			bool is_caller)
{
	const char *name = frame->place == PLACE_ANONYMOUS ? "[anon]"
			   : frame->place == PLACE_UPROBE  ? "[uprobes]"
							   : "[unknown]";

	if (frame->place == PLACE_FILE) /* located as one less for callers */
		fprintf(to, "%" PRIx64 " %s+0x%" PRIx64 "\n", address, frame->executable->name,
			frame->address + is_caller);
	else
		fprintf(to, "%" PRIx64 " %s+0x%" PRIx64 "\n", address, name, address);
}

/* What its second word leads to: the nmethod and its compile id, the Method and its bytecode, the
 * CodeBlob. */
static void print_java(FILE *to, const uint64_t *words)
{
	const uint64_t address = stack_frame_address(words[0]);
	const uint64_t pointer = hotspot_frame_pointer(words[1]);

	switch (stack_frame_kind(words[0])) {
	case STACK_FRAME_JAVA_COMPILED:
		fprintf(to, "%" PRIx64 " [java] compiled %" PRIx64 " id %u\n", address, pointer,
			hotspot_frame_with(words[1]));
		break;
	case STACK_FRAME_JAVA_INTERPRETED:
		fprintf(to, "- [java] interpreted %" PRIx64 " bci %u\n", pointer,
			hotspot_frame_with(words[1]));
		break;
	default:
		fprintf(to, "%" PRIx64 " [java] stub %" PRIx64 "\n", address, pointer);
	}
}

/* A line each, innermost first: the code object and where in it, as they are in the process. */
static void print_interpreter(FILE *to, const struct sample_event *sample)
{
	const uint64_t *words = sample_runtime_frames(sample);

	for (uint32_t at = 0; at < sample->runtime_count;
	     at = stack_frame_next(words, sample->runtime_count, at)) {
		const uint64_t object = stack_frame_address(words[at]);

		if (stack_frame_kind(words[at]) == STACK_FRAME_RUNTIME_END)
			fprintf(to, "interpreter end %" PRIu64 "\n", object);
		else if (at + 1 < sample->runtime_count)
			fprintf(to, "interpreter %" PRIx64 "+0x%x%s\n", object,
				runtime_frame_position(words[at + 1]),
				runtime_frame_is_entry(words[at + 1]) ? " entry" : "");
	}
}

/* Microseconds since the sample was taken. */
static uint64_t late_us(const struct sample_event *sample)
{
	return (monotonic_ns() - sample->time_ns) / 1000;
}

void stack_print(FILE *to, const struct sample_event *sample, enum walk_result result,
		 bool from_copy, const struct located_frame *frames, size_t count)
{
	const uint64_t *user = sample_user_frames(sample);
	uint32_t at = 0;

	fprintf(to,
		"sample %" PRIu64 " pid %u tid %u cpu %u result %s guessed %d from %s frames %zu "
		"late_us %" PRIu64 "\n",
		(uint64_t)sample->time_ns, sample->tgid, sample->tid, sample->cpu,
		walk_result_name(result), !!(sample->flags & SAMPLE_FRAME_GUESSED),
		from_copy ? "copy" : "bpf", count, late_us(sample));
	for (size_t i = 0; i < count; i++) {
		if (stack_frame_is_java(user[at]) && at + 1 < sample->user_count)
			print_java(to, &user[at]);
		else
			print_frame(to, stack_frame_address(user[at]), &frames[i], i > 0);
		at = stack_frame_next(user, sample->user_count, at);
	}
	print_interpreter(to, sample);
	fputc('\n', to);
	fflush(to);
}
