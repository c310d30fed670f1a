/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: options, capture, locate, aggregate, ship; until a signal. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/self_path.h"
#include "node-agent/agent.h"
#include "node-agent/kernel/check.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/own_process.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/network/network.h"
#include "node-agent/status/agent_facts.h"
#include "node-agent/file_parser/file_parser.h"

enum {
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 3, /* this kernel or these privileges do not allow BPF */
};

enum {
	POLL_MS = 200, /* the kernel wakes us for copied stacks, or when a ring fills */
	SWEEP_MS = 1000,
	SUMMARY_MS = 60 * 1000,
	LAST_STACKS_MS = 500,
	DRAIN_MS = 2000,                /* of the 3 s that SIGTERM has */
	BPF_AGAIN_FIRST_MS = 10 * 1000, /* doubles */
	BPF_AGAIN_LAST_MS = 3600 * 1000,
};

struct run {
	struct agent agent;
	int argument_count;
	char **arguments;
	bool said_ended;  /* all of --pid */
	bool begins_anew; /* with other options or BPF, once it has finished */
	int64_t bpf_again_ms, bpf_wait_ms;
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

/* Those that come while another program text is loaded wait until they are caught there. True: they
 * were held before. */
static bool hold_signals(int how)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	return !sigprocmask(how, &signals, &before) && sigismember(&before, SIGHUP) > 0;
}

/* True: this is no first start, but a SIGHUP's. */
static bool catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop_signal};
	struct sigaction reload = {.sa_handler = on_reload_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &reload, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	return hold_signals(SIG_UNBLOCK);
}

/* --- the run --- */

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

/* --- the processes of --pid --- */

static bool is_there(uint32_t pid)
{
	return !kill((pid_t)pid, 0) || errno != ESRCH;
}

static bool check_pids(const struct agent_options *options, struct error *err)
{
	for (size_t i = 0; i < options->pid_count; i++)
		if (!is_there(options->pids[i]))
			return error_set(err, ERROR_OPTION, "--pid %u: there is no such process",
					 options->pids[i]);
	return true;
}

/* They may come to an end, and nothing is profiled then. */
static void watch_pids(struct run *run)
{
	const struct agent_options *options = run->agent.options;
	size_t i = 0;

	if (!options->pid_count || run->said_ended)
		return;
	while (i < options->pid_count && !is_there(options->pids[i]))
		i++;
	if (i < options->pid_count)
		return;
	run->said_ended = true;
	log_warn("nothing is left to profile", "ended=%zu of=--pid", options->pid_count);
}

/* What kept BPF programs out may be over: memory, a limit. */
static bool wants_bpf_again(struct run *run, int64_t now)
{
	if (!run->agent.ship || now < run->bpf_again_ms)
		return false;
	run->bpf_wait_ms = !run->bpf_wait_ms                          ? BPF_AGAIN_FIRST_MS
			   : run->bpf_wait_ms < BPF_AGAIN_LAST_MS / 2 ? 2 * run->bpf_wait_ms
								      : BPF_AGAIN_LAST_MS;
	run->bpf_again_ms = now + run->bpf_wait_ms;
	if (run->bpf_wait_ms == BPF_AGAIN_FIRST_MS || !agent_could_use_bpf(&run->agent))
		return false;
	log_info("BPF programs can be loaded now", "so=\"the agent begins anew\"");
	return true;
}

/* Until a signal, the end of --duration, or a broken capture. */
static bool profile(struct run *run, struct error *err)
{
	struct agent *agent = &run->agent;
	const struct agent_options *options = agent->options;
	int64_t now = monotonic_ms(), sweep = now + SWEEP_MS, summary = now + SUMMARY_MS;
	int64_t report = now + options->report_interval_ms;
	int64_t end = options->duration_ms ? now + options->duration_ms : INT64_MAX;

	while (!stop_signals && now < end) {
		if (reload_signals && reload(run)) {
			run->begins_anew = true;
			break;
		}
		int64_t due = agent->ship && report < end ? report : end;
		int wait_ms = due > now ? sooner(due - now, POLL_MS) : 0;

		if (agent->runtimes)
			wait_ms = (int)runtimes_wait_ms(agent->runtimes, now, wait_ms);
		if (!capture_poll(agent->capture, wait_ms, err))
			return error_prefix(err, "capture");
		run_stacks(agent);
		if (agent->runtimes)
			runtimes_run(agent->runtimes, monotonic_ms());
		if (agent->probes)
			memory_probes_run(agent->probes);
		if (agent->windows)
			allocation_windows_run(agent->windows);
		now = monotonic_ms();
		if (now >= sweep) {
			process_table_sweep(agent->table, (uint64_t)now * 1000000);
			requests_run(agent->requests, now);
			watch_pids(run);
			if (wants_bpf_again(run, now)) {
				run->begins_anew = true;
				break;
			}
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
static bool finish(struct agent *agent, bool begins_anew, struct error *err)
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
	unsent = agent_stop_ship(agent, DRAIN_MS, &counters);
	reporter_log_summary(agent->reporter, &counters);
	if (counters.spool_bytes)
		log_info("spool", "directory=\"%s\" keeps_bytes=%" PRIu64, agent->options->spool,
			 counters.spool_bytes);
	if (unsent)
		log_warn("samples not sent", "samples=%" PRIu64 " at=end", unsent);
	if (unsent && agent->options->duration_ms && !begins_anew)
		return error_set(err, ERROR_BUSY, "%" PRIu64 " samples could not be sent to %s",
				 unsent, agent->options->server);
	return true;
}

/* Children that ended while another program text came: nobody else would wait for them. */
static void reap_old(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Does not return if it can be: options are read and programs loaded as at any start. False: it
 * cannot; true: it is to end meanwhile. */
static bool begin_anew(char **arguments)
{
	char path[PATH_MAX];

	hold_signals(SIG_BLOCK);
	if (!stop_signals) {
		execv(self_path(path, sizeof path), arguments);
		fprintf(stderr, "farflame-agent: begin anew: %s\n", strerror(errno));
	}
	hold_signals(SIG_UNBLOCK);
	return stop_signals;
}

static int run_agent(const struct agent_options *options, int argc, char **argv, bool is_anew)
{
	struct run run = {.agent.options = options, .argument_count = argc, .arguments = argv};
	struct error err = {0};
	int status = EXIT_FAILURE;

	if (is_anew)
		reap_old();
	if (!is_anew && !check_pids(options, &err)) {
		status = EXIT_USAGE;
		goto out;
	}
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
	if (!finish(&run.agent, run.begins_anew, &err))
		status = EXIT_FAILURE;
	else if (status == EXIT_SUCCESS)
		err.kind = ERROR_NONE;
out:
	if (err.kind != ERROR_NONE)
		fprintf(stderr, "farflame-agent: %s\n", err.message);
	agent_close(&run.agent);
	if (run.begins_anew && status == EXIT_SUCCESS && !begin_anew(argv))
		status = EXIT_FAILURE;
	if (run.agent.is_left_behind) { /* exit() takes away what it uses */
		fflush(NULL);
		_exit(status);
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct agent_options options;
	struct error err = {0};
	int child = kernel_loader_main(argc, argv);

	if (child < 0)
		child = file_parser_main(argc, argv);
	if (child < 0)
		child = stranger_reader_main(argc, argv);
	if (child < 0)
		child = network_main(argc, argv);
	if (child >= 0)
		return child; /* one that loads BPF programs, parses files, reads memory, or sends */
	switch (agent_options_read(argc, argv, &options, &err)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_FAILED:
		fprintf(stderr, "farflame-agent: %s\n", err.message);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	if (options.status)
		return agent_facts_show(options.metrics_file ? options.metrics_file
							     : AGENT_FACTS_FILE,
					unix_time_ms(), stdout);
	if (options.check)
		return check_run(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	own_memory_small();
	own_priority_high();
	return run_agent(&options, argc, argv, catch_signals());
}
