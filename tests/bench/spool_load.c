/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's spool costs: spool_load DIR REPORTS BYTES SYNC_MS writes so many reports, one
 * each ten seconds of a made-up clock, then reads them back in order, as when the server returns.
 * Prints one line: microseconds of CPU, bytes written to the disk, and waits for it per report,
 * then CPU per report read back. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "node-agent/ship/spool.h"

enum { INTERVAL_MS = 10000 };

static double cpu_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double written(void)
{
	FILE *file = fopen("/proc/self/io", "re");
	unsigned long long bytes = 0;
	char line[100];

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "write_bytes: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return (double)bytes;
}

static void fill(struct spool *spool, long reports, struct bytes body)
{
	struct error why = {0};

	for (long i = 0; i < reports; i++) {
		struct spool_report report = {
			.samples = 200,
			.body = body,
			.host = {.host = "bench",
				 .kernel_release = "6.1",
				 .architecture = "x86_64",
				 .agent_version = "0"},
		};
		int64_t now_ms = i * INTERVAL_MS;

		if (!spool_add(spool, &report, now_ms, &why))
			errx(1, "%s", why.message);
		if (spool_sync_due_ms(spool) <= now_ms)
			spool_sync(spool);
	}
	spool_sync(spool);
}

static long drain(struct spool *spool)
{
	long count = 0;

	for (; spool_first(spool); count++)
		spool_remove_first(spool, SPOOL_SENT);
	return count;
}

int main(int count, char **arguments)
{
	struct spool_options options = {.limit_bytes = UINT64_C(1) << 40, .run = {1}};
	struct error why = {0};
	struct spool *spool;
	struct bytes body;
	uint8_t *bytes;
	long reports;
	double used, wrote, took;

	if (count != 5)
		errx(2, "spool_load DIR REPORTS BYTES SYNC_MS");
	options.directory = arguments[1];
	reports = atol(arguments[2]);
	options.sync_ms = atol(arguments[4]);
	body.length = (size_t)atol(arguments[3]);
	bytes = malloc(body.length + 1);
	if (!bytes || reports < 1)
		errx(2, "no memory, or no reports");
	for (size_t i = 0; i < body.length; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	body.at = bytes;
	spool = spool_open(&options, &why);
	if (!spool)
		errx(1, "%s", why.message);
	used = cpu_us(), wrote = written(), took = now_us();
	fill(spool, reports, body);
	used = cpu_us() - used, wrote = written() - wrote, took = now_us() - took;
	printf("%.1f %.0f %.1f ", used / (double)reports, wrote / (double)reports,
	       (took - used) / (double)reports);
	used = cpu_us();
	if (drain(spool) != reports)
		errx(1, "reports are missing");
	printf("%.1f\n", (cpu_us() - used) / (double)reports);
	spool_close(spool);
	free(bytes);
	return 0;
}
