/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /symbolicate/v5, and the ids in it. What is read has to hang together. */
#include "symbol-server/api/symbolicate_request.h"

#include <string.h>

#include "symbol-server/symbolize/module_find.h"
#include "tests/fuzz/fuzz.h"

static void check_job(const struct symbolicate_job *job)
{
	uint32_t frames = 0;

	for (uint32_t i = 0; i < job->stack_count; i++) {
		if (job->stacks[i].first != frames)
			abort();
		frames += job->stacks[i].count;
	}
	if (frames != job->frame_count)
		abort();
	for (uint32_t i = 0; i < frames; i++)
		if (job->frames[i].module < -1 || job->frames[i].offset < -1 ||
		    job->frames[i].module >= (int64_t)job->module_count)
			abort();
	for (uint32_t i = 0; i < job->module_count; i++) {
		struct module_question question;

		if (module_question_parse(job->modules[i].id, &question) &&
		    (question.id.length < BUILD_ID_MIN || question.id.length > BUILD_ID_MAX ||
		     strlen(job->modules[i].id) < 8))
			abort();
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct symbolicate_request request;
	struct error err = {0};
	struct arena arena;

	arena_init(&arena, 16 << 20);
	if (symbolicate_request_read(bytes, length, &arena, &request, &err)) {
		for (unsigned i = 0; i < request.job_count; i++)
			check_job(&request.jobs[i]);
	} else if (err.kind == ERROR_NONE || !*err.message) {
		abort(); /* a refusal says why */
	}
	arena_release(&arena);
}
