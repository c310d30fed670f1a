/* SPDX-License-Identifier: Apache-2.0 */
/* A module at the debuginfod servers: what they said is kept, what they had is converted. */
#include "symbol-server/symbolize/symbolizer_task.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"

enum { ATTEMPTS_MAX = 40 }; /* servers whose answers are kept */

struct attempts { /* what each server said */
	struct candidate_row rows[ATTEMPTS_MAX];
	char texts[ATTEMPTS_MAX][2][300];
	size_t count;
	bool is_alt; /* it was asked for the dwz file */
};

static enum candidate_answer answer_of(enum source_answer answer)
{
	switch (answer) {
	case SOURCE_FOUND:
		return CANDIDATE_found;
	case SOURCE_NOT_FOUND:
		return CANDIDATE_not_found;
	case SOURCE_WRONG_FILE:
		return CANDIDATE_wrong_file;
	case SOURCE_TOO_LARGE:
		return CANDIDATE_too_large;
	case SOURCE_DOWN:
		return CANDIDATE_down;
	case SOURCE_CLOSED:
		return CANDIDATE_closed;
	case SOURCE_NO_ROOM:
		return CANDIDATE_no_room;
	case SOURCE_STOPPED:
		break;
	}
	return CANDIDATE_stopped;
}

static void note_attempt(void *context, const struct source_attempt *attempt)
{
	struct attempts *attempts = context;
	size_t at = attempts->count;

	if (at == ATTEMPTS_MAX)
		return;
	MODULE_TEXT(attempts->texts[at][0], attempt->source);
	snprintf(attempts->texts[at][1], sizeof(attempts->texts[at][1]), "%s%.280s",
		 attempts->is_alt ? "dwz file: " : "", attempt->sentence);
	attempts->rows[attempts->count++] =
		(struct candidate_row){.source = attempts->texts[at][0],
				       .answer = answer_of(attempt->answer),
				       .detail = attempts->texts[at][1],
				       .bytes = attempt->bytes,
				       .ms = attempt->ms,
				       .at_ms = attempt->at_ms};
}

/* The dwz file came, or will not come: its borrower is converted either way. */
static void finish_alt(struct symbolizer *symbolizer, struct module *module,
		       enum source_answer answer, const struct source_result *result)
{
	module->is_alt_asked = true;
	if (answer == SOURCE_FOUND)
		module->alt_downloaded = result->fd;
	module->is_down |= answer == SOURCE_DOWN || answer == SOURCE_NO_ROOM;
	symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
}

/* Nothing is known about the module: it is asked again when the servers are back. */
static void wait_for_servers(struct module *module, const struct source_result *result)
{
	if (module->quality == QUALITY_NONE) {
		module->state = MODULE_wanted;
		MODULE_TEXT(module->reason, result->sentence);
	}
	module->retry_at_ms = result->retry_at_ms;
	module->is_met = module->is_down = true;
}

/* A server has something under this id, and it is of no use. */
static void give_up_on_file(struct module *module, enum source_answer answer,
			    const struct source_result *result)
{
	bool is_told = module->quality != QUALITY_NONE || module->has_failed;

	module->is_fetched = true;
	module_give_up(module);
	if (is_told)
		return;
	MODULE_TEXT(module->reason, result->sentence);
	if (answer == SOURCE_TOO_LARGE)
		module->state = MODULE_failed;
}

static void finish_main(struct symbolizer *symbolizer, struct module *module,
			enum source_answer answer, const struct source_result *result)
{
	switch (answer) {
	case SOURCE_FOUND:
		module->is_fetched = true;
		module->downloaded = result->fd;
		module->is_down = result->retry_at_ms != INT64_MAX; /* one may have a better */
		MODULE_TEXT(module->url, result->url);
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
		break;
	case SOURCE_NOT_FOUND:
	case SOURCE_CLOSED:
		module->is_fetched = true;
		module_give_up(module);
		break;
	case SOURCE_WRONG_FILE:
	case SOURCE_TOO_LARGE:
		give_up_on_file(module, answer, result);
		break;
	case SOURCE_DOWN:
	case SOURCE_NO_ROOM:
		wait_for_servers(module, result);
		break;
	case SOURCE_STOPPED:
		if (module->quality == QUALITY_NONE)
			module->state = MODULE_wanted;
		break;
	}
}

static void finish_fetch(struct symbolizer *symbolizer, const struct build_id *id, bool is_alt,
			 enum source_answer answer, const struct source_result *result, int64_t ms)
{
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	module->queue = QUEUE_NONE;
	module->updated_ms = unix_time_ms();
	module->is_met = false;
	symbolizer->counters.fetches += answer == SOURCE_FOUND;
	symbolizer->counters.fetches_failed += answer == SOURCE_DOWN;
	if (answer == SOURCE_FOUND && !is_alt)
		module->fetch_ms = (uint32_t)ms;
	if (is_alt && answer != SOURCE_STOPPED)
		finish_alt(symbolizer, module, answer, result);
	else
		finish_main(symbolizer, module, answer, result);
	if (module->is_again && module->queue == QUEUE_NONE)
		symbolizer_queue(symbolizer, module, QUEUE_LOCAL);
	pthread_mutex_unlock(&symbolizer->lock);
	symbolizer_save(symbolizer, id);
}

/* Which file of the module is asked for: its own, or the dwz file it borrows from. */
static struct build_id id_to_ask(struct symbolizer *symbolizer, const struct build_id *id,
				 bool *is_alt)
{
	struct build_id asked = *id;
	struct module *module;

	pthread_mutex_lock(&symbolizer->lock);
	module = module_list_find(&symbolizer->modules, id);
	*is_alt = module->alt.length && !module->is_alt_asked;
	if (*is_alt)
		asked = module->alt;
	pthread_mutex_unlock(&symbolizer->lock);
	return asked;
}

void symbolizer_fetch(struct symbolizer *symbolizer, const struct build_id *id)
{
	struct attempts *attempts = calloc(1, sizeof(*attempts));
	struct source_result result = {.fd = -1};
	int64_t begin = unix_time_ms();
	enum source_answer answer;
	struct error err = {0};
	bool is_alt;
	struct build_id asked = id_to_ask(symbolizer, id, &is_alt);
	struct source_question question = {.id = &asked,
					   .stop_fd = symbolizer->stop_fd,
					   .note = attempts ? note_attempt : NULL,
					   .context = attempts};

	if (attempts)
		attempts->is_alt = is_alt;
	answer = symbol_sources_ask(symbolizer->sources, &question, &result);
	/* Also of one that was only asked for, if it has something: it is kept from now on. */
	if (attempts && answer != SOURCE_STOPPED &&
	    (answer == SOURCE_FOUND || symbolizer_keeps(symbolizer, id)) &&
	    !symbols_put_candidates(symbolizer->store, id,
				    is_alt ? CANDIDATE_REMOTE_ALT : CANDIDATE_REMOTE,
				    attempts->rows, attempts->count, &err))
		log_warn("answers of servers not stored", "reason=\"%s\"", err.message);
	finish_fetch(symbolizer, id, is_alt, answer, &result, unix_time_ms() - begin);
	free(attempts);
}
