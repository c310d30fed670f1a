/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that wait for the server, bounded in bytes: the oldest goes first, to the server or, when
 * there is no more room, to nowhere, and then its samples are counted. Not locked: the owner does.
 *
 * Losses keep their place in the line: what was lost between two reports belongs to the later one,
 * so that every report that arrives says exactly how many samples before it were lost, whatever was
 * dropped behind it meanwhile. */
#ifndef NODE_AGENT_SHIP_REPORT_QUEUE_H
#define NODE_AGENT_SHIP_REPORT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/ship/ship.h"

struct queued_report;

struct report_queue {
	struct queued_report *first, *last;
	size_t limit_bytes, bytes, count;
	bool is_first_held;   /* the first is on its way and cannot be dropped now */
	uint64_t lost_before; /* samples lost before the first report, all told */
	uint64_t lost_behind; /* samples lost behind the last one */
	uint64_t lost;        /* both, and those between the reports */
};

void report_queue_init(struct report_queue *queue, size_t limit_bytes);

/* Takes the report's bytes; drops the oldest ones that may be dropped, or this one when it does not
 * fit at all. Returns the samples that were dropped. */
uint64_t report_queue_add(struct report_queue *queue, const struct ship_report *report);

/* Borrows the oldest and holds it until report_queue_let_go() or report_queue_remove(). NULL:
 * empty. */
const struct ship_report *report_queue_hold(struct report_queue *queue);
void report_queue_let_go(struct report_queue *queue);

/* Samples lost to the queue before the oldest report: its farflame.lost.queue. */
uint64_t report_queue_lost_before_first(const struct report_queue *queue);

/* The oldest has left, one way or another. */
void report_queue_remove(struct report_queue *queue);

/* The same, but its bytes stay where they are: somebody who cannot be asked still reads them. */
void report_queue_leave(struct report_queue *queue);

/* Samples in all waiting reports. */
uint64_t report_queue_samples(const struct report_queue *queue);
void report_queue_release(struct report_queue *queue);

#endif
