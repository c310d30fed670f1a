/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that come, go, were away in between, or are gone again before they could be added. */
#include "tests/check.h"

#include <string.h>

#include "node-agent/capture/cpu_plug.h"

enum { CPUS = 4 };

static struct {
	bool has[CPUS], stands_still[CPUS];
	enum error_kind fails[CPUS];
	unsigned added[CPUS], removed[CPUS], looked[CPUS];
} host;

static bool has(const void *context, unsigned cpu)
{
	(void)context;
	return host.has[cpu];
}

static bool look(void *context, unsigned cpu)
{
	(void)context;
	host.looked[cpu]++;
	return !host.stands_still[cpu];
}

static bool add(void *context, unsigned cpu, struct error *err)
{
	(void)context;
	host.added[cpu]++;
	if (host.fails[cpu])
		return error_set(err, host.fails[cpu], "CPU %u", cpu);
	host.has[cpu] = true;
	host.stands_still[cpu] = false;
	return true;
}

static void remove_cpu(void *context, unsigned cpu)
{
	(void)context;
	host.removed[cpu]++;
	host.has[cpu] = false;
}

static const struct cpu_plug user = {has, look, add, remove_cpu};

static bool follow(const char *online, struct error *err)
{
	bool is_online[CPUS];

	for (int cpu = 0; cpu < CPUS; cpu++)
		is_online[cpu] = online[cpu] == '1';
	return cpu_plug_follow(&user, NULL, is_online, CPUS, err);
}

static void check_comes_and_goes(void)
{
	struct error err = {0};

	memset(&host, 0, sizeof host);
	CHECK(follow("1011", &err));
	CHECK(host.has[0] && !host.has[1] && host.has[2] && host.has[3]);
	CHECK_NUMBER(host.looked[0], 0);
	CHECK(follow("1110", &err));
	CHECK(host.has[0] && host.has[1] && host.has[2] && !host.has[3]);
	CHECK_NUMBER(host.added[0], 1);
	CHECK_NUMBER(host.looked[3], 1); /* what it still counted is not lost */
	CHECK_NUMBER(host.removed[3], 1);
}

static void check_was_away(void)
{
	struct error err = {0};

	memset(&host, 0, sizeof host);
	CHECK(follow("1100", &err));
	host.stands_still[1] = true;
	CHECK(follow("1100", &err));
	CHECK_NUMBER(host.removed[1], 1);
	CHECK_NUMBER(host.added[1], 2);
	CHECK(host.has[1]);
}

static void check_failures(void)
{
	struct error err = {0};

	memset(&host, 0, sizeof host);
	host.fails[0] = ERROR_NOT_FOUND;
	CHECK(follow("1100", &err));
	CHECK_NUMBER(err.kind, ERROR_NONE);
	CHECK(!host.has[0] && host.has[1]);
	host.fails[2] = ERROR_SYSTEM;
	CHECK(!follow("1111", &err));
	CHECK_NUMBER(err.kind, ERROR_SYSTEM);
	CHECK_NUMBER(host.added[3], 0);
	CHECK(!follow("1111", NULL));
}

int main(void)
{
	check_comes_and_goes();
	check_was_away();
	check_failures();
	return checks_done();
}
