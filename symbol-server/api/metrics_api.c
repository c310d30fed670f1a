/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics (Prometheus text format 0.0.4). */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/metrics_text.h"
#include "symbol-server/api/query_life.h"

static void put_queries(struct buffer *out)
{
	struct query_counters queries;

	query_life_counters(&queries);
	COUNTER("queries_gone_total", queries.gone,
		"Queries given up because their client left before the answer.");
	COUNTER("queries_limited_total", queries.limited,
		"Queries answered with 422 because they went over a limit.");
}

/* The names that every client library of Prometheus has. */
static void put_descriptors(struct buffer *out)
{
	struct rlimit limit = {0};
	DIR *directory = opendir("/proc/self/fd");
	uint64_t open_now = 0;

	while (directory && readdir(directory))
		open_now++;
	if (directory)
		closedir(directory);
	getrlimit(RLIMIT_NOFILE, &limit);
	buffer_printf(out,
		      "# HELP process_open_fds Descriptors open now.\n"
		      "# TYPE process_open_fds gauge\n"
		      "process_open_fds %" PRIu64 "\n"
		      "# HELP process_max_fds Descriptors that may be open.\n"
		      "# TYPE process_max_fds gauge\n"
		      "process_max_fds %" PRIu64 "\n",
		      open_now > 3 ? open_now - 3 : 0, (uint64_t)limit.rlim_cur);
}

static void put_workers(struct buffer *out)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	metrics_describe(out, "worker_cpu_seconds_total", "counter",
			 "CPU time of processes that converted debug files, of those that ended.");
	buffer_printf(out, "farflame_server_worker_cpu_seconds_total %.3f\n",
		      (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

static void put_process(struct buffer *out, const struct api *api)
{
	struct rusage usage;
	unsigned long resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%*u %lu", &resident) != 1)
		resident = 0;
	if (file)
		fclose(file);
	getrusage(RUSAGE_SELF, &usage);
	buffer_printf(out,
		      "# HELP process_cpu_seconds_total CPU time of the server process.\n"
		      "# TYPE process_cpu_seconds_total counter\n"
		      "process_cpu_seconds_total %.3f\n"
		      "# HELP process_resident_memory_bytes Resident memory.\n"
		      "# TYPE process_resident_memory_bytes gauge\n"
		      "process_resident_memory_bytes %llu\n"
		      "# HELP process_start_time_seconds Start, unix time.\n"
		      "# TYPE process_start_time_seconds gauge\n"
		      "process_start_time_seconds %.3f\n",
		      (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		      (unsigned long long)resident * (unsigned long long)sysconf(_SC_PAGESIZE),
		      (double)api->started_ms / 1e3);
}

void api_metrics_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct buffer *out = &response->body;

	(void)request;
	response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_describe(out, "build_info", "gauge", "1; the version is in the label.");
	buffer_printf(out, "farflame_server_build_info{version=\"%s\"} 1\n", FARFLAME_VERSION);
	metrics_put_http(out, api->server);
	put_queries(out);
	metrics_put_samples(out, api->samples);
	metrics_put_reports(out, api);
	metrics_put_agents(out, api);
	metrics_put_disk(out, api);
	COUNTER("sample_attributes_left_out_total", api->attributes_left_out,
		"Attributes of samples left out: more than a sample keeps, or without a name.");
	COUNTER("labels_left_out_total", api->labels_left_out,
		"Attributes of resources that did not become labels: too many of them or of their "
		"values.");
	metrics_put_symbols(out, api->symbolizer);
	put_workers(out);
	put_process(out, api);
	put_descriptors(out);
}
