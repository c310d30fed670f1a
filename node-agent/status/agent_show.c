/* SPDX-License-Identifier: Apache-2.0 */
/* farflame-agent --status: reads what agent_facts_print() wrote. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/status/agent_facts.h"

enum {
	LINES_MAX = 2000, /* of a file; further ones are not read */
	LINE_BYTES = 1000,
	LATE_INTERVALS = 3,
};

struct shown {
	char version[40], capture[12], server[300];
	double rate_hz, interval_s, at_s, made, accepted, queue_bytes, spool_bytes, taken, idle;
	double lost, stacks, complete;
	char reasons[600], results[600], lacks[200]; /* " name=count" each, those that are not 0 */
};

/* The text of label in "{…}"; room is the field's. */
static void take_label(const char *line, const char *label, char *field, size_t room)
{
	char start[40];
	const char *at;
	size_t used = 0;

	snprintf(start, sizeof start, "%s=\"", label);
	at = strstr(line, start);
	*field = '\0';
	if (!at)
		return;
	for (at += strlen(start); *at && *at != '"' && used + 1 < room; at++) {
		if (*at == '\\' && at[1])
			at++;
		field[used++] = isprint((unsigned char)*at) ? *at : '?';
	}
	field[used] = '\0';
}

static void note(char *list, size_t room, const char *name, double value)
{
	size_t used = strlen(list);

	if (value > 0)
		snprintf(list + used, room - used, " %s=%.0f", name, value);
}

static void take_line(struct shown *shown, const char *line)
{
	static const char prefix[] = "farflame_agent_";
	const char *name = line + sizeof prefix - 1, *space = strrchr(line, ' ');
	const struct {
		const char *name;
		double *to;
	} gauges[] = {
		{"rate_hertz ", &shown->rate_hz},
		{"report_interval_seconds ", &shown->interval_s},
		{"last_report_timestamp_seconds ", &shown->at_s},
		{"reports_made ", &shown->made},
		{"reports_accepted ", &shown->accepted},
		{"queue_bytes ", &shown->queue_bytes},
		{"spool_bytes ", &shown->spool_bytes},
		{"taken_total ", &shown->taken},
		{"idle_total ", &shown->idle},
	};
	char label[60];
	double value;

	if (strncmp(line, prefix, sizeof prefix - 1) || !space)
		return;
	value = strtod(space, NULL);
	for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
		if (!strncmp(name, gauges[i].name, strlen(gauges[i].name)))
			*gauges[i].to = value;
	if (sscanf(name, "lacks_%20[a-z]_total ", label) == 1) {
		note(shown->lacks, sizeof shown->lacks, label, value);
	} else if (!strncmp(name, "build_info{", 11)) {
		take_label(name, "version", shown->version, sizeof shown->version);
		take_label(name, "capture", shown->capture, sizeof shown->capture);
		take_label(name, "server", shown->server, sizeof shown->server);
	} else if (!strncmp(name, "lost_samples_total{", 19)) {
		take_label(name, "reason", label, sizeof label);
		note(shown->reasons, sizeof shown->reasons, label, value);
		shown->lost += value;
	} else if (!strncmp(name, "stacks_total{", 13)) {
		take_label(name, "result", label, sizeof label);
		if (!strcmp(label, "guessed"))
			return; /* a part of those that are complete */
		shown->stacks += value;
		if (!strcmp(label, "complete"))
			shown->complete += value;
		else
			note(shown->results, sizeof shown->results, label, value);
	}
}

static bool read_shown(const char *path, struct shown *shown, FILE *out)
{
	char line[LINE_BYTES];
	FILE *file = fopen(path, "re");

	if (!file) {
		fprintf(out, "no agent writes %s: %s\n", path, strerror(errno));
		return false;
	}
	for (int i = 0; i < LINES_MAX && fgets(line, sizeof line, file); i++)
		take_line(shown, line);
	fclose(file);
	if (!*shown->version || shown->interval_s <= 0) {
		fprintf(out, "%s is not an agent's file\n", path);
		return false;
	}
	return true;
}

int agent_facts_show(const char *path, int64_t now_ms, FILE *out)
{
	struct shown shown = {0};
	double age_s, waiting;
	bool is_late;

	if (!read_shown(path, &shown, out))
		return EXIT_FAILURE;
	age_s = (double)now_ms / 1e3 - shown.at_s;
	waiting = shown.made - shown.accepted;
	is_late = age_s > LATE_INTERVALS * shown.interval_s + 1;
	fprintf(out, "agent     %s, %.0f Hz, by %s\n", shown.version, shown.rate_hz, shown.capture);
	fprintf(out, "report    %.0f s ago, every %.0f s%s\n", age_s, shown.interval_s,
		is_late ? ": it does not run, or hangs" : "");
	fprintf(out, "server    %s: %.0f of %.0f reports accepted%s\n", shown.server,
		shown.accepted, shown.made,
		waiting > LATE_INTERVALS ? ": it is away, or refuses them" : "");
	fprintf(out, "waiting   %.0f bytes in memory, %.0f in the spool\n", shown.queue_bytes,
		shown.spool_bytes);
	fprintf(out, "samples   %.0f taken, %.0f lost%s\n", shown.taken, shown.lost, shown.reasons);
	if (shown.stacks > 0)
		fprintf(out, "stacks    %.1f %% reach their start%s\n",
			100 * shown.complete / shown.stacks, shown.results);
	if (*shown.lacks)
		fprintf(out, "lacked   %s (times since its start; the log says why)\n",
			shown.lacks);
	return is_late || waiting > LATE_INTERVALS ? EXIT_FAILURE : EXIT_SUCCESS;
}
