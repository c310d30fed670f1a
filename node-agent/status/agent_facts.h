/* SPDX-License-Identifier: Apache-2.0 */
/* What a running agent tells of itself to others on its host: a file in Prometheus' text format
 * 0.0.4, such as node_exporter's textfile collector takes, made anew with each report. */
#ifndef NODE_AGENT_STATUS_AGENT_FACTS_H
#define NODE_AGENT_STATUS_AGENT_FACTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/buffer.h"
#include "common/profile.h"

/* Where the systemd unit has the file, and where --status looks. */
#define AGENT_FACTS_FILE "/run/farflame-agent/metrics.prom"

struct agent_facts {                   /* everything is borrowed */
	const char *version, *capture; /* "bpf" or "perf" */
	const char *server;            /* its address */
	uint32_t rate_hz;
	int64_t interval_ms, now_ms;             /* of reports; unix time */
	uint64_t reports_made, reports_accepted; /* sequence numbers: the last ones */
	uint64_t queue_bytes, spool_bytes;       /* now */
	const struct profile_counter *counters;  /* cumulative; names as schema/README.md has them
						    after "farflame.", and "ship.…" */
	size_t counter_count;
};

/* lost.X and stacks.X become labels of one metric each; nanoseconds become seconds. */
void agent_facts_print(struct buffer *out, const struct agent_facts *facts);

/* What such a file says, for a person: farflame-agent --status. The exit status: 0 the agent
 * reports and its reports are accepted; 1 there is none, it is late, or they are not. now_ms: unix
 * time. */
int agent_facts_show(const char *path, int64_t now_ms, FILE *out);

#endif
