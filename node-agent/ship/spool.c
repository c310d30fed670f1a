/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/log.h"
#include "node-agent/ship/spool_directory.h"

enum {
	SEGMENTS_PER_LIMIT = 16, /* a file is the smallest that can be dropped */
	SEGMENT_LEAST = 64 << 10,
	SEGMENT_MOST = 8 << 20,
	HEAD_MAX = SPOOL_FRAME_BYTES + SPOOL_FACTS_MAX,
	REMAINDERS_MAX = 64, /* of one segment */
};

struct spool {
	struct spool_options options;
	struct spool_directory directory;
	struct spool_state state;
	struct spool_counters counters;
	struct log_fault dropped;
	uint64_t spooled; /* samples of this run */
	uint64_t next_number;
	uint64_t segment_bytes;
	bool was_open;
	/* the last segment, while it is written */
	int write_fd;
	bool is_dirty, is_new;
	int64_t sync_due_ms;
	/* the first record */
	int read_fd;
	bool has_frame, has_report;
	struct spool_frame frame;
	struct spool_report report;
	struct buffer content;
	struct buffer head; /* of the record being written */
};

static bool is_own(const struct spool *spool, const uint8_t run[16])
{
	return !memcmp(spool->options.run, run, sizeof spool->options.run);
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- accounts --- */

static void lose(struct spool *spool, uint64_t samples)
{
	spool->state.lost += samples;
	spool->counters.lost += samples;
}

/* This record is the next to be handled: what is missing before it is lost. */
static void meet(struct spool *spool, const struct spool_frame *frame)
{
	struct spool_state *state = &spool->state;
	bool is_other = memcmp(state->run, frame->run, sizeof state->run) != 0;

	if (is_other || !state->is_known) {
		memcpy(state->run, frame->run, sizeof state->run);
		/* Nobody knows what became of those before it: they may have been sent. */
		state->handled = state->is_known ? 0 : frame->before;
		state->lost = state->refused = state->acknowledged = 0;
		state->is_known = true;
	}
	if (frame->before > state->handled) {
		lose(spool, frame->before - state->handled);
		state->handled = frame->before;
	}
}

/* Nothing is left on disk: what this run put there and nobody handled is lost. */
static void settle_empty(struct spool *spool)
{
	struct spool_frame end = {.before = spool->spooled};

	if (!spool->spooled)
		return;
	memcpy(end.run, spool->options.run, sizeof end.run);
	meet(spool, &end);
}

static void put_state(struct spool *spool, bool is_synced)
{
	if (spool->directory.state_fd >= 0 &&
	    !spool_directory_put_state(&spool->directory, &spool->state, is_synced))
		log_warn("spool", "file=\"%s/state\" not=written why=\"%s\"",
			 spool->options.directory, strerror(errno));
}

/* --- writing --- */

static void end_segment(struct spool *spool)
{
	spool_sync(spool);
	close_if_open(&spool->write_fd);
}

/* Has a segment to write into that has room. False: errno. */
static bool begin_segment(struct spool *spool, uint64_t length)
{
	struct spool_directory *directory = &spool->directory;

	if (spool->write_fd >= 0 &&
	    directory->segments[directory->count - 1].bytes + length <= spool->segment_bytes)
		return true;
	end_segment(spool);
	do
		spool->write_fd = spool_directory_new_segment(directory, spool->next_number++);
	while (spool->write_fd < 0 && errno == EEXIST);
	if (spool->write_fd < 0)
		return false;
	spool->is_new = true;
	return true;
}

/* At the end of the last segment, or not at all: errno. head: frame and facts. */
static bool write_record(struct spool *spool, struct bytes head, struct bytes body)
{
	static const uint8_t zeros[8];
	uint64_t length = head.length + body.length;
	struct iovec parts[3] = {
		{(void *)head.at, head.length},
		{(void *)body.at, body.length},
		{(void *)zeros, spool_padding(length)},
	};
	struct spool_segment *segment;
	ssize_t written;

	length += spool_padding(length);
	if (!begin_segment(spool, length))
		return false;
	segment = &spool->directory.segments[spool->directory.count - 1];
	written = pwritev(spool->write_fd, parts, 3, (off_t)segment->bytes);
	if (written != (ssize_t)length) {
		int failure = written < 0 ? errno : ENOSPC;

		/* Room for others; the next record is written over it in any case. */
		if (ftruncate(spool->write_fd, (off_t)segment->bytes) < 0)
			log_debug("spool", "not cut: %s", strerror(errno));
		errno = failure;
		return false;
	}
	segment->bytes += length;
	spool->directory.bytes += length;
	spool->is_dirty = true;
	return true;
}

void spool_sync(struct spool *spool)
{
	if (spool->is_dirty &&
	    (fdatasync(spool->write_fd) < 0 || (spool->is_new && fsync(spool->directory.fd) < 0)))
		log_warn("spool", "directory=\"%s\" not=synced why=\"%s\"",
			 spool->options.directory, strerror(errno));
	spool->is_dirty = spool->is_new = false;
	spool->sync_due_ms = INT64_MAX;
}

int64_t spool_sync_due_ms(const struct spool *spool)
{
	return spool->sync_due_ms;
}

static void note_written(struct spool *spool, int64_t now_ms)
{
	if (!spool->options.sync_ms)
		spool_sync(spool);
	else if (spool->sync_due_ms == INT64_MAX)
		spool->sync_due_ms = now_ms + spool->options.sync_ms;
}

/* --- the first record --- */

static void forget_first(struct spool *spool)
{
	spool->has_frame = spool->has_report = false;
	buffer_release(&spool->content);
}

void spool_leave_first(struct spool *spool)
{
	size_t length;

	(void)buffer_take(&spool->content, &length);
	forget_first(spool);
}

/* All of the first segment has been handled. */
static void remove_segment(struct spool *spool)
{
	struct spool_directory *directory = &spool->directory;

	forget_first(spool);
	close_if_open(&spool->read_fd);
	if (directory->count == 1 && spool->write_fd >= 0) {
		spool->is_dirty = false; /* it is about to go */
		end_segment(spool);
	}
	spool->state.segment = directory->segments[0].number + 1;
	spool->state.at = SPOOL_HEADER_BYTES;
	put_state(spool, true);
	spool_directory_remove_first(directory);
}

static void note_damage(struct spool *spool, const char *what)
{
	spool->counters.damaged++;
	log_warn("spool damaged",
		 "directory=\"%s\" segment=%016" PRIx64 " at=%" PRIu64 " what=\"%s\"",
		 spool->options.directory, spool->state.segment, spool->state.at, what);
}

/* The first intact frame that has not been handled. False: none. */
static bool find_frame(struct spool *spool)
{
	struct spool_directory *directory = &spool->directory;

	while (!spool->has_frame && directory->count) {
		const struct spool_segment *segment = &directory->segments[0];
		enum spool_found found = SPOOL_UNREADABLE;
		uint64_t skipped = 0;

		if (spool->state.segment != segment->number) {
			spool->state.segment = segment->number;
			spool->state.at = SPOOL_HEADER_BYTES;
		}
		if (spool->read_fd < 0)
			spool->read_fd = spool_directory_open_segment(directory, segment->number);
		if (spool->read_fd >= 0)
			found = spool_frame_find(spool->read_fd, &spool->state.at, segment->bytes,
						 &spool->frame, &skipped);
		else if (errno != ENOENT)
			return false; /* short of descriptors or memory: later */
		if (found == SPOOL_UNREADABLE)
			note_damage(spool, strerror(errno));
		else if (skipped)
			note_damage(spool, "no record here");
		if (found == SPOOL_FOUND)
			spool->has_frame = true;
		else
			remove_segment(spool);
	}
	if (!spool->has_frame)
		settle_empty(spool);
	return spool->has_frame;
}

static void pass_frame(struct spool *spool)
{
	spool->state.at += spool_record_bytes(&spool->frame);
	forget_first(spool);
}

bool spool_is_empty(struct spool *spool)
{
	return !find_frame(spool);
}

/* Reads what follows the frame at that place of the file. */
static bool read_report(struct spool *spool, int fd, uint64_t at, const struct spool_frame *frame,
			struct spool_report *report)
{
	size_t length = (size_t)frame->facts_length + frame->body_length, done = 0;
	uint8_t *content;

	buffer_release(&spool->content);
	content = buffer_reserve(&spool->content, length ? length : 1);
	if (!content)
		return false;
	while (done < length) {
		ssize_t got = pread(fd, content + done, length - done,
				    (off_t)(at + SPOOL_FRAME_BYTES + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return spool_record_decode(frame, content, report);
}

static void raise_counter(struct spool_report *report, const char *name, uint64_t least)
{
	uint64_t *value = spool_report_counter(report, name);

	if (value && *value < least)
		*value = least;
}

/* The counters were written down with the record; what happened to its run since is added. */
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

const struct spool_report *spool_first(struct spool *spool)
{
	while (!spool->has_report) {
		if (!find_frame(spool))
			return NULL;
		if (read_report(spool, spool->read_fd, spool->state.at, &spool->frame,
				&spool->report)) {
			spool->has_report = true;
			if (!spool->report.is_remainder)
				meet(spool, &spool->frame);
			tell_state(spool, &spool->report);
		} else {
			note_damage(spool, "a record's checksum is wrong");
			pass_frame(spool);
		}
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
	pass_frame(spool);
	put_state(spool, false);
	find_frame(spool); /* what is handled whole goes now */
}

/* --- dropping --- */

/* One segment on its way out. */
struct drop {
	struct spool_frame last; /* the last record with samples so far, */
	uint64_t at;             /* and where it is */
	bool has_last;
	uint64_t samples;
	struct buffer remainders;    /* encoded, one behind the other; less than what is dropped */
	size_t ends[REMAINDERS_MAX]; /* of each */
	size_t count;
};

/* What a dropped record's run still has to tell, or a remainder that is there already. */
static void keep_remainder(struct spool *spool, struct drop *drop, const struct spool_frame *frame,
			   uint64_t at)
{
	struct spool_report report;
	size_t before = drop->remainders.length;
	const uint64_t *untold;

	if (!read_report(spool, spool->read_fd, at, frame, &report))
		return;
	if (!report.is_remainder)
		tell_state(spool, &report);
	report.before += report.samples;
	report.samples = 0;
	report.is_remainder = true;
	report.host.label_count = 0; /* accounts are by host */
	report.body = (struct bytes){0};
	if (drop->count < REMAINDERS_MAX && spool_record_encode(&report, &drop->remainders)) {
		drop->ends[drop->count++] = drop->remainders.length;
		return;
	}
	drop->remainders.length = before;
	drop->remainders.failed = false;
	untold = spool_report_counter(&report, "lost.spool");
	spool->counters.untold += untold ? *untold : 0;
}

/* Once the segment is gone: were they there before, an agent killed in between would send both the
 * samples and their loss. */
static void write_remainders(struct spool *spool, const struct drop *drop)
{
	for (size_t i = 0, begin = 0; i < drop->count; begin = drop->ends[i++]) {
		struct bytes record = {drop->remainders.bytes + begin, drop->ends[i] - begin};

		if (!write_record(spool, record, (struct bytes){0}))
			log_warn("spool", "losses not noted: %s", strerror(errno));
	}
}

/* Whether the segments behind the first have more of that run. */
static bool goes_on(const struct spool *spool, const uint8_t run[16])
{
	const struct spool_directory *directory = &spool->directory;

	for (size_t i = 1; i < directory->count; i++) {
		const struct spool_segment *segment = &directory->segments[i];
		int fd = spool_directory_open_segment(directory, segment->number);
		uint64_t at = SPOOL_HEADER_BYTES, skipped = 0;
		struct spool_frame frame;

		while (fd >= 0 &&
		       spool_frame_find(fd, &at, segment->bytes, &frame, &skipped) == SPOOL_FOUND) {
			if (!(frame.flags & SPOOL_REMAINDER)) {
				close(fd);
				return !memcmp(frame.run, run, sizeof frame.run);
			}
			at += spool_record_bytes(&frame);
		}
		if (fd >= 0)
			close(fd);
	}
	return false;
}

static void drop_frame(struct spool *spool, struct drop *drop, const struct spool_frame *frame,
		       uint64_t at)
{
	if (frame->flags & SPOOL_REMAINDER) {
		keep_remainder(spool, drop, frame, at);
		return;
	}
	if (drop->has_last && memcmp(drop->last.run, frame->run, sizeof frame->run) != 0)
		keep_remainder(spool, drop, &drop->last, drop->at);
	meet(spool, frame);
	lose(spool, frame->samples);
	spool->state.handled = frame->before + frame->samples;
	drop->samples += frame->samples;
	drop->last = *frame;
	drop->at = at;
	drop->has_last = true;
}

static bool drop_oldest(struct spool *spool)
{
	const struct spool_directory *directory = &spool->directory;
	struct drop drop = {.count = 0};
	uint64_t at, end, skipped = 0;
	struct spool_frame frame;

	if (!find_frame(spool))
		return false;
	forget_first(spool);
	if (directory->count == 1)
		end_segment(spool);
	end = directory->segments[0].bytes;
	/* A large one has to shrink; a small one may hold nothing else, and goes round whole. */
	buffer_init(&drop.remainders, end < spool->segment_bytes / 4 ? end : end / 8 * 7);
	for (at = spool->state.at;
	     spool_frame_find(spool->read_fd, &at, end, &frame, &skipped) == SPOOL_FOUND;
	     at += spool_record_bytes(&frame))
		drop_frame(spool, &drop, &frame, at);
	if (drop.has_last && !goes_on(spool, drop.last.run))
		keep_remainder(spool, &drop, &drop.last, drop.at);
	log_fault_write(&spool->dropped, drop.samples, LOG_WARN, "reports dropped",
			"the_spool_is=full samples=%" PRIu64 " untold=%" PRIu64, drop.samples,
			spool->counters.untold);
	remove_segment(spool);
	write_remainders(spool, &drop);
	buffer_release(&drop.remainders);
	return true;
}

/* --- adding --- */

/* Takes the directory as it is now: at the start, and after it was away. */
static bool take_directory(struct spool *spool, struct error *err)
{
	struct spool_directory *directory = &spool->directory;
	struct spool_state found;
	uint64_t after = 1;

	if (!spool_directory_open(directory, &found, err))
		return false;
	if (!spool->was_open) {
		spool->state = found;
		if (!directory->count)
			spool->state.is_known = true;
		if (spool->state.is_known)
			put_state(spool, false);
	}
	spool->was_open = true;
	while (directory->count && directory->segments[0].number < spool->state.segment)
		spool_directory_remove_first(directory);
	if (directory->count)
		after = directory->segments[directory->count - 1].number + 1;
	if (after <= spool->state.segment) /* whose rest is not a new one's */
		after = spool->state.segment + 1;
	if (spool->next_number < after)
		spool->next_number = after;
	find_frame(spool);
	return true;
}

static void let_go(struct spool *spool)
{
	forget_first(spool);
	close_if_open(&spool->read_fd);
	close_if_open(&spool->write_fd);
	spool->is_dirty = spool->is_new = false;
	spool->sync_due_ms = INT64_MAX;
	spool_directory_close(&spool->directory);
}

static bool is_ready(struct spool *spool, struct error *err)
{
	if (spool->directory.fd >= 0 &&
	    spool_directory_is_gone(&spool->directory, spool->write_fd)) {
		log_warn("spool", "directory=\"%s\" was=removed", spool->options.directory);
		let_go(spool);
	}
	return spool->directory.fd >= 0 || take_directory(spool, err);
}

/* Makes room for so many bytes; false: there will be none. */
static bool make_room(struct spool *spool, uint64_t length)
{
	const struct spool_directory *directory = &spool->directory;
	uint64_t needed = directory->newer_bytes + length + SPOOL_HEADER_BYTES;
	size_t tries = 2 * directory->count + 2;

	if (needed > spool->options.limit_bytes)
		return false;
	while (directory->bytes + needed > spool->options.limit_bytes ||
	       directory->count >= SPOOL_SEGMENTS_MAX)
		if (!tries-- || !drop_oldest(spool))
			return false;
	return true;
}

bool spool_add(struct spool *spool, struct spool_report *report, int64_t now_ms, struct error *err)
{
	uint64_t length;

	if (!is_ready(spool, err))
		return false;
	memcpy(report->run, spool->options.run, sizeof report->run);
	report->before = spool->spooled;
	raise_counter(report, "lost.spool", spool_lost(spool));
	buffer_clear(&spool->head);
	if (!spool_record_encode(report, &spool->head))
		length = spool->options.limit_bytes;
	else
		length = spool->head.length + report->body.length;
	if (!make_room(spool, length)) {
		log_warn("report dropped", "it_is=larger_than_the_spool samples=%" PRIu64,
			 report->samples);
		spool->spooled += report->samples; /* a gap, which is what lost ones are */
		find_frame(spool);
		return true;
	}
	if (!write_record(spool, (struct bytes){spool->head.bytes, spool->head.length},
			  report->body))
		return error_set_system(err, errno, "write into the spool '%s'",
					spool->options.directory);
	spool->spooled += report->samples;
	spool->counters.added++;
	note_written(spool, now_ms);
	return true;
}

uint64_t spool_lost(const struct spool *spool)
{
	return is_own(spool, spool->state.run) ? spool->state.lost : 0;
}

void spool_counters(const struct spool *spool, struct spool_counters *out)
{
	*out = spool->counters;
	out->bytes = spool->directory.bytes + spool->directory.newer_bytes;
}

/* --- life --- */

static uint64_t segment_bytes(uint64_t limit)
{
	uint64_t bytes = limit / SEGMENTS_PER_LIMIT;

	return bytes < SEGMENT_LEAST ? SEGMENT_LEAST : bytes > SEGMENT_MOST ? SEGMENT_MOST : bytes;
}

struct spool *spool_open(const struct spool_options *options, struct error *err)
{
	struct spool *spool = calloc(1, sizeof *spool);
	struct error why = {0};

	if (!spool) {
		error_set(err, ERROR_MEMORY, "no memory for the spool");
		return NULL;
	}
	spool->options = *options;
	spool->segment_bytes = segment_bytes(options->limit_bytes);
	spool->read_fd = spool->write_fd = -1;
	spool->sync_due_ms = INT64_MAX;
	buffer_init(&spool->content, SPOOL_FACTS_MAX + SPOOL_BODY_MAX);
	buffer_init(&spool->head, HEAD_MAX);
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
