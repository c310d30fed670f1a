/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/log.h"
#include "node-agent/ship/spool_directory.h"

enum {
	PASSED_MAX = 64, /* files that go at once, since the state is synced before */
	SPARE_PART = 64, /* of the limit is dropped beyond what is needed, for the same reason */
	CONTENT_MAX = SPOOL_HEAD_MAX + SPOOL_BODY_MAX, /* of a file */
	REMAINDERS_MAX = 64, /* that go to the end of the line while room is made for a report */
};

struct spool {
	struct spool_options options;
	struct spool_directory directory;
	struct spool_state state;
	struct spool_counters counters;
	struct log_fault dropped;
	uint64_t spooled; /* samples of this run */
	uint64_t next_number;
	bool was_open;
	size_t unsynced; /* the newest files */
	int64_t sync_due_ms;
	struct buffer head;    /* of the report being added */
	struct buffer content; /* of the first file, when it has been read */
	bool has_report;
	struct spool_report report; /* in it, at state.at */
	uint64_t record_bytes;
};

static bool is_own(const struct spool *spool, const uint8_t run[16])
{
	return !memcmp(spool->options.run, run, sizeof spool->options.run);
}

/* --- accounts --- */

static void lose(struct spool *spool, uint64_t samples)
{
	spool->state.lost += samples;
	spool->counters.lost += samples;
}

/* That run's report with so many samples before it is the next to be handled: what is missing
 * between is lost. */
static void meet(struct spool *spool, const uint8_t run[16], uint64_t before)
{
	struct spool_state *state = &spool->state;

	if (memcmp(state->run, run, sizeof state->run) != 0 || !state->is_known) {
		memcpy(state->run, run, sizeof state->run);
		/* Nobody knows what became of those before it: they may have been sent. */
		state->handled = state->is_known ? 0 : before;
		state->lost = state->refused = state->acknowledged = 0;
		state->is_known = true;
	}
	if (before > state->handled) {
		lose(spool, before - state->handled);
		state->handled = before;
	}
}

static void raise_counter(struct spool_report *report, const char *name, uint64_t least)
{
	uint64_t *value = spool_report_counter(report, name);

	if (value && *value < least)
		*value = least;
}

/* The counters were written down with the report; what happened to its run since is added. */
static void tell_state(const struct spool *spool, struct spool_report *report)
{
	const struct spool_state *state = &spool->state;

	if (memcmp(state->run, report->run, sizeof state->run) != 0)
		return;
	raise_counter(report, "lost.spool", state->lost);
	raise_counter(report, "lost.refused", state->refused);
	if (report->host.acknowledged_seq < state->acknowledged)
		report->host.acknowledged_seq = state->acknowledged;
}

static void put_state(struct spool *spool, bool is_synced)
{
	if (!spool_directory_put_state(&spool->directory, &spool->state, is_synced))
		log_warn("spool", "file=\"%s/state\" not=written why=\"%s\"",
			 spool->options.directory, strerror(errno));
}

/* --- the first report --- */

static void forget_first(struct spool *spool)
{
	spool->has_report = false;
	buffer_release(&spool->content);
}

void spool_leave_first(struct spool *spool)
{
	size_t length;

	(void)buffer_take(&spool->content, &length);
	forget_first(spool);
}

static struct bytes skip(struct bytes bytes, uint64_t length)
{
	if (length >= bytes.length)
		return (struct bytes){0};
	return (struct bytes){bytes.at + length, bytes.length - length};
}

static void remove_passed(struct spool *spool)
{
	if (spool->directory.passed)
		put_state(spool, true);
	spool_directory_remove_passed(&spool->directory);
}

/* What read_first() read, and with a file's last the file. */
static void pass_record(struct spool *spool)
{
	const struct spool_file *file = spool_directory_first(&spool->directory);

	spool->has_report = false;
	spool->state.at += spool->record_bytes;
	if (spool->record_bytes && spool->state.at < file->bytes)
		return;
	spool->state.file = file->number + 1;
	spool->state.at = SPOOL_HEADER_BYTES;
	spool_directory_pass_first(&spool->directory);
	forget_first(spool);
}

static void note_damage(struct spool *spool, const char *what)
{
	spool->counters.damaged++;
	log_warn("spool damaged", "file=\"%s/%016" PRIx64 ".spool\" at=%" PRIu64 " what=\"%s\"",
		 spool->options.directory, spool->state.file, spool->state.at, what);
}

/* What is damaged is passed. False: it cannot be read now. */
static bool read_first(struct spool *spool)
{
	const struct spool_file *file = spool_directory_first(&spool->directory);
	struct spool_state *state = &spool->state;
	struct bytes content;

	if (spool->unsynced >= spool->directory.count - spool->directory.passed)
		spool_sync(spool); /* what is sent must not count as lost after a loss of power */
	if (state->file != file->number)
		state->at = SPOOL_HEADER_BYTES;
	state->file = file->number;
	errno = 0;
	if (!spool->content.length &&
	    !spool_directory_read(&spool->directory, file, &spool->content) &&
	    (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return false;
	content = (struct bytes){spool->content.bytes, spool->content.length};
	spool->has_report = spool_record_decode(skip(content, state->at), &spool->report,
						&spool->record_bytes);
	if (!spool->has_report) {
		note_damage(spool, spool->record_bytes ? "its checksum is wrong"
				   : errno             ? strerror(errno)
						       : "no report here");
		pass_record(spool);
		return true;
	}
	if (!spool->report.is_remainder)
		meet(spool, spool->report.run, spool->report.before);
	tell_state(spool, &spool->report);
	return true;
}

/* Nothing is left on disk: what this run put there and nobody handled is lost. */
static void settle_empty(struct spool *spool)
{
	remove_passed(spool);
	if (spool->spooled)
		meet(spool, spool->options.run, spool->spooled);
}

const struct spool_report *spool_first(struct spool *spool)
{
	while (!spool->has_report) {
		if (!spool_directory_first(&spool->directory)) {
			settle_empty(spool);
			return NULL;
		}
		if (!read_first(spool))
			return NULL;
	}
	return &spool->report;
}

void spool_remove_first(struct spool *spool, enum spool_outcome outcome)
{
	struct spool_state *state = &spool->state;
	struct spool_report *report = &spool->report;
	const uint64_t *refused;

	if (!spool->has_report)
		return;
	if (!report->is_remainder) {
		refused = spool_report_counter(report, "lost.refused");
		state->refused = refused ? *refused : state->refused;
		state->handled = report->before + report->samples;
		if (outcome == SPOOL_REFUSED)
			state->refused += report->samples;
		else
			state->acknowledged = report->host.report_seq;
	}
	spool->counters.removed++;
	pass_record(spool);
	put_state(spool, false);
	if (spool->directory.passed >= PASSED_MAX)
		remove_passed(spool);
	spool_first(spool); /* or those before the end go now */
}

/* --- dropping --- */

/* The first report of these bytes that is no remainder. */
static bool find_report(struct bytes bytes, struct spool_report *report)
{
	uint64_t length;

	do {
		if (spool_record_decode(bytes, report, &length) && !report->is_remainder)
			return true;
		bytes = skip(bytes, length);
	} while (length);
	return false;
}

/* Whether there is, or will be, more of the first report's run behind it. */
static bool goes_on(const struct spool *spool)
{
	const struct spool_directory *directory = &spool->directory;
	struct bytes content = {spool->content.bytes, spool->content.length};
	struct spool_report next;
	struct buffer behind;
	bool found;

	if (is_own(spool, spool->report.run))
		return true;
	buffer_init(&behind, CONTENT_MAX);
	found = find_report(skip(content, spool->state.at + spool->record_bytes), &next);
	for (size_t i = directory->passed + 1; i < directory->count && !found; i++) {
		spool_directory_read(directory, &directory->files[i], &behind);
		content = (struct bytes){behind.bytes, behind.length};
		found = find_report(skip(content, SPOOL_HEADER_BYTES), &next);
	}
	found = found && !memcmp(next.run, spool->report.run, sizeof next.run);
	buffer_release(&behind);
	return found;
}

static bool put_file(struct spool *spool, struct bytes head, struct bytes body)
{
	if (!spool_directory_put(&spool->directory, spool->next_number, head, body))
		return false;
	spool->next_number++;
	spool->unsynced++;
	return true;
}

/* What the first report's run still has to tell, behind all others; the first is passed. Once it is
 * gone: an agent that is killed in between would send both the samples and their loss. */
static void keep_remainder(struct spool *spool, struct spool_report *report)
{
	struct buffer head;
	bool ok;

	report->before += report->samples;
	report->samples = 0;
	report->is_remainder = true;
	report->host.label_count = 0; /* accounts are by host */
	report->body = (struct bytes){0};
	buffer_init(&head, SPOOL_HEAD_MAX);
	ok = spool_record_encode(report, &head);
	pass_record(spool);
	put_state(spool, false);
	spool_directory_remove_passed(&spool->directory);
	if (!ok || !put_file(spool, (struct bytes){head.bytes, head.length}, (struct bytes){0}))
		log_warn("spool", "losses not noted: %s", ok ? strerror(errno) : "too long");
	spool_sync(spool);
	buffer_release(&head);
}

/* False: there is none. remainders: so many may still be kept; samples: grows by what is lost. */
static bool drop_first(struct spool *spool, size_t *remainders, uint64_t *samples)
{
	struct spool_report *report = &spool->report;
	const uint64_t *lost;

	if (!spool_first(spool))
		return false;
	if (!report->is_remainder) {
		*samples += report->samples;
		lose(spool, report->samples);
		spool->state.handled = report->before + report->samples;
		tell_state(spool, report);
	}
	if (!report->is_remainder && goes_on(spool)) {
		pass_record(spool);
	} else if (*remainders) {
		--*remainders;
		keep_remainder(spool, report);
	} else {
		lost = spool_report_counter(report, "lost.spool");
		spool->counters.untold += lost ? *lost : 0;
		pass_record(spool);
	}
	return true;
}

static bool has_room(const struct spool *spool, uint64_t bytes, size_t files)
{
	const struct spool_directory *directory = &spool->directory;

	return directory->bytes + bytes <= spool->options.limit_bytes &&
	       directory->count - directory->passed + files <= SPOOL_FILES_MAX;
}

/* Makes room for a file of that length; false: there will be none. */
static bool make_room(struct spool *spool, uint64_t length)
{
	uint64_t needed = spool_directory_cost(length), samples = 0;
	uint64_t spare = spool->options.limit_bytes / SPARE_PART;
	size_t remainders = REMAINDERS_MAX;

	if (needed > spool->options.limit_bytes)
		return false;
	if (has_room(spool, needed + spool->directory.passed_bytes, 1))
		return true;
	while (!has_room(spool, needed + spare, SPOOL_FILES_MAX / SPARE_PART) &&
	       drop_first(spool, &remainders, &samples))
		;
	remove_passed(spool);
	if (samples)
		log_fault_write(&spool->dropped, samples, LOG_WARN, "reports dropped",
				"the_spool_is=full samples=%" PRIu64 " untold=%" PRIu64, samples,
				spool->counters.untold);
	return has_room(spool, needed, 1);
}

/* --- adding --- */

/* Takes the directory as it is now: at the start, and after it was away. */
static bool take_directory(struct spool *spool, struct error *err)
{
	struct spool_directory *directory = &spool->directory;
	struct spool_state found;
	const struct spool_file *file;

	if (!spool_directory_open(directory, &found, err))
		return false;
	if (!spool->was_open) {
		spool->state = found;
		spool->state.is_known |= !directory->count;
		if (spool->state.is_known)
			put_state(spool, true);
	}
	spool->was_open = true;
	while ((file = spool_directory_first(directory)) && file->number < spool->state.file)
		spool_directory_pass_first(directory);
	spool_directory_remove_passed(directory);
	if (spool->next_number <= spool->state.file) /* whose rest is not a new one's */
		spool->next_number = spool->state.file + 1;
	if (directory->count && spool->next_number <= directory->files[directory->count - 1].number)
		spool->next_number = directory->files[directory->count - 1].number + 1;
	spool_first(spool);
	return true;
}

static void let_go(struct spool *spool)
{
	forget_first(spool);
	spool->unsynced = 0;
	spool->sync_due_ms = INT64_MAX;
	spool_directory_close(&spool->directory);
}

static bool is_ready(struct spool *spool, struct error *err)
{
	if (spool->directory.fd >= 0 && spool_directory_is_gone(&spool->directory)) {
		log_warn("spool", "directory=\"%s\" was=removed", spool->options.directory);
		let_go(spool);
	}
	return spool->directory.fd >= 0 || take_directory(spool, err);
}

bool spool_add(struct spool *spool, struct spool_report *report, int64_t now_ms, struct error *err)
{
	if (!is_ready(spool, err))
		return false;
	memcpy(report->run, spool->options.run, sizeof report->run);
	report->before = spool->spooled;
	raise_counter(report, "lost.spool", spool_lost(spool));
	if (!spool_record_encode(report, &spool->head) ||
	    !make_room(spool, spool->head.length + report->body.length)) {
		log_warn("report dropped", "it_is=larger_than_the_spool samples=%" PRIu64,
			 report->samples);
		spool->spooled += report->samples; /* a gap, which is what lost ones are */
		spool_first(spool);
		return true;
	}
	if (!put_file(spool, (struct bytes){spool->head.bytes, spool->head.length}, report->body))
		return error_set_system(err, errno, "write into the spool '%s'",
					spool->options.directory);
	spool->spooled += report->samples;
	spool->counters.added++;
	if (!spool->options.sync_ms)
		spool_sync(spool);
	else if (spool->sync_due_ms == INT64_MAX)
		spool->sync_due_ms = now_ms + spool->options.sync_ms;
	return true;
}

void spool_sync(struct spool *spool)
{
	size_t waiting = spool->directory.count - spool->directory.passed;

	if (!spool_directory_sync(&spool->directory,
				  spool->unsynced < waiting ? spool->unsynced : waiting))
		log_warn("spool", "directory=\"%s\" not=synced why=\"%s\"",
			 spool->options.directory, strerror(errno));
	spool->unsynced = 0;
	spool->sync_due_ms = INT64_MAX;
}

int64_t spool_sync_due_ms(const struct spool *spool)
{
	return spool->sync_due_ms;
}

uint64_t spool_lost(const struct spool *spool)
{
	return is_own(spool, spool->state.run) ? spool->state.lost : 0;
}

void spool_counters(const struct spool *spool, struct spool_counters *out)
{
	*out = spool->counters;
	out->bytes = spool->directory.bytes + spool->directory.passed_bytes;
}

/* --- life --- */

struct spool *spool_open(const struct spool_options *options, struct error *err)
{
	struct spool *spool = calloc(1, sizeof *spool);
	struct error why = {0};

	if (!spool) {
		error_set(err, ERROR_MEMORY, "no memory for the spool");
		return NULL;
	}
	spool->options = *options;
	spool->sync_due_ms = INT64_MAX;
	buffer_init(&spool->content, CONTENT_MAX);
	buffer_init(&spool->head, SPOOL_HEAD_MAX);
	spool_directory_init(&spool->directory, options->directory);
	if (take_directory(spool, &why))
		return spool;
	if (why.kind == ERROR_SYSTEM) {
		log_warn("spool not usable now", "why=\"%s\" reports_wait_in=memory", why.message);
		return spool;
	}
	*(err ? err : &why) = why;
	spool_close(spool);
	return NULL;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	spool_sync(spool);
	let_go(spool);
	buffer_release(&spool->head);
	free(spool);
}
