/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/server_options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field_)    offsetof(struct server_options, field_)
#define MIB           (UINT64_C(1) << 20)
#define LARGEST_BYTES (UINT64_C(1) << 60)

static const struct option_row rows[] = {
	{.name = "listen",
	 .type = OPTION_TEXT,
	 .offset = AT(listen),
	 .fallback = "127.0.0.1:7878",
	 .argument = "ADDRESS:PORT",
	 .help = "where to listen; port 0 takes a free one"},
	{.name = "data",
	 .type = OPTION_TEXT,
	 .offset = AT(data),
	 .fallback = "/var/lib/farflame",
	 .argument = "DIR",
	 .help = "everything that is kept; nothing is written outside of it"},
	{.name = "store",
	 .type = OPTION_TEXT,
	 .offset = AT(store),
	 .fallback = "sqlite",
	 .argument = "sqlite|clickhouse=URL",
	 .help = "where samples are kept: below --data, or in ClickHouse, for several servers "
		 "together: http[s]://USER:PASSWORD@HOST:PORT/DATABASE[?cluster=NAME], or "
		 "?password-file=PATH whose first line is the password (& between the two)"},
	{.name = "debuginfod",
	 .type = OPTION_LIST,
	 .offset = AT(debuginfod),
	 .argument = "URL",
	 .help = "debuginfod server to ask for debug files, in this order; none by default"},
	{.name = "symbol-dir",
	 .type = OPTION_LIST,
	 .offset = AT(symbol_dirs),
	 .argument = "DIR",
	 .help = "directory with ELF or debug files, read recursively"},
	{.name = "sources",
	 .type = OPTION_CHOICE,
	 .offset = AT(sources),
	 .fallback = "off",
	 .argument = "off|local|all",
	 .help = "source files for debuggers: none; those below --source-dir and --symbol-dir; or "
		 "any that everybody on this machine may read. Only such as a module's debug "
		 "information names, which may come by an upload"},
	{.name = "source-dir",
	 .type = OPTION_LIST,
	 .offset = AT(source_dirs),
	 .argument = "DIR",
	 .help = "with --sources local: directory whose files may be served as sources"},
	{.name = "retention",
	 .type = OPTION_TEXT,
	 .offset = AT(retention),
	 .fallback = "7d",
	 .argument = "DURATION[,10m:DURATION][,1h:DURATION]",
	 .help = "how long samples are kept by the minute, and summed up by 10 minutes and by the "
		 "hour; 0s keeps them"},
	{.name = "trace-retention",
	 .type = OPTION_TEXT,
	 .offset = AT(trace_retention),
	 .fallback = "24h",
	 .argument = "DURATION",
	 .help = "how long samples are found by the trace and span they came with; 0s: they are "
		 "not"},
	{.name = "max-disk",
	 .type = OPTION_TEXT,
	 .offset = AT(max_disk),
	 .fallback = "0",
	 .argument = "SIZE|PERCENT%",
	 .help = "disk that samples may take, or their share of the file system that --data is "
		 "on, oldest deleted first, minutes before sums; when today's alone reach it, "
		 "reports are refused; 0: no limit"},
	{.name = "series-limit",
	 .type = OPTION_UINT,
	 .offset = AT(series_limit),
	 .minimum = 1,
	 .maximum = 1000000,
	 .fallback = "100000",
	 .argument = "N",
	 .help = "series a day may have; when most are taken, further ones of a host that has its "
		 "share are one series of it, process \"other\", and counted"},
	{.name = "dictionary-memory",
	 .type = OPTION_SIZE,
	 .offset = AT(dictionary_memory_bytes),
	 .minimum = 16 * MIB,
	 .maximum = LARGEST_BYTES,
	 .fallback = "1G",
	 .argument = "SIZE",
	 .help = "memory for the stacks and names of all days in use; when most is taken, new "
		 "stacks "
		 "of a host that has its share are left out of its samples, and counted"},
	{.name = "symbol-memory",
	 .type = OPTION_SIZE,
	 .offset = AT(symbol_memory_bytes),
	 .minimum = 16 * MIB,
	 .maximum = LARGEST_BYTES,
	 .fallback = "256M",
	 .argument = "SIZE",
	 .help = "memory for symbol tables in use; least used ones leave it first"},
	{.name = "symbol-disk",
	 .type = OPTION_SIZE,
	 .offset = AT(symbol_disk_bytes),
	 .minimum = 0,
	 .maximum = LARGEST_BYTES,
	 .fallback = "10G",
	 .argument = "SIZE",
	 .help = "disk for packed symbol tables, least used dropped first; 0: no limit"},
	{.name = "upload-disk",
	 .type = OPTION_SIZE,
	 .offset = AT(upload_disk_bytes),
	 .minimum = 0,
	 .maximum = LARGEST_BYTES,
	 .fallback = "10G",
	 .argument = "SIZE",
	 .help = "disk for uploaded files, those not used for longest deleted first; 256M of the "
		 "disk stay free in any case; 0: no other limit"},
	{.name = "workers",
	 .type = OPTION_UINT,
	 .offset = AT(workers),
	 .minimum = 2,
	 .maximum = 256,
	 .fallback = "8",
	 .argument = "N",
	 .help = "threads that answer requests; queries never take all of them"},
	{.name = "queries",
	 .type = OPTION_UINT,
	 .offset = AT(queries),
	 .minimum = 1,
	 .maximum = 255,
	 .fallback = "4",
	 .argument = "N",
	 .help = "queries and uploads at a time; 16 times as many wait, further ones get 503"},
	{.name = "query-time",
	 .type = OPTION_DURATION,
	 .offset = AT(query_time_ms),
	 .minimum = 1,
	 .maximum = 86400000,
	 .fallback = "30s",
	 .argument = "DURATION",
	 .help = "how long one query may take; then it gets 422"},
	{.name = "query-memory",
	 .type = OPTION_SIZE,
	 .offset = AT(query_memory_bytes),
	 .minimum = MIB,
	 .maximum = LARGEST_BYTES,
	 .fallback = "512M",
	 .argument = "SIZE",
	 .help = "memory one query may take; its answer then has the heaviest stacks and says "
		 "what was cut"},
	{.name = "query-rows",
	 .type = OPTION_UINT,
	 .offset = AT(query_rows),
	 .minimum = 1,
	 .maximum = UINT32_MAX,
	 .fallback = "20000000",
	 .argument = "N",
	 .help = "rows (a minute of a series) one query may read; then it gets 422"},
	{.name = "symbol-workers",
	 .type = OPTION_UINT,
	 .offset = AT(symbol_workers),
	 .minimum = 1,
	 .maximum = 64,
	 .fallback = "1",
	 .argument = "N",
	 .help = "debug files converted at a time, each in a process of its own"},
	{.name = "connections",
	 .type = OPTION_UINT,
	 .offset = AT(connections),
	 .minimum = 16,
	 .maximum = 1000000,
	 .fallback = "12000",
	 .argument = "N",
	 .help = "connections at a time; for further ones those idle for longest are closed, last "
		 "agents "
		 "that have sent reports"},
	{.name = "insecure",
	 .type = OPTION_FLAG,
	 .offset = AT(insecure),
	 .help = "allow --listen beyond this host, without passwords or encryption"},
	{.name = "allow-host",
	 .type = OPTION_LIST,
	 .offset = AT(hosts),
	 .argument = "NAME",
	 .help = "a name by which requests may call this server (Host), as behind a proxy, besides "
		 "localhost, --listen, this host's name and addresses; * allows any"},
	{.name = "import",
	 .type = OPTION_LIST,
	 .offset = AT(imports),
	 .argument = "FILE.otlp",
	 .help = "read a file that farflame-agent --output wrote, then serve",
	 .command_line_only = true},
	{.name = "backup",
	 .type = OPTION_TEXT,
	 .offset = AT(backup),
	 .argument = "DIR",
	 .help = "copy --data to this new directory, also while a server runs on it, then end",
	 .command_line_only = true},
	{.name = "backup-base",
	 .type = OPTION_TEXT,
	 .offset = AT(backup_base),
	 .argument = "DIR",
	 .help = "with --backup: an earlier backup on the same disk; what did not change since is "
		 "linked to it, not copied",
	 .command_line_only = true},
	{.name = "verify",
	 .type = OPTION_FLAG,
	 .offset = AT(verify),
	 .help = "read all of --data and say what is damaged, a server may run on it, then end",
	 .command_line_only = true},
	{.name = "repair",
	 .type = OPTION_CHOICE,
	 .offset = AT(repair),
	 .fallback = "no",
	 .argument = "no|plan|drop",
	 .help = "plan: say of what is damaged in --data what can be kept and what would be lost; "
		 "drop: do so, without a server on it; then end",
	 .command_line_only = true},
	{.name = "log-level",
	 .type = OPTION_CHOICE,
	 .offset = AT(log_level),
	 .fallback = "info",
	 .argument = "error|warn|info|debug",
	 .help = "what is written to stderr"},
	{.name = "tls-cert",
	 .type = OPTION_LATER,
	 .argument = "FILE",
	 .help = "this version does not speak TLS; put a proxy in front of it"},
	{.name = "tls-key",
	 .type = OPTION_LATER,
	 .argument = "FILE",
	 .help = "this version does not speak TLS; put a proxy in front of it"},
	{.name = "tokens",
	 .type = OPTION_LATER,
	 .argument = "FILE",
	 .help = "this version knows no tokens; put a proxy in front of it"},
	{0},
};

const struct option_program server_program = {
	.name = "farflame-server",
	.summary = "Takes profiles of a fleet, finds the names, serves flame graphs.",
	.version = FARFLAME_VERSION,
	.rows = rows,
};

bool listen_is_loopback(const char *listen)
{
	return !strncmp(listen, "127.", 4) || !strncmp(listen, "[::1]:", 6) ||
	       !strncmp(listen, "localhost:", 10);
}

/* One of "7d", "10m:30d", "1h:400d". */
static bool read_kept(const char *text, const char *prefix, const char *longer_than,
		      int64_t least_ms, int64_t *ms, struct error *err)
{
	if (!duration_parse(text + strlen(prefix), ms, err))
		return error_prefix(err, "--retention");
	if (*ms && (!least_ms || *ms < least_ms))
		return error_set(err, ERROR_OPTION,
				 "--retention: %s is shorter than %s; sums are kept at least as "
				 "long as what they were made of",
				 text, longer_than);
	return true;
}

static bool read_retention(struct server_options *options, struct error *err)
{
	int64_t *rolled_ms = options->rollup_retention_ms, longest_ms;
	char text[200], *rest = text, *part;
	bool has[2] = {false};

	if (snprintf(text, sizeof text, "%s", options->retention) >= (int)sizeof text)
		return error_set(err, ERROR_OPTION, "--retention is too long");
	part = strsep(&rest, ",");
	if (!duration_parse(part, &options->retention_ms, err))
		return error_prefix(err, "--retention");
	if (!duration_parse(options->trace_retention, &options->trace_retention_ms, err))
		return error_prefix(err, "--trace-retention");
	longest_ms = options->retention_ms;
	while ((part = strsep(&rest, ","))) {
		bool is_hour = !strncmp(part, "1h:", 3);

		if ((!is_hour && strncmp(part, "10m:", 4)) || has[is_hour] || has[1])
			return error_set(err, ERROR_OPTION,
					 "--retention %s: write it as 7d,10m:30d,1h:400d, where "
					 "10m or 1h may be left out",
					 options->retention);
		has[is_hour] = true;
		if (!read_kept(part, is_hour ? "1h:" : "10m:",
			       has[0] && is_hour ? "that of 10m" : "that of minutes", longest_ms,
			       &rolled_ms[is_hour], err))
			return false;
		if (!rolled_ms[is_hour])
			rolled_ms[is_hour] = INT64_MAX;
		longest_ms = rolled_ms[is_hour] == INT64_MAX ? 0 : rolled_ms[is_hour];
	}
	return true;
}

/* The rest of the URL is looked at by who uses it: a message must not hold its password. */
static bool read_store(struct server_options *options, struct error *err)
{
	static const char clickhouse[] = "clickhouse=";

	if (!strcmp(options->store, "sqlite"))
		return true;
	if (strncmp(options->store, clickhouse, sizeof(clickhouse) - 1) != 0)
		return error_set(err, ERROR_OPTION, "--store is sqlite or clickhouse=URL");
	options->clickhouse_url = options->store + sizeof(clickhouse) - 1;
	return true;
}

static bool read_max_disk(struct server_options *options, struct error *err)
{
	const char *text = options->max_disk;
	size_t digits = strspn(text, "0123456789");

	if (text[digits] != '%' || text[digits + 1])
		return size_parse(text, &options->max_disk_bytes, err) ||
		       error_prefix(err, "--max-disk");
	options->max_disk_percent = digits < 4 ? (unsigned)atoi(text) : 0;
	if (!options->max_disk_percent || options->max_disk_percent > 95)
		return error_set(err, ERROR_OPTION, "--max-disk: a share is 1%% to 95%%, not '%s'",
				 text);
	return true;
}

/* "127.0.0.1:7878", "[::1]:0", "localhost:80": host and port, whatever the host is. */
static bool check_listen(const char *listen, struct error *err)
{
	const char *colon = strrchr(listen, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	bool has_host = colon && colon > listen && !listen[strcspn(listen, "\"' ")];
	bool is_bare_v6 = has_host && *listen != '[' && strchr(listen, ':') != colon;

	if (has_host && !is_bare_v6 && digits && digits < 6 && !colon[1 + digits] &&
	    atoi(colon + 1) <= UINT16_MAX)
		return true;
	return error_set(err, ERROR_OPTION,
			 "--listen '%s' is not an address and a port such as 127.0.0.1:7878 or "
			 "[::1]:7878",
			 listen);
}

enum options_action server_options_read(int argc, char **argv, struct server_options *options,
					struct error *err)
{
	enum options_action action = options_read(&server_program, argc, argv, options, err);

	if (action != OPTIONS_RUN)
		return action;
	if (options->backup_base && !options->backup) {
		error_set(err, ERROR_OPTION, "--backup-base is for --backup");
		return OPTIONS_FAILED;
	}
	if (!read_retention(options, err) || !read_store(options, err) ||
	    !read_max_disk(options, err) || !check_listen(options->listen, err))
		return OPTIONS_FAILED;
	if (!listen_is_loopback(options->listen) && !options->insecure) {
		error_set(
			err, ERROR_OPTION,
			"--listen %s can be reached from other hosts, and this version has neither "
			"passwords nor encryption: whoever reaches it reads every profile and may "
			"send any; add --insecure if that is meant",
			options->listen);
		return OPTIONS_FAILED;
	}
	return OPTIONS_RUN;
}
