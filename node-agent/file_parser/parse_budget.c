/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/parse_budget.h"

#include <stddef.h>

static struct parse_account *find(struct parse_budget *budget, uint32_t executable)
{
	for (int i = 0; i < PARSE_FILES; i++)
		if (budget->files[i].executable == executable)
			return &budget->files[i];
	return NULL;
}

static bool has_answered(const struct parse_budget *budget, uint32_t executable)
{
	return budget->answered[executable % PARSE_ANSWERED] == executable;
}

static void forgive(int64_t *used_us, int64_t *since_ms, int64_t now_ms, int64_t us_per_ms)
{
	int64_t forgiven_us = (now_ms - *since_ms) * us_per_ms;

	if (forgiven_us <= 0)
		return;
	*used_us -= forgiven_us < *used_us ? forgiven_us : *used_us;
	*since_ms = now_ms;
}

/* What time has forgiven. */
static void age(struct parse_account *account, int64_t now_ms)
{
	if (account->refused_until_ms && now_ms >= account->refused_until_ms)
		*account = (struct parse_account){.executable = account->executable};
	if (account->strikes && now_ms - account->struck_ms >= PARSE_REFUSED_MS)
		account->strikes = 0;
	forgive(&account->used_us, &account->changed_ms, now_ms,
		1000 * PARSE_FILE_MS / PARSE_REFUSED_MS);
}

static bool is_cheaper(const struct parse_account *a, const struct parse_account *b)
{
	if (!a->refused_until_ms != !b->refused_until_ms)
		return !a->refused_until_ms;
	if (a->strikes != b->strikes)
		return a->strikes < b->strikes;
	return a->used_us < b->used_us;
}

static struct parse_account *account_of(struct parse_budget *budget, uint32_t executable,
					int64_t now_ms)
{
	struct parse_account *account = find(budget, executable);

	if (!account) {
		account = &budget->files[0];
		for (int i = 1; i < PARSE_FILES; i++)
			if (is_cheaper(&budget->files[i], account))
				account = &budget->files[i];
		*account = (struct parse_account){.executable = executable, .changed_ms = now_ms};
	}
	age(account, now_ms);
	return account;
}

static void age_all(struct parse_budget *budget, int64_t now_ms)
{
	forgive(&budget->all_us, &budget->changed_ms, now_ms, PARSE_ALL_PER_SECOND);
}

static void charge(struct parse_budget *budget, struct parse_account *account, uint32_t used_ms,
		   int64_t now_ms)
{
	bool is_fruitless = !has_answered(budget, account->executable);

	age_all(budget, now_ms);
	budget->all_us += (int64_t)used_ms * 1000;
	account->used_us += (int64_t)used_ms * 1000;
	if (account->strikes >= PARSE_STRIKES_MAX || account->used_us > PARSE_FILE_MS * 1000 ||
	    (is_fruitless && account->used_us > PARSE_FRUITLESS_MS * 1000))
		account->refused_until_ms = now_ms + PARSE_REFUSED_MS;
}

void parse_budget_answered(struct parse_budget *budget, uint32_t executable, uint32_t used_ms,
			   int64_t now_ms)
{
	budget->answered[executable % PARSE_ANSWERED] = executable;
	if (used_ms)
		charge(budget, account_of(budget, executable, now_ms), used_ms, now_ms);
}

void parse_budget_strike(struct parse_budget *budget, uint32_t executable, uint32_t used_ms,
			 int64_t now_ms)
{
	struct parse_account *account = account_of(budget, executable, now_ms);

	account->strikes++;
	account->struck_ms = now_ms;
	charge(budget, account, used_ms, now_ms);
}

enum parse_verdict parse_budget_verdict(struct parse_budget *budget, uint32_t executable,
					int64_t now_ms)
{
	struct parse_account *account = find(budget, executable);

	if (account) {
		age(account, now_ms);
		if (account->refused_until_ms)
			return PARSE_REFUSED;
	}
	age_all(budget, now_ms);
	return budget->all_us > PARSE_ALL_MS * 1000 && !has_answered(budget, executable)
		       ? PARSE_LATER
		       : PARSE_NOW;
}
