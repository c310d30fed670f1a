/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/sample_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool sample_ring_open(struct sample_ring *ring, int map_fd, size_t bytes, struct error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *producer;

	memset(ring, 0, sizeof *ring);
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return error_set_system(err, errno, "map the sample ring");
	producer = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (producer == MAP_FAILED) {
		error_set_system(err, errno, "map the sample ring");
		munmap(consumer, page);
		return false;
	}
	ring->consumer = consumer;
	ring->producer = producer;
	ring->data = (const uint8_t *)producer + page;
	ring->bytes = bytes;
	return true;
}

void sample_ring_close(struct sample_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ring->consumer)
		munmap(ring->consumer, page);
	if (ring->producer)
		munmap((void *)ring->producer, page + 2 * ring->bytes);
	memset(ring, 0, sizeof *ring);
}

uint64_t sample_ring_end(const struct sample_ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

/* The record's header word: length and two bits. */
static uint32_t header_at(const struct sample_ring *ring, uint64_t position)
{
	const uint8_t *at = ring->data + (position & (ring->bytes - 1));

	return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

static uint64_t room_of(uint32_t header)
{
	uint64_t length = header & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

	return (length + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7);
}

const void *sample_ring_look(const struct sample_ring *ring, uint64_t *position, uint64_t end,
			     size_t *length)
{
	while (*position < end) {
		const uint8_t *at = ring->data + (*position & (ring->bytes - 1));
		uint32_t header = header_at(ring, *position);

		if (header & BPF_RINGBUF_BUSY_BIT) /* being written on another CPU: next time */
			return NULL;
		*position += room_of(header);
		if (!(header & BPF_RINGBUF_DISCARD_BIT)) {
			*length = header;
			return at + BPF_RINGBUF_HDR_SZ;
		}
	}
	return NULL;
}

uint64_t sample_ring_start(const struct sample_ring *ring)
{
	return *ring->consumer; /* only we write it */
}

void sample_ring_release_to(struct sample_ring *ring, uint64_t position)
{
	__atomic_store_n(ring->consumer, position, __ATOMIC_RELEASE);
}

const void *sample_ring_next(struct sample_ring *ring, uint64_t end, size_t *length)
{
	uint64_t position = sample_ring_start(ring), after = position;
	const void *record = sample_ring_look(ring, &after, end, length);

	/* Discarded records on the way are given back; where there is no other, at once. */
	position = record ? after - room_of((uint32_t)*length) : after;
	if (position != sample_ring_start(ring))
		sample_ring_release_to(ring, position);
	return record;
}

void sample_ring_release(struct sample_ring *ring)
{
	uint64_t position = sample_ring_start(ring);

	sample_ring_release_to(ring, position + room_of(header_at(ring, position)));
}
