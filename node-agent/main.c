/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: options, capture, locate, aggregate, ship; until a signal. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/self_path.h"
#include "node-agent/agent.h"
#include "node-agent/check/check.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/own_process.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/unwind/row_worker.h"

enum {
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 3, /* this kernel or these privileges do not allow BPF */
};

enum {
	POLL_MS = 200, /* the kernel wakes us for copied stacks, or when a ring fills */
	SWEEP_MS = 1000,
	SUMMARY_MS = 60 * 1000,
	LAST_STACKS_MS = 500,
	DRAIN_MS = 2000, /* of the 3 s that SIGTERM has */
};

struct run {
	struct agent agent;
	int argument_count;
	char **arguments;
	bool begins_anew; /* with other options, once it has finished */
};

/* --- signals --- */

static volatile sig_atomic_t stop_signals, reload_signals;

/* The first asks to end well, the second to end. */
static void on_stop_signal(int number)
{
	(void)number;
	if (stop_signals++)
		_exit(EXIT_FAILURE);
}

static void on_reload_signal(int number)
{
	(void)number;
	reload_signals = 1;
}

/* One that comes while another program text is loaded waits until it is caught there. */
static void hold_reload(int how)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigprocmask(how, &signals, NULL);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop_signal};
	struct sigaction reload = {.sa_handler = on_reload_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &reload, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	hold_reload(SIG_UNBLOCK);
}

/* --- the run --- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say_start(const struct agent_options *options)
{
	log_info("profiling",
		 "version=%s host=\"%s\" rate_hz=%u report_interval_ms=%" PRId64 " to=%s",
		 FARFLAME_VERSION, options->host, options->frequency_hz,
		 options->report_interval_ms, options->server ? options->server : options->output);
	if (options->token_file && options->server && !strncmp(options->server, "http://", 7))
		log_warn("token without TLS", "url=%s everybody_on_the_way_can=read_it",
			 options->server);
}

static void say_summary(struct agent *agent)
{
	struct ship_counters counters = {0};

	if (agent->ship)
		ship_counters(agent->ship, &counters);
	reporter_log_summary(agent->reporter, &counters);
}

static int sooner(int64_t a_ms, int64_t b_ms)
{
	return (int)(a_ms < b_ms ? a_ms : b_ms);
}

/* Takes what has come of the parser's answers, and lets capture wait for the next. */
static void run_stacks(struct agent *agent)
{
	int fd;

	stacks_run(agent->stacks);
	if (stacks_descriptor(agent->stacks, &fd))
		capture_watch(agent->capture, fd);
}

/* SIGHUP: other options take effect by beginning anew, under the same process id. True: there are
 * others, and they are good. */
static bool reload(const struct run *run)
{
	const struct agent *agent = &run->agent;
	static struct agent_options read;
	struct error err = {0};

	reload_signals = 0;
	if (!agent->ship) {
		log_warn("not read again", "why=\"--output writes one profile\"");
		return false;
	}
	read = (struct agent_options){0};
	if (agent_options_read(run->argument_count, run->arguments, &read, &err) != OPTIONS_RUN) {
		log_set_level((enum log_level)agent->options->log_level);
		log_error("options not taken", "why=\"%s\"", err.message);
		return false;
	}
	if (agent_options_same(agent->options, &read)) {
		log_info("options read again", "changed=nothing");
		return false;
	}
	log_info("options read again", "profile=%s", read.profile);
	return true;
}

/* Until a signal, the end of --duration, or a broken capture. */
static bool profile(struct run *run, struct error *err)
{
	struct agent *agent = &run->agent;
	const struct agent_options *options = agent->options;
	int64_t now = now_ms(), sweep = now + SWEEP_MS, summary = now + SUMMARY_MS;
	int64_t report = now + options->report_interval_ms;
	int64_t end = options->duration_ms ? now + options->duration_ms : INT64_MAX;

	while (!stop_signals && now < end) {
		if (reload_signals && reload(run)) {
			run->begins_anew = true;
			break;
		}
		int64_t due = agent->ship && report < end ? report : end;

		if (!capture_poll(agent->capture, due > now ? sooner(due - now, POLL_MS) : 0, err))
			return error_prefix(err, "capture");
		run_stacks(agent);
		if (agent->probes)
			memory_probes_run(agent->probes);
		if (agent->windows)
			allocation_windows_run(agent->windows);
		now = now_ms();
		if (now >= sweep) {
			process_table_sweep(agent->table, (uint64_t)now * 1000000);
			requests_run(agent->requests, now);
			sweep = now + SWEEP_MS;
		}
		if (agent->ship && now >= report) {
			reporter_ship(agent->reporter, agent->ship);
			while (report <= now)
				report += options->report_interval_ms;
		}
		if (now >= summary) {
			say_summary(agent);
			summary = now + SUMMARY_MS;
		}
	}
	return true;
}

/* The last interval, then what waits for the server: all within 3 s of the signal. */
static bool finish(struct agent *agent, struct error *err)
{
	struct ship_counters counters;
	uint64_t unsent;

	allocation_windows_stop(agent->windows);
	capture_stop(agent->capture);
	stacks_drain(agent->stacks, LAST_STACKS_MS);
	waits_finish(agent->waits);
	allocation_windows_finish(agent->windows);
	if (!agent->ship) {
		say_summary(agent);
		return reporter_write(agent->reporter, agent->options->output, err);
	}
	reporter_ship(agent->reporter, agent->ship);
	unsent = ship_stop(agent->ship, DRAIN_MS, &counters);
	agent->ship = NULL;
	reporter_log_summary(agent->reporter, &counters);
	if (counters.spool_bytes)
		log_info("spool", "directory=\"%s\" keeps_bytes=%" PRIu64, agent->options->spool,
			 counters.spool_bytes);
	if (unsent)
		log_warn("samples not sent", "samples=%" PRIu64 " at=end", unsent);
	return true;
}

/* Does not return if it can be: options are read and programs loaded as at any start. */
static void begin_anew(char **arguments)
{
	char path[PATH_MAX];

	hold_reload(SIG_BLOCK);
	execv(self_path(path, sizeof path), arguments);
	fprintf(stderr, "farflame-agent: begin anew: %s\n", strerror(errno));
}

static int run_agent(const struct agent_options *options, int argc, char **argv)
{
	struct run run = {.agent.options = options, .argument_count = argc, .arguments = argv};
	struct error err = {0};
	int status = EXIT_FAILURE;

	if (!agent_open(&run.agent, &err)) {
		status = err.kind == ERROR_UNSUPPORTED ? EXIT_NOT_PERMITTED : EXIT_FAILURE;
		goto out;
	}
	if (!agent_open_output(&run.agent, &err)) {
		status = err.kind == ERROR_OPTION ? EXIT_USAGE : EXIT_FAILURE;
		goto out;
	}
	say_start(options);
	if (profile(&run, &err))
		status = EXIT_SUCCESS;
	else
		log_error("profiling ended", "why=\"%s\"", err.message);
	if (!finish(&run.agent, &err))
		status = EXIT_FAILURE;
	else if (status == EXIT_SUCCESS)
		err.kind = ERROR_NONE;
out:
	if (err.kind != ERROR_NONE)
		fprintf(stderr, "farflame-agent: %s\n", err.message);
	agent_close(&run.agent);
	if (run.begins_anew && status == EXIT_SUCCESS && !stop_signals) {
		begin_anew(argv);
		status = EXIT_FAILURE;
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct agent_options options;
	struct error err = {0};
	int child = kernel_loader_main(argc, argv);

	if (child < 0)
		child = row_worker_main(argc, argv);
	if (child >= 0)
		return child; /* this was one that loads the BPF programs, or parses files */
	switch (agent_options_read(argc, argv, &options, &err)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_FAILED:
		fprintf(stderr, "farflame-agent: %s\n", err.message);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	if (options.check)
		return check_run(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	own_memory_small();
	own_priority_high();
	catch_signals();
	return run_agent(&options, argc, argv);
}
