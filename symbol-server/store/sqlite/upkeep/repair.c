/* SPDX-License-Identifier: Apache-2.0 */
/* What is damaged leaves a data directory, said before it is done. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "symbol-server/store/data_directory.h"
#include "symbol-server/store/sqlite/journal/journal.h"
#include "symbol-server/store/samples.h"
#include "symbol-server/store/sqlite/days/day_salvage.h"
#include "symbol-server/store/sqlite/upkeep/folder_names.h"
#include "symbol-server/store/sqlite/upkeep/verify.h"

enum { PATH_ROOM = 4200, SERIES_MAX = 1000000 };

struct repair {
	const char *data;
	bool drops;
	FILE *out;
	struct repair_report *report;
};

/* ---- names ---- */

/* ---- databases ---- */

/* What a server does about such a file when it meets it. */
static const char *fate_of(const char *name)
{
	if (!strncmp(name, "hours-", 6))
		return "dropped; made again of the days that are there";
	if (!strcmp(name, "symbols.db"))
		return "dropped; tables of names are made again of their files";
	if (!strcmp(name, "agents.db"))
		return "dropped; what agents counted so far is forgotten";
	return "dropped";
}

static bool put_saved(const char *path, const char *saved, const char *damage, struct error *err)
{
	database_set_aside(path, damage);
	if (!access(path, F_OK))
		return error_set(err, ERROR_SYSTEM, "'%s' cannot be renamed", path);
	return !*saved || !rename(saved, path) ||
	       error_set_system(err, errno, "put '%s' in place", saved);
}

static bool repair_database(void *context, const char *path, const char *name, struct error *err)
{
	struct repair *repair = context;
	char damage[480], saved[PATH_ROOM + 16];
	struct salvaged salvaged = {0};
	struct error why = {0};
	uint32_t day;
	bool is_saved;

	if (!verify_is_damaged(path, damage, sizeof damage))
		return true;
	repair->report->damaged++;
	fprintf(repair->out, "%s: %s\n", name, damage);
	snprintf(saved, sizeof saved, "%s.saved", path);
	is_saved = day_file_parse(name, &day) &&
		   day_salvage(path, saved, day, NULL, &salvaged, &why);
	if (is_saved)
		fprintf(repair->out,
			"%s: kept: %" PRIu64 " samples; lost: %" PRIu64 " samples, %" PRIu64
			" rows, %" PRIu64 " definitions\n",
			name, salvaged.samples, salvaged.samples_lost, salvaged.rows_lost,
			salvaged.definitions_lost);
	else
		fprintf(repair->out, "%s: %s%s%s\n", name, fate_of(name), why.kind ? ": " : "",
			why.message);
	repair->report->samples_kept += salvaged.samples;
	repair->report->samples_lost += salvaged.samples_lost;
	if (repair->drops)
		return put_saved(path, is_saved ? saved : "", damage, err);
	if (is_saved)
		unlink(saved); /* it was made to be counted */
	return true;
}

/* ---- the journal ---- */

static bool repair_segment(void *context, const char *path, const char *name, struct error *err)
{
	struct repair *repair = context;
	char damage[480];

	if (!verify_is_damaged(path, damage, sizeof damage))
		return true;
	repair->report->damaged++;
	fprintf(repair->out,
		"%s: %s\n%s: dropped, with what follows it in its group; what they had is "
		"accounted "
		"for as lost, the rest goes into the days\n",
		name, damage, name);
	return !repair->drops || !unlink(path) || error_set_system(err, errno, "delete '%s'", path);
}

/* All that was acknowledged goes into the days. Nothing is too old, traces neither. */
static bool fold_journal(const char *data, struct error *err)
{
	const struct samples_store_options options = {
		.directory = data, .series_max = SERIES_MAX, .trace_keep_ms = INT64_MAX};
	struct samples_store *store = samples_open(&options, err);
	bool ok = store && samples_fold(store, err);

	samples_close(store);
	return ok;
}

/* As a server holds it. */
static bool is_alone(const char *data, struct error *err)
{
	struct journal *journal;
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/journal", data);
	journal = journal_open(path, UINT64_MAX, err);
	journal_close(journal);
	return journal;
}

bool data_repair(const char *data, bool drops, FILE *out, struct repair_report *report,
		 struct error *err)
{
	struct repair repair = {data, drops, out, report};
	char path[PATH_ROOM];

	*report = (struct repair_report){0};
	if (access(data, R_OK))
		return error_set_system(err, errno, "read directory '%s'", data);
	if (drops && !is_alone(data, err))
		return false;
	snprintf(path, sizeof path, "%s/journal", data);
	return folder_names_each(data, ".db", repair_database, &repair, err) &&
	       (!drops || fold_journal(data, err)) &&
	       folder_names_each(path, ".journal", repair_segment, &repair, err);
}
