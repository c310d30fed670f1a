/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the kernel's rings, over rings that are written here as the kernel writes them. */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/kernel/perf_event.h"
#include "node-agent/kernel/sample_ring.h"
#include "tests/check.h"

enum { RING = 256 };

static uint64_t consumer, producer;
static uint64_t data[2 * RING / 8]; /* seen twice in a row, as the kernel maps it */
static struct sample_ring samples = {
	.consumer = &consumer,
	.producer = &producer,
	.data = (const uint8_t *)data,
	.bytes = RING,
};

static void ring_byte(size_t at, uint8_t byte)
{
	uint8_t *bytes = (uint8_t *)data;

	bytes[at % RING] = byte;
	bytes[at % RING + RING] = byte;
}

static void sample_put(uint32_t length, uint32_t bits, uint8_t fill)
{
	uint32_t header[2] = {length | bits, 0};

	for (size_t i = 0; i < sizeof header; i++)
		ring_byte(producer + i, ((uint8_t *)header)[i]);
	for (size_t i = 0; i < length; i++)
		ring_byte(producer + 8 + i, fill);
	producer += (8 + length + 7) / 8 * 8;
}

static void sample_expect(uint64_t end, size_t length, uint8_t fill)
{
	size_t got = 0, same = 0;
	const uint8_t *bytes = sample_ring_next(&samples, end, &got);

	if (!CHECK(bytes != NULL))
		return;
	CHECK_NUMBER(got, length);
	for (size_t i = 0; i < got; i++)
		same += bytes[i] == fill;
	CHECK_NUMBER(same, length);
	sample_ring_release(&samples);
}

static void test_samples(void)
{
	uint64_t first_end;
	size_t length;

	CHECK(!sample_ring_next(&samples, sample_ring_end(&samples), &length));
	sample_put(20, 0, 1);
	sample_put(24, BPF_RINGBUF_DISCARD_BIT, 2);
	sample_put(64, 0, 3);
	first_end = sample_ring_end(&samples);
	sample_put(8, 0, 4);
	sample_expect(first_end, 20, 1);
	sample_expect(first_end, 64, 3);
	CHECK(!sample_ring_next(&samples, first_end, &length)); /* the fourth came after the look */
	sample_expect(sample_ring_end(&samples), 8, 4);
	CHECK_NUMBER(consumer, producer);
}

static void test_sample_busy(void)
{
	uint64_t at = producer;
	size_t length;

	sample_put(16, BPF_RINGBUF_BUSY_BIT, 5); /* another CPU has not finished it */
	sample_put(16, 0, 6);
	CHECK(!sample_ring_next(&samples, sample_ring_end(&samples), &length));
	ring_byte(at + 3, 0);
	sample_expect(sample_ring_end(&samples), 16, 5);
	sample_expect(sample_ring_end(&samples), 16, 6);
}

static void test_samples_wrap(void)
{
	for (int i = 0; i < 40; i++) {
		sample_put(40, 0, (uint8_t)i);
		sample_put(16, 0, (uint8_t)(i + 100));
		sample_expect(sample_ring_end(&samples), 40, (uint8_t)i);
		sample_expect(sample_ring_end(&samples), 16, (uint8_t)(i + 100));
	}
	CHECK_NUMBER(consumer, producer);
}

/* --- perf --- */

static void perf_put(struct perf_ring *ring, uint16_t size, uint8_t fill)
{
	struct perf_event_mmap_page *control = (void *)ring->base;
	uint8_t *bytes = ring->base + sysconf(_SC_PAGESIZE);
	struct perf_event_header header = {PERF_RECORD_COMM, 0, size};

	for (uint16_t i = 0; i < size; i++)
		bytes[(control->data_head + i) % ring->bytes] = i < sizeof header
									? ((uint8_t *)&header)[i]
									: fill;
	control->data_head += size;
}

static void perf_expect(struct perf_ring *ring, size_t size, uint8_t fill)
{
	size_t length = 0, same = 0;
	const uint8_t *record = perf_ring_next(ring, &length);

	if (!CHECK(record != NULL))
		return;
	CHECK_NUMBER(length, size);
	for (size_t i = sizeof(struct perf_event_header); i < length; i++)
		same += record[i] == fill;
	CHECK_NUMBER(same, size - sizeof(struct perf_event_header));
	perf_ring_release(ring, length);
}

static void test_perf_ring(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length;
	struct perf_ring ring = {.fd = -1, .bytes = 512};
	struct perf_event_mmap_page *control;

	ring.base = calloc(1, page + ring.bytes);
	control = (void *)ring.base;
	CHECK(!perf_ring_next(&ring, &length));
	perf_put(&ring, 104, 1);
	CHECK(!perf_ring_next(&ring, &length)); /* not looked yet */
	perf_ring_look(&ring);
	perf_put(&ring, 48, 2);
	perf_expect(&ring, 104, 1);
	CHECK(!perf_ring_next(&ring, &length));
	perf_ring_look(&ring);
	perf_expect(&ring, 48, 2);
	for (uint8_t i = 0; i < 50; i++) { /* all the way round, several times */
		perf_put(&ring, 136, i);
		perf_ring_look(&ring);
		perf_expect(&ring, 136, i);
	}
	CHECK_NUMBER(control->data_tail, control->data_head);
	perf_put(&ring, 104, 3); /* a header that makes no sense ends the round */
	((struct perf_event_header *)(void *)(ring.base + page + ring.tail % ring.bytes))->size = 4;
	perf_ring_look(&ring);
	CHECK(!perf_ring_next(&ring, &length));
	CHECK_NUMBER(control->data_tail, control->data_head);
	free(ring.record);
	free(ring.base);
}

int main(void)
{
	test_samples();
	test_sample_busy();
	test_samples_wrap();
	test_perf_ring();
	return checks_done();
}
