/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/tick_account.h"

#include <stdlib.h>

struct cpu_account {
	bool is_on;
	struct cpu_ticks now, before; /* as of the last look; when its timer was opened */
};

struct tick_account {
	uint64_t period_ns;
	struct tick_totals gone, shown;
	uint64_t *idle_ns; /* per CPU, the kernel's own account */
	unsigned cpu_count;
	struct cpu_account cpus[];
};

struct tick_account *tick_account_new(unsigned cpus, uint64_t period_ns, struct error *err)
{
	struct tick_account *account = calloc(1, sizeof *account + cpus * sizeof account->cpus[0]);

	if (account)
		account->idle_ns = calloc(cpus, sizeof *account->idle_ns);
	if (!account || !account->idle_ns) {
		error_set(err, ERROR_MEMORY, "account of %u CPUs", cpus);
		tick_account_free(account);
		return NULL;
	}
	account->period_ns = period_ns;
	account->cpu_count = cpus;
	return account;
}

void tick_account_free(struct tick_account *account)
{
	if (!account)
		return;
	free(account->idle_ns);
	free(account);
}

void tick_account_look(struct tick_account *account)
{
	if (!cpu_idle_read("/proc/stat", account->idle_ns, account->cpu_count, NULL))
		return;
	for (unsigned i = 0; i < account->cpu_count; i++)
		account->cpus[i].now.idle_ns = account->idle_ns[i];
}

void tick_account_ticks(struct tick_account *account, unsigned number, uint64_t ticks,
			uint64_t idle_ticks)
{
	account->cpus[number].now.ticks = ticks;
	account->cpus[number].now.idle_ticks = idle_ticks;
}

bool tick_account_count(struct tick_account *account, unsigned number, uint64_t counted_ns)
{
	struct cpu_ticks *now = &account->cpus[number].now;
	bool has_moved = counted_ns > now->counted_ns;

	if (has_moved)
		now->counted_ns = counted_ns;
	return has_moved;
}

void tick_account_begin(struct tick_account *account, unsigned number, uint64_t ticks,
			uint64_t idle_ticks)
{
	struct cpu_account *cpu = &account->cpus[number];

	cpu->now = (struct cpu_ticks){
		.ticks = ticks, .idle_ticks = idle_ticks, .idle_ns = account->idle_ns[number]};
	cpu->before = cpu->now;
	cpu->is_on = true;
}

static void add(const struct tick_account *account, const struct cpu_account *cpu,
		struct tick_totals *totals)
{
	const struct cpu_ticks *now = &cpu->now, *before = &cpu->before;
	const struct cpu_ticks since = {
		.counted_ns = now->counted_ns,
		.ticks = now->ticks - before->ticks,
		.idle_ticks = now->idle_ticks - before->idle_ticks,
		.idle_ns = now->idle_ns > before->idle_ns ? now->idle_ns - before->idle_ns : 0,
	};
	uint64_t idle, missed;

	cpu_ticks_settle(&since, account->period_ns, &idle, &missed);
	totals->seen += since.ticks;
	totals->idle_seen += since.idle_ticks;
	totals->idle += idle;
	totals->missed += missed;
	totals->counted_ns += since.counted_ns;
}

void tick_account_end(struct tick_account *account, unsigned number)
{
	if (account->cpus[number].is_on)
		add(account, &account->cpus[number], &account->gone);
	account->cpus[number].is_on = false;
}

/* An idle time that comes late turns missed ticks into idle ones: what was shown stays. */
void tick_account_total(struct tick_account *account, struct tick_totals *totals)
{
	*totals = account->gone;
	for (unsigned i = 0; i < account->cpu_count; i++)
		if (account->cpus[i].is_on)
			add(account, &account->cpus[i], totals);
	if (totals->idle < account->shown.idle)
		totals->idle = account->shown.idle;
	if (totals->missed < account->shown.missed)
		totals->missed = account->shown.missed;
	account->shown = *totals;
}
