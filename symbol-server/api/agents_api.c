/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/agents */
#include "common/clock.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/formats/json_writer.h"

/* "name":count, where the name is a sender's. */
static void put_count(struct json *json, const char *name, uint64_t count)
{
	json_string(json, name);
	buffer_append_char(json->out, ':');
	json->needs_comma = false;
	json_uint(json, count);
}

static void put_agent(struct json *json, const struct agent_state *agent)
{
	json_open(json, '{');
	json_key_string(json, "host", agent->host);
	json_key_string(json, "version", agent->version);
	json_key_string(json, "kernel", agent->kernel);
	json_key_uint(json, "rate_hz", agent->rate_hz);
	if (agent->cpus)
		json_key_uint(json, "cpus", agent->cpus);
	json_key_int(json, "last_seen", agent->last_seen_ms);
	json_key_uint(json, "taken", agent->taken);
	json_key_uint(json, "lost", agent->lost);
	json_key(json, "lost_by");
	json_open(json, '{');
	for (unsigned i = 0; i < agent->lost_count; i++)
		put_count(json, agent->lost_by[i].name, agent->lost_by[i].count);
	json_close(json, '}');
	json_key(json, "stacks");
	json_open(json, '{');
	for (unsigned i = 0; i < agent->stacks_count; i++)
		put_count(json, agent->stacks[i].name, agent->stacks[i].count);
	json_close(json, '}');
	json_key_int(json, "lag_ms", agent->lag_ms);
	if (agent->has_skew)
		json_key_int(json, "skew_ms", agent->skew_ms);
	json_key_uint(json, "clock_jumps", agent->clock_jumps);
	json_key(json, "lacks");
	json_open(json, '{');
	for (int i = 0; i < AGENT_LACK_COUNT; i++)
		if (agent->lacks[i])
			put_count(json, agent_lack_names[i], agent->lacks[i]);
	json_close(json, '}');
	json_close(json, '}');
}

void api_agents_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct agent_state *rows = NULL;
	size_t count = 0;
	struct parameters none;
	struct error err = {0};
	struct json json = json_start(&response->body);

	if (!parameters_open(&none, request, ENDPOINT_none, &err) ||
	    !samples_agents(api->samples, API_TENANT, http_request_arena(request), &rows, &count,
			    &err)) {
		answer_failure(response, &err);
		return;
	}
	json_open(&json, '{');
	json_key(&json, "agents");
	json_open(&json, '[');
	for (size_t i = 0; i < count; i++)
		put_agent(&json, &rows[i]);
	json_close(&json, ']');
	json_key_int(&json, "now", unix_time_ms());
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}
