/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/status/agent_facts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum { NAME_MAX_BYTES = 100 };

static void describe(struct buffer *out, const char *name, const char *type, const char *help)
{
	buffer_printf(out, "# HELP farflame_agent_%s %s\n# TYPE farflame_agent_%s %s\n", name, help,
		      name, type);
}

static void gauge(struct buffer *out, const char *name, double value, const char *help)
{
	describe(out, name, "gauge", help);
	buffer_printf(out, "farflame_agent_%s %.15g\n", name, value);
}

/* All of "lost." or "stacks." as one metric. */
static void put_family(struct buffer *out, const struct agent_facts *facts, const char *prefix,
		       const char *name, const char *label)
{
	for (size_t i = 0; i < facts->counter_count; i++) {
		const struct profile_counter *counter = &facts->counters[i];

		if (!strncmp(counter->name, prefix, strlen(prefix)))
			buffer_printf(out, "farflame_agent_%s{%s=\"%s\"} %" PRIu64 "\n", name,
				      label, counter->name + strlen(prefix), counter->value);
	}
}

/* "off-cpu.covered_ns" → off_cpu_covered_seconds_total. */
static void put_counter(struct buffer *out, const struct profile_counter *counter)
{
	char name[NAME_MAX_BYTES];
	size_t length = strlen(counter->name);
	bool is_time = length > 3 && !strcmp(counter->name + length - 3, "_ns");

	snprintf(name, sizeof name, "%.*s%s_total", (int)(is_time ? length - 3 : length),
		 counter->name, is_time ? "_seconds" : "");
	for (char *at = name; *at; at++)
		if (*at == '.' || *at == '-')
			*at = '_';
	describe(out, name, "counter", "As farflame's schema/README.md has it.");
	if (is_time)
		buffer_printf(out, "farflame_agent_%s %.9f\n", name, (double)counter->value / 1e9);
	else
		buffer_printf(out, "farflame_agent_%s %" PRIu64 "\n", name, counter->value);
}

static bool is_family(const char *name)
{
	return !strncmp(name, "lost.", 5) || !strncmp(name, "stacks.", 7);
}

void agent_facts_print(struct buffer *out, const struct agent_facts *facts)
{
	describe(out, "build_info", "gauge", "1; how stacks are taken and where they go.");
	buffer_printf(out, "farflame_agent_build_info{version=\"%s\",capture=\"%s\",server=\"",
		      facts->version, facts->capture);
	buffer_append_label_value(out, facts->server);
	buffer_printf(out, "\"} 1\n");
	gauge(out, "rate_hertz", facts->rate_hz, "Samples a second and CPU.");
	gauge(out, "report_interval_seconds", (double)facts->interval_ms / 1e3,
	      "How long equal stacks are counted together.");
	gauge(out, "last_report_timestamp_seconds", (double)facts->now_ms / 1e3,
	      "When the last report was made, unix time.");
	gauge(out, "reports_made", (double)facts->reports_made, "Number of the last report made.");
	gauge(out, "reports_accepted", (double)facts->reports_accepted,
	      "Number of the last report that the server has taken.");
	gauge(out, "queue_bytes", (double)facts->queue_bytes, "Reports that wait in memory.");
	gauge(out, "spool_bytes", (double)facts->spool_bytes, "Files of the spool.");
	describe(out, "lost_samples_total", "counter", "Samples lost, by reason.");
	put_family(out, facts, "lost.", "lost_samples_total", "reason");
	describe(out, "stacks_total", "counter", "Stacks, by how the walk ended.");
	put_family(out, facts, "stacks.", "stacks_total", "result");
	for (size_t i = 0; i < facts->counter_count; i++)
		if (!is_family(facts->counters[i].name))
			put_counter(out, &facts->counters[i]);
}
