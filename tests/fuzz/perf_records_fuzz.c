/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are perf records one after the other. */
#include <string.h>

#include "node-agent/capture/perf_records.h"
#include "tests/fuzz/fuzz.h"

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
		bytes += size;
		length -= size;
	}
}
