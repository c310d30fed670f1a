/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdlib.h>

#include "node-agent/ship/report_queue.h"

static struct ship_report report(uint64_t seq, uint64_t samples, size_t length)
{
	return (struct ship_report){
		.gzip = calloc(1, length), .length = length, .seq = seq, .samples = samples};
}

static uint64_t add(struct report_queue *queue, uint64_t seq, uint64_t samples, size_t length)
{
	struct ship_report added = report(seq, samples, length);

	return report_queue_add(queue, &added);
}

static void check_order(void)
{
	struct report_queue queue;

	report_queue_init(&queue, 1 << 20);
	CHECK(!report_queue_hold(&queue));
	report_queue_let_go(&queue);
	for (uint64_t seq = 1; seq <= 3; seq++)
		CHECK_NUMBER(add(&queue, seq, 10 * seq, 100), 0);
	CHECK_NUMBER(report_queue_samples(&queue), 60);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 1);
	report_queue_let_go(&queue);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 1);
	report_queue_remove(&queue);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 2);
	report_queue_remove(&queue);
	report_queue_remove(&queue);
	report_queue_remove(&queue);
	CHECK_NUMBER(queue.bytes, 0);
	CHECK_NUMBER(queue.count, 0);
	report_queue_release(&queue);
}

/* Every report that leaves says exactly what was lost before it. */
static void check_losses(void)
{
	struct report_queue queue;

	/* a report costs its bytes and its place */
	report_queue_init(&queue, 3 * (9000 + sizeof(struct ship_report) + 64));
	for (uint64_t seq = 1; seq <= 3; seq++)
		add(&queue, seq, seq, 9000);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 1);
	/* 1 is on its way: 2 goes, and that is 3's to tell, not 1's */
	CHECK_NUMBER(add(&queue, 4, 4, 9000), 2);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 0);
	report_queue_remove(&queue);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 3);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 2);
	report_queue_let_go(&queue);
	add(&queue, 5, 5, 9000);
	CHECK_NUMBER(add(&queue, 6, 6, 9000), 3);
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 4);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 2 + 3);
	CHECK_NUMBER(queue.lost, 5);
	CHECK(queue.bytes <= queue.limit_bytes);
	report_queue_release(&queue);
}

/* One that can never fit is lost itself, and the next one tells. */
static void check_too_large(void)
{
	struct report_queue queue;

	report_queue_init(&queue, 10000);
	CHECK_NUMBER(add(&queue, 1, 7, 50000), 7);
	CHECK_NUMBER(queue.count, 0);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 7);
	CHECK_NUMBER(add(&queue, 2, 1, 1000), 0);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 7);
	/* held and alone: a new one has no room, the held one stays */
	CHECK_NUMBER(report_queue_hold(&queue)->seq, 2);
	CHECK_NUMBER(add(&queue, 3, 2, 8800), 2);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 7);
	report_queue_remove(&queue);
	CHECK_NUMBER(report_queue_lost_before_first(&queue), 9);
	report_queue_release(&queue);
}

int main(void)
{
	check_order();
	check_losses();
	check_too_large();
	return checks_done();
}
