/* SPDX-License-Identifier: Apache-2.0 */
/* Places by file: moved with it, the last one of a file, the oldest files forgotten. */
#include "node-agent/runtimes/known_places.h"

#include "tests/check.h"

static struct known_place place_of(uint32_t executable, uint64_t base, uint64_t current_at)
{
	return (struct known_place){.executable = executable,
				    .version = 0x030b02f0,
				    .base = base,
				    .place = {.current_at = current_at, .thread_at = 792},
				    .layout = {.tstate_frame = 56}};
}

int main(void)
{
	static struct known_places places;
	struct known_place place, found;

	CHECK(!known_places_find(&places, 0, 0, &found) &&
	      !known_places_find(&places, 7, 0, &found));
	place = place_of(7, 0x7f0000000000, 0x7f0000001000);
	known_places_put(&places, &place);
	CHECK(known_places_find(&places, 7, 0x550000000000, &found));
	CHECK_NUMBER(found.place.current_at, 0x550000001000);
	CHECK_NUMBER(found.base, 0x550000000000);
	CHECK_NUMBER(found.place.thread_at, 792);
	CHECK_NUMBER(found.layout.tstate_frame, 56);
	CHECK_NUMBER(found.version, 0x030b02f0);

	/* What is not told of, as since 3.12, is at no place. */
	place = place_of(8, 0x7f0000000000, 0);
	known_places_put(&places, &place);
	CHECK(known_places_find(&places, 8, 0x1000, &found));
	CHECK_NUMBER(found.place.current_at, 0);

	place.place.thread_at = 800;
	known_places_put(&places, &place);
	CHECK(known_places_find(&places, 8, 0, &found));
	CHECK_NUMBER(found.place.thread_at, 800);
	for (uint32_t i = 0; i < KNOWN_PLACES_MAX - 1; i++) {
		place = place_of(100 + i, 0, 0);
		known_places_put(&places, &place);
	}
	CHECK(!known_places_find(&places, 7, 0, &found));
	CHECK(known_places_find(&places, 8, 0, &found));
	CHECK(known_places_find(&places, 100 + KNOWN_PLACES_MAX - 2, 0, &found));
	return checks_done();
}
