/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are perf records one after the other. */
#include <string.h>

#include "node-agent/capture/perf_records.h"
#include "node-agent/capture/perf_sample.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_sample(const uint8_t *bytes, size_t length)
{
	static union {
		struct sample_event event;
		uint64_t room[sizeof(struct sample_event) / 8 + KERNEL_FRAMES_MAX + 1];
	} out;
	static union {
		struct stack_copy_event event;
		uint8_t room[sizeof(struct stack_copy_event) + (1 << 16)];
	} copy;
	struct perf_sample sample;

	perf_sample_time(bytes, length);
	if (!perf_sample_parse(bytes, length, &sample))
		return;
	perf_sample_event(&sample, &out.event, &copy.event);
	if (out.event.size > sizeof out || sample.stack_bytes > length)
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct process_event event;
	uint16_t size;

	while (length >= 8) {
		memcpy(&size, bytes + 6, sizeof size);
		if (size < 8 || size > length)
			size = (uint16_t)(length < UINT16_MAX ? length : UINT16_MAX);
		perf_record_time(bytes, size);
		if (perf_record_parse(bytes, size, &event) && event.type == PROCESS_EVENT_MAPPING &&
		    strlen(event.mapping.path) + event.mapping.build_id.length > size)
			abort();
		fuzz_sample(bytes, size);
		bytes += size;
		length -= size;
	}
}
