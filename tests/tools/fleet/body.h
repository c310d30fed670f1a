/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as gzip bodies: what all reports of a template have in common is compressed once, what
 * differs (host, time, ids, fresh address, counters) is put between as stored blocks (RFC 1951,
 * 1952), so that a generator of thousands of reports a second costs little. */
#ifndef TESTS_TOOLS_FLEET_BODY_H
#define TESTS_TOOLS_FLEET_BODY_H

#include "common/buffer.h"
#include "tests/tools/fleet/world.h"

struct body_template; /* one report of the world, compressed as far as it can be */

struct body_report { /* what one report says besides */
	uint32_t host;
	uint64_t fresh;   /* address */
	uint64_t time_ns; /* start of the interval */
	uint64_t duration_ns;
	uint8_t id[16]; /* of the first profile; others count up in the last 4 bytes */
	uint8_t agent_id[16];
	uint64_t seq, acknowledged, taken, idle, lost;
	uint32_t rate_hz;
};

struct body_template *body_template_new(const struct world *world,
					const struct world_template *from);
void body_write(const struct body_template *body, const struct body_report *report,
		struct buffer *out);
size_t body_raw_length(const struct body_template *body); /* before compression */

/* The labels that go with a host. */
enum { HOST_TEXT = 10, REGIONS = 7 };
void body_host(uint32_t host, char name[HOST_TEXT + 1], char region[3]);

#endif
