/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/server_clock.h"

#include <time.h>

#include "common/hash_table.h"

enum {
	APART_MS = 600000,       /* clocks that differ by less agree */
	SUSPECTED_S = 300,       /* after the last report that was refused */
	AFTER_MS = 5 * 86400000, /* a clock so far after all there is needs somebody who agrees */
	DAY_MS = 86400000,
};

/* No clock was before this when this was written: 2026-01-01. */
static const int64_t written_ms = 1767225600000;

static int64_t elapsed_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec;
}

/* Of an agent what it says when it sends, however old its report is. Of others the time of their
 * newest profile: what is old may have been sent late, unless it is too old to be taken. */
enum clock_vote server_clock_read(const struct sample_batch *batch,
				  const struct ingest_rejects *rejects, int64_t now_ms,
				  int64_t *says_ms)
{
	bool is_sent = batch->counters_count && batch->counters[0].numbers.sent_ms;

	*says_ms = is_sent ? batch->counters[0].numbers.sent_ms : rejects->newest_ms;
	if (!*says_ms)
		return CLOCK_SILENT;
	if (*says_ms > now_ms + APART_MS)
		return CLOCK_AHEAD;
	if (*says_ms >= now_ms - APART_MS)
		return CLOCK_AGREES;
	return is_sent || rejects->untimely ? CLOCK_BEHIND : CLOCK_SILENT;
}

void server_clock_hear(struct server_clock *clock, uint64_t sender, enum clock_vote vote,
		       int64_t elapsed_s)
{
	clock->votes[sender % CLOCK_SENDERS] = (uint64_t)elapsed_s << 2 | vote;
}

bool server_clock_is_wrong(const struct server_clock *clock, enum clock_vote vote, int64_t says_ms,
			   int64_t now_ms, int64_t newest_ms, int64_t elapsed_s)
{
	unsigned heard[4] = {0}, others;

	for (unsigned i = 0; i < CLOCK_SENDERS; i++) {
		uint64_t last = clock->votes[i];

		if (last && elapsed_s - (int64_t)(last >> 2) <= CLOCK_HEARD_S)
			heard[last & 3]++;
	}
	others = heard[CLOCK_AGREES] + heard[vote == CLOCK_AHEAD ? CLOCK_BEHIND : CLOCK_AHEAD];
	if (vote != CLOCK_AHEAD && vote != CLOCK_BEHIND)
		return false;
	if (heard[vote] > 1 && heard[vote] > others)
		return true;
	if (heard[CLOCK_AGREES])
		return false;
	if (vote == CLOCK_AHEAD)
		return now_ms < written_ms || now_ms + APART_MS < newest_ms;
	return newest_ms && now_ms > newest_ms + AFTER_MS && says_ms + DAY_MS >= newest_ms;
}

static uint64_t sender_of(const struct sample_batch *batch)
{
	return batch->counters_count ? hash_bytes(batch->counters[0].agent_id, 16, 0)
				     : hash_bytes(batch->sender.at, batch->sender.length, 1);
}

bool server_clock_refuses(struct server_clock *clock, struct samples_store *samples,
			  const struct sample_batch *batch, const struct ingest_rejects *rejects,
			  int64_t now_ms)
{
	int64_t says_ms, elapsed_s = elapsed_now_s(), suspected_s = clock->suspected_s;
	enum clock_vote vote = server_clock_read(batch, rejects, now_ms, &says_ms);
	struct samples_counters counters;

	if (vote != CLOCK_SILENT)
		server_clock_hear(clock, sender_of(batch), vote, elapsed_s);
	if (suspected_s && elapsed_s - suspected_s > SUSPECTED_S) {
		log_fault_over(&clock->wrong, "clock of this server suspected");
		clock->suspected_s = 0;
	}
	if (!rejects->untimely)
		return false;
	samples_counters(samples, &counters);
	if (!server_clock_is_wrong(clock, vote, says_ms, now_ms, counters.newest_ms, elapsed_s))
		return false;
	clock->suspected_s = elapsed_s ? elapsed_s : 1;
	log_fault_write(&clock->wrong, 1, LOG_ERROR, "clock of this server suspected",
			"seconds_%s=%lld reports=waiting", vote == CLOCK_AHEAD ? "behind" : "ahead",
			(long long)(vote == CLOCK_AHEAD ? says_ms - now_ms : now_ms - says_ms) /
				1000);
	return true;
}

bool server_clock_is_suspected(const struct server_clock *clock)
{
	int64_t suspected_s = clock->suspected_s;

	return suspected_s && elapsed_now_s() - suspected_s <= SUSPECTED_S;
}
