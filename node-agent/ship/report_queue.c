/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/report_queue.h"

#include <stdlib.h>

struct queued_report {
	struct ship_report report;
	uint64_t lost_before; /* since the report in front of it */
	struct queued_report *next;
};

void report_queue_init(struct report_queue *queue, size_t limit_bytes)
{
	*queue = (struct report_queue){.limit_bytes = limit_bytes};
}

static size_t cost(const struct ship_report *report)
{
	return report->length + sizeof(struct queued_report);
}

/* The one that may go: the oldest, or the one behind it while the oldest is on its way. */
static bool drop_oldest(struct report_queue *queue, uint64_t *dropped)
{
	struct queued_report **at = queue->is_first_held ? &queue->first->next : &queue->first;
	struct queued_report *victim = *at, *next;
	uint64_t lost;

	if (!victim)
		return false;
	next = victim->next;
	lost = victim->report.samples + victim->lost_before;
	*at = next;
	if (next)
		next->lost_before += lost;
	else
		queue->lost_behind += lost;
	if (!next)
		queue->last = queue->is_first_held ? queue->first : NULL;
	queue->bytes -= cost(&victim->report);
	queue->count--;
	*dropped += victim->report.samples;
	free(victim->report.gzip);
	free(victim);
	return true;
}

uint64_t report_queue_add(struct report_queue *queue, const struct ship_report *report)
{
	uint64_t dropped = 0;
	struct queued_report *added = calloc(1, sizeof *added);

	while (queue->bytes + cost(report) > queue->limit_bytes && drop_oldest(queue, &dropped))
		;
	if (!added || queue->bytes + cost(report) > queue->limit_bytes) {
		free(added);
		free(report->gzip);
		queue->lost_behind += report->samples;
		dropped += report->samples;
		goto out;
	}
	added->report = *report;
	added->lost_before = queue->lost_behind;
	queue->lost_behind = 0;
	if (queue->last)
		queue->last->next = added;
	else
		queue->first = added;
	queue->last = added;
	queue->bytes += cost(report);
	queue->count++;
out:
	queue->lost += dropped;
	return dropped;
}

const struct ship_report *report_queue_hold(struct report_queue *queue)
{
	queue->is_first_held = queue->first;
	return queue->first ? &queue->first->report : NULL;
}

void report_queue_let_go(struct report_queue *queue)
{
	queue->is_first_held = false;
}

uint64_t report_queue_lost_before_first(const struct report_queue *queue)
{
	return queue->lost_before + (queue->first ? queue->first->lost_before : queue->lost_behind);
}

void report_queue_leave(struct report_queue *queue)
{
	struct queued_report *first = queue->first;

	queue->is_first_held = false;
	if (!first)
		return;
	queue->lost_before += first->lost_before;
	queue->first = first->next;
	if (!queue->first)
		queue->last = NULL;
	queue->bytes -= cost(&first->report);
	queue->count--;
}

void report_queue_remove(struct report_queue *queue)
{
	struct queued_report *first = queue->first;

	report_queue_leave(queue);
	if (first)
		free(first->report.gzip);
	free(first);
}

uint64_t report_queue_samples(const struct report_queue *queue)
{
	uint64_t samples = 0;

	for (const struct queued_report *r = queue->first; r; r = r->next)
		samples += r->report.samples;
	return samples;
}

void report_queue_release(struct report_queue *queue)
{
	if (!queue)
		return;
	while (queue->first)
		report_queue_remove(queue);
}
