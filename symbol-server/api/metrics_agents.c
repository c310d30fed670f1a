/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/metrics_text.h"

#include "common/clock.h"
/* As the page's view of agents has them; a host that was given up is "gone" and no longer silent,
 * so that an alert on silence ends by itself. */
enum { LATE_MS = 60000, SILENT_MS = 3600000, GONE_MS = 24 * 3600000, SKEW_MS = 2000 };

enum {
	VERSIONS_MAX = 16, /* further ones are "other": it is the senders who choose */
	AGENTS_BYTES = 256 << 20,
};

#define AGENT_HEALTHS(HEALTH) HEALTH(current) HEALTH(late) HEALTH(silent) HEALTH(gone)
#define HEALTH_ENUM(name_)    HEALTH_##name_,
#define HEALTH_NAME(name_)    #name_,
enum agent_health { AGENT_HEALTHS(HEALTH_ENUM) HEALTH_COUNT };

struct agent_sums {
	uint64_t by_health[HEALTH_COUNT], clocks_wrong, lacking[AGENT_LACK_COUNT];
	int64_t oldest_ms; /* of those not gone, since the last report */
	struct {
		const char *name;
		uint64_t count;
	} versions[VERSIONS_MAX + 1];
	unsigned version_count;
};

static enum agent_health health_of(int64_t age_ms)
{
	if (age_ms > GONE_MS)
		return HEALTH_gone;
	if (age_ms > SILENT_MS)
		return HEALTH_silent;
	return age_ms > LATE_MS ? HEALTH_late : HEALTH_current;
}

static void count_version(struct agent_sums *sums, const char *name)
{
	unsigned i = 0;

	while (i < sums->version_count && i < VERSIONS_MAX && strcmp(sums->versions[i].name, name))
		i++;
	if (i == VERSIONS_MAX)
		name = "other";
	if (i == sums->version_count) {
		sums->versions[i].name = name;
		sums->version_count++;
	}
	sums->versions[i].count++;
}

static void add_agent(struct agent_sums *sums, const struct agent_state *agent, int64_t now_ms)
{
	int64_t age_ms = now_ms - agent->last_seen_ms;
	enum agent_health health = health_of(age_ms);

	sums->by_health[health]++;
	if (health == HEALTH_gone)
		return;
	if (age_ms > sums->oldest_ms)
		sums->oldest_ms = age_ms;
	if (health != HEALTH_current)
		return;
	count_version(sums, *agent->version ? agent->version : "unknown");
	for (int i = 0; i < AGENT_LACK_COUNT; i++)
		sums->lacking[i] += agent->lacks[i] != 0;
	sums->clocks_wrong += agent->has_skew && llabs(agent->skew_ms) > SKEW_MS;
}

static void put_sums(struct buffer *out, const struct agent_sums *sums)
{
	static const char *const healths[] = {AGENT_HEALTHS(HEALTH_NAME)};

	metrics_describe(out, "agents", "gauge",
			 "Hosts by their last report: current within a minute, late within an "
			 "hour, silent within a day, then gone.");
	for (int i = 0; i < HEALTH_COUNT; i++)
		metrics_put_labelled(out, "agents", "state", healths[i], sums->by_health[i]);
	metrics_describe(out, "agents_by_version", "gauge", "Current agents by their version.");
	for (unsigned i = 0; i < sums->version_count; i++)
		metrics_put_labelled(out, "agents_by_version", "version", sums->versions[i].name,
				     sums->versions[i].count);
	metrics_describe(out, "agents_lacking", "gauge",
			 "Current agents that were denied something since their start and went on "
			 "without: BPF programs (stacks by perf events), descriptors, threads, "
			 "real-time priority.");
	for (int i = 0; i < AGENT_LACK_COUNT; i++)
		metrics_put_labelled(out, "agents_lacking", "what", agent_lack_names[i],
				     sums->lacking[i]);
	GAUGE("agents_oldest_report_seconds", (uint64_t)sums->oldest_ms / 1000,
	      "Since the last report of the host not heard for longest, those gone left out.");
	GAUGE("agents_clock_wrong", sums->clocks_wrong,
	      "Current agents whose clock differs from this server's by more than two seconds.");
}

void metrics_put_agents(struct buffer *out, const struct api *api)
{
	struct agent_sums sums = {0};
	struct agent_state *agents = NULL;
	struct error err = {0};
	struct arena arena;
	int64_t now_ms = unix_time_ms();
	size_t count = 0;

	arena_init(&arena, AGENTS_BYTES);
	if (samples_agents(api->samples, API_TENANT, &arena, &agents, &count, &err)) {
		for (size_t i = 0; i < count; i++)
			add_agent(&sums, &agents[i], now_ms);
		put_sums(out, &sums);
	}
	arena_release(&arena);
}

void metrics_put_reports(struct buffer *out, struct api *api)
{
#define REFUSAL_NAME(name_) #name_,
	static const char *const reasons[] = {REPORT_REFUSALS(REFUSAL_NAME)};
#undef REFUSAL_NAME

	metrics_describe(out, "reports_refused_total", "counter",
			 "Requests with profiles that were refused whole, by reason.");
	for (int i = 0; i < REPORT_REFUSAL_COUNT; i++)
		metrics_put_labelled(out, "reports_refused_total", "reason", reasons[i],
				     api->reports_refused[i]);
	GAUGE("clock_suspected", server_clock_is_suspected(&api->clock),
	      "1 while reports are not taken because this server's clock seems to be wrong.");
	metrics_describe(out, "leaf_samples_total", "counter",
			 "Samples by whether the function that ran had a name when they came.");
	metrics_put_labelled(out, "leaf_samples_total", "named", "yes", api->leaves_named);
	metrics_put_labelled(out, "leaf_samples_total", "named", "no", api->leaves_nameless);
}
