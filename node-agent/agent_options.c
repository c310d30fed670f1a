/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/agent_options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/network/url.h"
#include "node-agent/stacks/sample_types.h"
#include "node-agent/status/agent_facts.h"

#define AT(field_) offsetof(struct agent_options, field_)

#define BUDGET_OPTION(source_, name_, fallback_, help_)         \
	{.name = name_,                                         \
	 .type = OPTION_TEXT,                                   \
	 .offset = AT(budget_texts[KERNEL_SOURCE_##source_]), \
	 .fallback = fallback_,                                 \
	 .argument = "PERCENT",                                 \
	 .help = help_},

enum { UPLOAD_MISSING, UPLOAD_NEVER };

static const struct option_row rows[] = {
	{.name = "server",
	 .letter = 's',
	 .type = OPTION_TEXT,
	 .offset = AT(server),
	 .argument = "URL",
	 .help = "symbol server to report to, such as http://127.0.0.1:7878"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_TEXT,
	 .offset = AT(output),
	 .argument = "FILE",
	 .help = "write one OTLP profile to FILE instead, when done"},
	{.name = "duration",
	 .letter = 'd',
	 .type = OPTION_DURATION,
	 .offset = AT(duration_ms),
	 .fallback = "0s",
	 .argument = "TIME",
	 .help = "profile for so long and end; 0s: until a signal"},
	{.name = "frequency",
	 .letter = 'F',
	 .type = OPTION_UINT,
	 .offset = AT(frequency_hz),
	 .minimum = 1,
	 .maximum = PROFILED_HZ_MAX,
	 .fallback = "19",
	 .argument = "HZ",
	 .help = "samples per second and CPU, 1 to 1000"},
	{.name = "profile",
	 .type = OPTION_TEXT,
	 .offset = AT(profile),
	 .fallback = "on-cpu",
	 .argument = "TYPES",
	 .help = "what to profile: " SAMPLE_TYPES(SAMPLE_TYPE_LISTED) "separated by commas"},
	STACK_BUDGETS(BUDGET_OPTION)
	{.name = "pid",
	 .letter = 'p',
	 .type = OPTION_LIST,
	 .offset = AT(pid_texts),
	 .argument = "PID",
	 .help = "profile this process only, not the whole host"},
	{.name = "label",
	 .letter = 'l',
	 .type = OPTION_LIST,
	 .offset = AT(label_texts),
	 .argument = "NAME=VALUE",
	 .help = "label of everything this host sends"},
	{.name = "host",
	 .type = OPTION_TEXT,
	 .offset = AT(host),
	 .argument = "NAME",
	 .help = "the label host; default is this machine's host name"},
	{.name = "report-interval",
	 .type = OPTION_DURATION,
	 .offset = AT(report_interval_ms),
	 .minimum = 1000,
	 .maximum = 600000,
	 .fallback = "10s",
	 .argument = "TIME",
	 .help = "equal stacks are counted together for so long, 1s to 10m"},
	{.name = "max-frames",
	 .type = OPTION_UINT,
	 .offset = AT(max_frames),
	 .minimum = 1,
	 .maximum = 1024,
	 .fallback = "1024",
	 .argument = "N",
	 .help = "user frames per stack; deeper ones are cut at the root and say so"},
	{.name = "capture",
	 .type = OPTION_CHOICE,
	 .offset = AT(capture),
	 .fallback = "auto",
	 .argument = "auto|bpf|perf",
	 .help = "how stacks are taken: BPF; or perf events, with more memory and without "
		 "Python's frames; auto: perf where BPF is not permitted"},
	{.name = "upload",
	 .type = OPTION_CHOICE,
	 .offset = AT(upload),
	 .fallback = "missing",
	 .argument = "missing|never",
	 .help = "send executables and debug files that the server asks for"},
	{.name = "upload-rate",
	 .type = OPTION_SIZE,
	 .offset = AT(upload_bytes_per_second),
	 .minimum = 64 << 10,
	 .maximum = 1 << 30,
	 .fallback = "8M",
	 .argument = "BYTES",
	 .help = "most bytes per second of uploads, 64K to 1G"},
	{.name = "queue-limit",
	 .type = OPTION_SIZE,
	 .offset = AT(queue_limit_bytes),
	 .minimum = 64 << 10,
	 .maximum = 1 << 30,
	 .fallback = "8M",
	 .argument = "BYTES",
	 .help = "reports kept in memory while the server is away, 64K to 1G; the oldest go first"},
	{.name = "timeout",
	 .type = OPTION_DURATION,
	 .offset = AT(timeout_ms),
	 .minimum = 100,
	 .maximum = 300000,
	 .fallback = "10s",
	 .argument = "TIME",
	 .help = "longest silence of the server, 100ms to 5m"},
	{.name = "token-file",
	 .type = OPTION_TEXT,
	 .offset = AT(token_file),
	 .argument = "FILE",
	 .help = "file with the token that the server wants; read again when it changes"},
	{.name = "ca-file",
	 .type = OPTION_TEXT,
	 .offset = AT(ca_file),
	 .argument = "FILE",
	 .help = "PEM certificates to trust for https instead of the system's"},
	{.name = "spool",
	 .type = OPTION_TEXT,
	 .offset = AT(spool),
	 .argument = "DIR",
	 .help = "directory where reports wait that the server does not take; without, they wait "
		 "in "
		 "memory only"},
	{.name = "spool-limit",
	 .type = OPTION_SIZE,
	 .offset = AT(spool_limit_bytes),
	 .minimum = 256 << 10,
	 .maximum = 1ull << 40,
	 .fallback = "256M",
	 .argument = "BYTES",
	 .help = "most bytes of the spool's files, 256K to 1T; the oldest reports go first"},
	{.name = "spool-sync",
	 .type = OPTION_DURATION,
	 .offset = AT(spool_sync_ms),
	 .minimum = 0,
	 .maximum = 600000,
	 .fallback = "30s",
	 .argument = "TIME",
	 .help = "a spooled report is on the disk so soon, 0s to 10m; 0s: each one is synced"},
	{.name = "metrics-file",
	 .type = OPTION_TEXT,
	 .offset = AT(metrics_file),
	 .argument = "FILE",
	 .help = "write the agent's own counters there with each report, in Prometheus' text "
		 "format, as node_exporter's textfile collector reads it"},
	{.name = "command-lines",
	 .type = OPTION_CHOICE,
	 .offset = AT(command_lines),
	 .fallback = "full",
	 .argument = "full|name|off",
	 .help = "what is sent of processes' command lines: up to 512 bytes, with *** for what is "
		 "called like a secret; the program's name alone; nothing"},
	{.name = "interpreters",
	 .type = OPTION_CHOICE,
	 .offset = AT(interpreters),
	 .fallback = "on",
	 .argument = "on|off",
	 .help = "frames of Python's functions and of Java's methods, read from their processes' "
		 "memory with each sample"},
	{.name = "timestamps",
	 .type = OPTION_FLAG,
	 .offset = AT(timestamps),
	 .help = "send when each sample was taken: heat maps; some bytes more per sample"},
	{.name = "log-level",
	 .type = OPTION_CHOICE,
	 .offset = AT(log_level),
	 .fallback = "info",
	 .argument = "error|warn|info|debug",
	 .help = "what is written to stderr"},
	{.name = "debug-stacks",
	 .type = OPTION_TEXT,
	 .offset = AT(debug_stacks),
	 .argument = "FILE",
	 .help = "write every stack as text, to compare it with a debugger's; -: to stdout"},
	{.name = "debug-stop",
	 .type = OPTION_FLAG,
	 .offset = AT(debug_stop),
	 .help = "with --pid: stop a thread (SIGSTOP) after each of its samples, for a debugger"},
	{.name = "status",
	 .type = OPTION_FLAG,
	 .offset = AT(status),
	 .command_line_only = true,
	 .help = "say how the agent that runs here fares, by its --metrics-file "
		 "(" AGENT_FACTS_FILE "), and exit: 1 if there is none or its reports are not "
		 "accepted"},
	{.name = "check",
	 .type = OPTION_FLAG,
	 .offset = AT(check),
	 .command_line_only = true,
	 .help = "say what this kernel and these privileges allow, and exit"},
	{.name = NULL},
};

static const struct option_program program = {
	.name = "farflame-agent",
	.summary = "Profiles this host and reports addresses and build-ids to a symbol server.",
	.version = FARFLAME_VERSION,
	.rows = rows,
};

/* --- labels --- */

static bool is_label(const char *name, size_t length, const char *own)
{
	for (size_t i = 0; i < length; i++)
		if (own[i] != name[i] && !(own[i] == '_' && strchr(".-", name[i])))
			return false;
	return !own[length];
}

/* Names the product itself gives to every sample (design: labels), or takes for one of these. */
static bool is_own_label(const char *name, size_t length)
{
	static const char *const own[] = {
		"host",
		"process",
		"thread",
		"container",
		"pod",
		"namespace",
		"type",
		"host_name",
		"container_id",
		"k8s_pod_name",
		"k8s_namespace_name",
		"thread_name",
		"thread_id",
		"trace_id",
		"span_id",
		"pid",
		"command",
		"exe",
		"unit",
		"cgroup",
		"user",
		"started",
		"ppid",
		"program",
	};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (is_label(name, length, own[i]))
			return true;
	return length > 5 && is_label(name, 5, "attr_");
}

static bool is_label_name(const char *name, size_t length)
{
	if (!length || length > LABEL_NAME_MAX || (!isalpha((unsigned char)*name) && *name != '_'))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return false;
	return true;
}

static bool is_label_value(const char *value)
{
	if (!*value || strlen(value) > LABEL_VALUE_MAX)
		return false;
	for (; *value; value++)
		if (iscntrl((unsigned char)*value))
			return false;
	return true;
}

static bool has_label(const struct agent_options *options, const char *name, size_t length)
{
	for (size_t i = 0; i < options->label_count; i++)
		if (strlen(options->label_names[i]) == length &&
		    !memcmp(options->label_names[i], name, length))
			return true;
	return false;
}

static bool add_label(struct agent_options *options, const char *text, struct error *err)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	char *name;

	if (!is_label_name(text, length))
		return error_set(err, ERROR_OPTION,
				 "--label takes name=value with a name of letters, digits and _.-, "
				 "not '%.100s'",
				 text);
	if (!is_label_value(equals + 1))
		return error_set(err, ERROR_OPTION,
				 "--label %.*s needs a value of 1 to %d printable bytes",
				 (int)length, text, LABEL_VALUE_MAX);
	if (is_own_label(text, length))
		return error_set(err, ERROR_OPTION,
				 "--label %.*s: every sample has this label already%s", (int)length,
				 text, length == 4 && *text == 'h' ? " (see --host)" : "");
	if (is_label(text, length, "service") || is_label(text, length, "service_name")) {
		options->service = equals + 1;
		return true;
	}
	if (has_label(options, text, length))
		return error_set(err, ERROR_OPTION, "--label %.*s is given twice", (int)length,
				 text);
	if (options->label_count == LABELS_MAX)
		return error_set(err, ERROR_OPTION, "--label: more than %d labels", LABELS_MAX);
	name = strndup(text, length); /* for the life of the process, as all option texts */
	if (!name)
		return error_set(err, ERROR_MEMORY, "no memory for a label");
	options->label_names[options->label_count] = name;
	options->label_values[options->label_count++] = equals + 1;
	return true;
}

/* --- process ids and types --- */

/* One or more, separated by commas. */
static bool add_pids(struct agent_options *options, const char *text, struct error *err)
{
	for (const char *at = text;; at++) {
		char *end;
		long pid;

		errno = 0;
		pid = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
		if (pid < 1 || pid > INT32_MAX || errno || (*end && *end != ','))
			return error_set(err, ERROR_OPTION, "--pid takes process ids, not '%.100s'",
					 text);
		if (options->pid_count == PIDS_MAX)
			return error_set(err, ERROR_OPTION, "--pid: more than %d processes",
					 PIDS_MAX);
		options->pids[options->pid_count++] = (uint32_t)pid;
		at = end;
		if (!*at)
			return true;
	}
}

static int type_find(const char *name, size_t length)
{
#define TYPE_NAME(id_, name_, unit_, wants_, record_) name_,
	static const char *const names[] = {SAMPLE_TYPES(TYPE_NAME)};

	for (int i = 0; i < SAMPLE_TYPE_COUNT; i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return i;
	return -1;
}

static bool is_later(const char *name, size_t length)
{
	static const char *const later[] = {"on-gpu", "hbm-alloc", "hbm-inuse", "rdma"};

	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		if (strlen(later[i]) == length && !memcmp(later[i], name, length))
			return true;
	return false;
}

static bool read_types(struct agent_options *options, struct error *err)
{
	const char *at = options->profile;

	for (;; at++) {
		size_t length = strcspn(at, ",");
		int type = type_find(at, length);

		if (is_later(at, length))
			return error_set(err, ERROR_UNSUPPORTED,
					 "--profile: this version does not take %.*s yet",
					 (int)length, at);
		if (type < 0)
			return error_set(err, ERROR_OPTION,
					 "--profile takes " SAMPLE_TYPES(SAMPLE_TYPE_LISTED)
					 "separated by commas, not '%.100s'",
					 options->profile);
		options->types |= 1U << type;
		at += length;
		if (!*at)
			return true;
	}
}

static bool read_budget(const char *option, const char *text, double *share, struct error *err)
{
	char *end;
	double percent = strtod(text, &end);

	if (strcmp(end, "%") || !(percent >= 0.001 && percent <= 100))
		return error_set(err, ERROR_OPTION,
				 "--%s takes a share from 0.001%% to 100%%, such as "
				 "0.1%%, not '%.100s'",
				 option, text);
	*share = percent / 100;
	return true;
}

#define BUDGET_NAME(source_, name_, fallback_, help_) [KERNEL_SOURCE_##source_] = name_,

static bool read_budgets(struct agent_options *options, struct error *err)
{
	static const char *const names[KERNEL_SOURCE_COUNT] = {STACK_BUDGETS(BUDGET_NAME)};

	for (int i = 0; i < KERNEL_SOURCE_COUNT; i++)
		if (names[i] && !read_budget(names[i], options->budget_texts[i],
					     &options->budgets[i], err))
			return false;
	return true;
}

/* --- what one row cannot check --- */

static bool check_target(const struct agent_options *options, struct error *err)
{
	struct url url;

	if (options->check || options->status)
		return true;
	if (!options->server && !options->output)
		return error_set(err, ERROR_OPTION,
				 "where to report to is missing: --server URL, or --output FILE");
	if (options->server && options->output)
		return error_set(err, ERROR_OPTION, "--server and --output exclude each other");
	if (options->spool && (!options->server || !*options->spool))
		return error_set(err, ERROR_OPTION,
				 "--spool needs the name of a directory, and --server");
	if (options->ca_file && options->server && strncmp(options->server, "https://", 8))
		return error_set(err, ERROR_OPTION,
				 "--ca-file says whom to trust for https, but --server is not "
				 "https");
	if (options->ca_file && access(options->ca_file, R_OK))
		return error_set_system(err, errno, "--ca-file '%s'", options->ca_file);
	if (options->output && !*options->output)
		return error_set(err, ERROR_OPTION, "--output needs a file name");
	if (options->server && !url_parse(options->server, &url, err))
		return error_prefix(err, "--server");
	return true;
}

static bool set_host(struct agent_options *options, struct error *err)
{
	static char name[65];

	if (!options->host || !*options->host) {
		if (gethostname(name, sizeof name - 1) < 0)
			return error_set_system(err, errno,
						"read the host name (--host gives one)");
		options->host = name;
	}
	if (!is_label_value(options->host))
		return error_set(err, ERROR_OPTION,
				 "--host needs a name of 1 to %d printable bytes", LABEL_VALUE_MAX);
	return true;
}

static bool complete(struct agent_options *options, struct error *err)
{
	if (!read_types(options, err) || !read_budgets(options, err) ||
	    !check_target(options, err) || !set_host(options, err))
		return false;
	if (options->debug_stop && !options->pid_texts.count)
		return error_set(err, ERROR_OPTION,
				 "--debug-stop needs --pid: it stops what it "
				 "samples");
	for (size_t i = 0; i < options->label_texts.count; i++)
		if (!add_label(options, options->label_texts.texts[i], err))
			return false;
	for (size_t i = 0; i < options->pid_texts.count; i++)
		if (!add_pids(options, options->pid_texts.texts[i], err))
			return false;
	options->upload_missing = options->upload == UPLOAD_MISSING;
	log_set_level((enum log_level)options->log_level);
	return true;
}

enum options_action agent_options_read(int argc, char **argv, struct agent_options *options,
				       struct error *err)
{
	enum options_action action = options_read(&program, argc, argv, options, err);

	if (action == OPTIONS_RUN && !complete(options, err))
		return OPTIONS_FAILED;
	return action;
}

static char *config_text(const struct agent_options *options)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	options_print_config(&program, options, out);
	fclose(out);
	return text;
}

bool agent_options_same(const struct agent_options *a, const struct agent_options *b)
{
	char *left = config_text(a), *right = config_text(b);
	bool are_same = left && right && !strcmp(left, right);

	free(left);
	free(right);
	return are_same;
}
