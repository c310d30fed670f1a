/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet of agents in one process: sends reports as farflame-agent does and keeps an exact tally
 * of what the server said it has. See --help; fleet_check.py compares the tally with the answers.
 */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/tools/fleet/agent.h"

static volatile sig_atomic_t is_told_to_end;

static const char help[] =
	"fleet --server URL [options]: a made-up fleet's reports, counted exactly\n"
	"\n"
	"  --server URL         http://ADDRESS:PORT of a farflame-server\n"
	"  --tally FILE         what was acknowledged, for fleet_check.py\n"
	"  --agents N           agents, each with its own connection (50)\n"
	"  --interval TIME      between two reports of an agent (10s); 0ms: each report as soon "
	"as\n"
	"                       the last one is answered\n"
	"  --reports N          reports of each agent (6)\n"
	"  --duration TIME      instead of --reports: that long\n"
	"  --warmup TIME        latencies count only after that long (0ms)\n"
	"  --settle TIME        at the end, how long to try what is not answered yet (60s)\n"
	"  --timeout TIME       for an answer; then the report is sent again (10s)\n"
	"  --latencies FILE     each answer after the warm-up: a line of the time it was due\n"
	"                       (CLOCK_MONOTONIC) and how long it took from then, in microseconds\n"
	"What is reported:\n"
	"  --samples N          stacks of a report (200)\n"
	"  --apps N             applications; an agent runs one of them (5)\n"
	"  --processes N        processes of an application, each a series (4)\n"
	"  --stacks N           stacks of an application (1000)\n"
	"  --templates N        different reports of an application (20)\n"
	"  --fresh PERCENT      reports with a stack nobody has sent before (20)\n"
	"  --types LIST         profile types, on-cpu,off-cpu,mem-alloc (on-cpu); each after the\n"
	"                       first has a tenth of the stacks\n"
	"  --modules DIR        build-ids of the files there (made up)\n"
	"  --seed N             another seed, other reports (1)\n"
	"  --lifetimes N        samples have their process: so many of each kind (0: none)\n"
	"  --thread-ids N       samples have thread.id: so many threads of each name (0: none)\n"
	"  --links N            samples belong to so many requests, others in each report (0)\n"
	"  --plain              for servers that find no names: type cpu, names of\n"
	"                       functions, one value a sample\n"
	"When, and what goes wrong:\n"
	"  --from TIME          with --span: the first report's time is that long ago (--span)\n"
	"  --span TIME          times of reports are spread over that long instead of being now\n"
	"  --late PERCENT       reports that are late (0)\n"
	"  --late-by TIME       up to that much (3h)\n"
	"  --duplicates PERCENT reports sent twice, on the same or another connection (0)\n"
	"  --restarts PERCENT   reports after which the agent starts anew (0)\n"
	"  --lost PERCENT       reports before which samples were lost (0)\n"
	"\n"
	"SIGTERM ends it early, as --duration would. Percentages may have a fraction.\n"
	"Prints one line of JSON. Exit status: 0 all were answered; 1 some were refused or are "
	"not\n"
	"answered (\"maybe\" in the tally); 2 a usage or system error.\n";

/* --- time --- */

int64_t fleet_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void swap_times(struct fleet_time *a, struct fleet_time *b)
{
	struct fleet_time swapped = *a;

	*a = *b;
	*b = swapped;
}

void fleet_wake_at(struct fleet *fleet, struct agent *agent, int64_t us)
{
	uint32_t at = fleet->time_count;

	agent->wake_us = us;
	if (us == INT64_MAX)
		return;
	if (fleet->time_count == fleet->time_capacity) {
		fleet->time_capacity = fleet->time_capacity ? 2 * fleet->time_capacity : 1024;
		fleet->times = realloc(fleet->times, fleet->time_capacity * sizeof *fleet->times);
		if (!fleet->times)
			errx(2, "no memory");
	}
	fleet->times[fleet->time_count++] = (struct fleet_time){us, agent->number};
	for (; at && fleet->times[(at - 1) / 2].us > fleet->times[at].us; at = (at - 1) / 2)
		swap_times(&fleet->times[(at - 1) / 2], &fleet->times[at]);
}

static struct fleet_time pop_time(struct fleet *fleet)
{
	struct fleet_time first = fleet->times[0];
	uint32_t at = 0;

	fleet->times[0] = fleet->times[--fleet->time_count];
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < fleet->time_count &&
			    fleet->times[child].us < fleet->times[least].us)
				least = child;
		if (least == at)
			return first;
		swap_times(&fleet->times[least], &fleet->times[at]);
		at = least;
	}
}

void fleet_answered(struct fleet *fleet, int64_t due_us, int64_t us)
{
	if (fleet_now_us() - fleet->start_us < fleet->options.warmup_us)
		return;
	if (fleet->latency_count == fleet->latency_capacity) {
		fleet->latency_capacity = fleet->latency_capacity ? 2 * fleet->latency_capacity
								  : 4096;
		fleet->latencies = realloc(fleet->latencies,
					   fleet->latency_capacity * sizeof *fleet->latencies);
		if (!fleet->latencies)
			errx(2, "no memory");
	}
	fleet->latencies[fleet->latency_count++] =
		(struct fleet_latency){due_us, us < UINT32_MAX ? (uint32_t)us : UINT32_MAX};
}

/* --- options --- */

static int64_t parse_us(const char *text)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {{"ms", 1000},
		     {"s", 1000000},
		     {"m", 60000000},
		     {"h", INT64_C(3600000000)},
		     {"d", INT64_C(86400000000)}};
	char *end;
	long long number = strtoll(text, &end, 10);

	for (size_t i = 0; end > text && number >= 0 && i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].unit))
			return number * units[i].us;
	errx(2, "not a time such as 500ms, 10s, 5m, 3h or 2d: %s", text);
}

static uint32_t parse_count(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end || number < least || number > most)
		errx(2, "not a number from %u to %u: %s", least, most, text);
	return (uint32_t)number;
}

static double parse_percent(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number >= 0 && number <= 100))
		errx(2, "not a percentage: %s", text);
	return number;
}

static void parse_types(struct world_options *options, char *list)
{
	options->type_count = 0;
	for (char *type = strtok(list, ","); type; type = strtok(NULL, ",")) {
		if (options->type_count == WORLD_TYPES_MAX || !world_unit(type))
			errx(2, "not a list of profile types: %s", type);
		options->types[options->type_count++] = type;
	}
	if (!options->type_count)
		errx(2, "no profile type");
}

static void parse_server(const char *url, struct sockaddr_in *to)
{
	char address[64];
	unsigned port;

	if (sscanf(url, "http://%63[0-9.]:%u", address, &port) != 2 || port > 65535 ||
	    inet_pton(AF_INET, address, &to->sin_addr) != 1)
		errx(2, "not http://ADDRESS:PORT: %s", url);
	to->sin_family = AF_INET;
	to->sin_port = htons((uint16_t)port);
}

enum {
	OPTION_SERVER = 256,
	OPTION_TALLY,
	OPTION_AGENTS,
	OPTION_INTERVAL,
	OPTION_REPORTS,
	OPTION_DURATION,
	OPTION_WARMUP,
	OPTION_SETTLE,
	OPTION_TIMEOUT,
	OPTION_SAMPLES,
	OPTION_APPS,
	OPTION_PROCESSES,
	OPTION_STACKS,
	OPTION_TEMPLATES,
	OPTION_FRESH,
	OPTION_TYPES,
	OPTION_MODULES,
	OPTION_SEED,
	OPTION_FROM,
	OPTION_SPAN,
	OPTION_LATE,
	OPTION_LATE_BY,
	OPTION_DUPLICATES,
	OPTION_RESTARTS,
	OPTION_LOST,
	OPTION_LATENCIES,
	OPTION_PLAIN,
	OPTION_THREAD_IDS,
	OPTION_LIFETIMES,
	OPTION_LINKS,
	OPTION_HELP
};

static const struct option long_options[] = {
	{"server", required_argument, NULL, OPTION_SERVER},
	{"tally", required_argument, NULL, OPTION_TALLY},
	{"agents", required_argument, NULL, OPTION_AGENTS},
	{"interval", required_argument, NULL, OPTION_INTERVAL},
	{"reports", required_argument, NULL, OPTION_REPORTS},
	{"duration", required_argument, NULL, OPTION_DURATION},
	{"warmup", required_argument, NULL, OPTION_WARMUP},
	{"settle", required_argument, NULL, OPTION_SETTLE},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"samples", required_argument, NULL, OPTION_SAMPLES},
	{"apps", required_argument, NULL, OPTION_APPS},
	{"processes", required_argument, NULL, OPTION_PROCESSES},
	{"stacks", required_argument, NULL, OPTION_STACKS},
	{"templates", required_argument, NULL, OPTION_TEMPLATES},
	{"fresh", required_argument, NULL, OPTION_FRESH},
	{"types", required_argument, NULL, OPTION_TYPES},
	{"modules", required_argument, NULL, OPTION_MODULES},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"from", required_argument, NULL, OPTION_FROM},
	{"span", required_argument, NULL, OPTION_SPAN},
	{"late", required_argument, NULL, OPTION_LATE},
	{"late-by", required_argument, NULL, OPTION_LATE_BY},
	{"duplicates", required_argument, NULL, OPTION_DUPLICATES},
	{"restarts", required_argument, NULL, OPTION_RESTARTS},
	{"lost", required_argument, NULL, OPTION_LOST},
	{"latencies", required_argument, NULL, OPTION_LATENCIES},
	{"thread-ids", required_argument, NULL, OPTION_THREAD_IDS},
	{"lifetimes", required_argument, NULL, OPTION_LIFETIMES},
	{"links", required_argument, NULL, OPTION_LINKS},
	{"plain", no_argument, NULL, OPTION_PLAIN},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static void parse_world(struct world_options *world, int option)
{
	switch (option) {
	case OPTION_SAMPLES:
		world->samples = parse_count(optarg, 1, 100000);
		break;
	case OPTION_APPS:
		world->apps = parse_count(optarg, 1, 100000);
		break;
	case OPTION_PROCESSES:
		world->processes = parse_count(optarg, 1, WORLD_PROCESSES_MAX);
		break;
	case OPTION_STACKS:
		world->stacks = parse_count(optarg, 1, 1000000);
		break;
	case OPTION_TEMPLATES:
		world->templates = parse_count(optarg, 1, 100000);
		break;
	case OPTION_TYPES:
		parse_types(world, optarg);
		break;
	case OPTION_MODULES:
		world->modules = optarg;
		break;
	case OPTION_THREAD_IDS:
		world->thread_ids = parse_count(optarg, 0, 1000);
		break;
	case OPTION_LIFETIMES:
		world->lifetimes = parse_count(optarg, 0, 1000);
		break;
	case OPTION_LINKS:
		world->links = parse_count(optarg, 0, 10000);
		break;
	case OPTION_PLAIN:
		world->is_plain = true;
		break;
	case OPTION_SEED:
		world->seed = parse_count(optarg, 0, UINT32_MAX);
		break;
	default:
		errx(2, "see --help");
	}
}

struct given {
	int64_t duration_us, from_us;
	const char *tally;
};

static void parse_option(struct fleet_options *options, struct given *given, int option)
{
	switch (option) {
	case OPTION_SERVER:
		parse_server(optarg, &options->server);
		break;
	case OPTION_TALLY:
		given->tally = optarg;
		break;
	case OPTION_AGENTS:
		options->agents = parse_count(optarg, 1, 1000000);
		break;
	case OPTION_INTERVAL:
		options->interval_us = parse_us(optarg);
		break;
	case OPTION_REPORTS:
		options->reports = parse_count(optarg, 1, UINT32_MAX);
		break;
	case OPTION_DURATION:
		given->duration_us = parse_us(optarg);
		break;
	case OPTION_WARMUP:
		options->warmup_us = parse_us(optarg);
		break;
	case OPTION_SETTLE:
		options->settle_us = parse_us(optarg);
		break;
	case OPTION_TIMEOUT:
		options->timeout_us = parse_us(optarg);
		break;
	case OPTION_FRESH:
		options->fresh = parse_percent(optarg);
		break;
	case OPTION_FROM:
		given->from_us = parse_us(optarg);
		break;
	case OPTION_SPAN:
		options->span_ms = parse_us(optarg) / 1000;
		break;
	case OPTION_LATE:
		options->late = parse_percent(optarg);
		break;
	case OPTION_LATE_BY:
		options->late_ms = parse_us(optarg) / 1000;
		break;
	case OPTION_DUPLICATES:
		options->duplicates = parse_percent(optarg);
		break;
	case OPTION_RESTARTS:
		options->restarts = parse_percent(optarg);
		break;
	case OPTION_LOST:
		options->lost = parse_percent(optarg);
		break;
	case OPTION_LATENCIES:
		if (!(options->latencies = fopen(optarg, "we")))
			err(2, "%s", optarg);
		break;
	case OPTION_HELP:
		fputs(help, stdout);
		exit(0);
	default:
		parse_world(&options->world, option);
	}
}

static void parse_options(int argc, char **argv, struct fleet_options *options)
{
	struct given given = {.duration_us = -1, .from_us = -1};
	struct timespec now;
	int option;

	*options = (struct fleet_options){
		.agents = 50,
		.reports = 6,
		.interval_us = 10000000,
		.timeout_us = 10000000,
		.settle_us = 60000000,
		.late_ms = 3 * 3600000,
		.fresh = 20,
		.world = {.seed = 1,
			  .apps = 5,
			  .stacks = 1000,
			  .templates = 20,
			  .samples = 200,
			  .processes = 4,
			  .type_count = 1,
			  .types = {"on-cpu"}},
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, &given, option);
	if (!options->server.sin_port || optind < argc)
		errx(2, "--server is needed; see --help");
	if (given.duration_us >= 0)
		options->reports = options->interval_us
					   ? (uint32_t)(given.duration_us / options->interval_us)
					   : UINT32_MAX;
	if (!options->reports)
		errx(2, "--duration is shorter than --interval");
	clock_gettime(CLOCK_REALTIME, &now);
	options->from_ms = now.tv_sec * INT64_C(1000) -
			   (given.from_us >= 0 ? given.from_us / 1000 : options->span_ms);
	if (given.tally && !(options->tally = fopen(given.tally, "we")))
		err(2, "%s", given.tally);
}

/* --- the run --- */

static void on_signal(int number)
{
	(void)number;
	is_told_to_end = 1;
}

static void raise_limit(uint32_t agents)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < agents + 64) {
		limit.rlim_cur = agents + 64;
		if (limit.rlim_max < limit.rlim_cur)
			limit.rlim_max = limit.rlim_cur;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			err(2, "%u open files", agents + 64);
	}
}

static void prepare(struct fleet *fleet)
{
	const struct world_options *options = &fleet->options.world;
	uint32_t count = options->apps * options->templates;

	world_make(&fleet->world, options);
	fleet->bodies = calloc(count, sizeof(void *));
	fleet->agents = calloc(fleet->options.agents, sizeof *fleet->agents);
	if (!fleet->bodies || !fleet->agents)
		errx(2, "no memory");
	for (uint32_t i = 0; i < count; i++)
		fleet->bodies[i] = body_template_new(&fleet->world,
						     &fleet->world.apps[i / options->templates]
							      .templates[i % options->templates]);
	fleet->fresh_next = WORLD_FRESH_FIRST;
	fleet->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (fleet->poll_fd < 0)
		err(2, "epoll");
	tally_start(fleet->options.tally, &fleet->world, fleet->options.agents);
	fleet->start_us = fleet->answered_us = fleet_now_us();
	for (uint32_t i = 0; i < fleet->options.agents; i++)
		agent_start(fleet, &fleet->agents[i], i);
}

static int wait_ms(const struct fleet *fleet, int64_t now_us)
{
	int64_t us = fleet->time_count ? fleet->times[0].us - now_us : 100000;

	return us <= 0 ? 0 : us > 100000 ? 100 : (int)((us + 999) / 1000);
}

static void wake_agents(struct fleet *fleet, int64_t now_us)
{
	/* Not so many at once that answers wait. */
	for (unsigned i = 0; i < 16 && fleet->time_count && fleet->times[0].us <= now_us; i++) {
		struct fleet_time time = pop_time(fleet);
		struct agent *agent = &fleet->agents[time.agent];

		if (agent->wake_us == time.us)
			agent_wake(fleet, agent, now_us);
	}
}

static void loop(struct fleet *fleet)
{
	int64_t end_us = INT64_MAX;
	struct epoll_event events[256];

	while (fleet->finished < fleet->options.agents) {
		int64_t now_us = fleet_now_us();
		int count;

		if (is_told_to_end && !fleet->is_ending) {
			fleet->is_ending = true;
			for (uint32_t i = 0; i < fleet->options.agents; i++)
				if (fleet->agents[i].state == AGENT_IDLE &&
				    fleet->agents[i].wake_us != INT64_MAX)
					fleet_wake_at(fleet, &fleet->agents[i], now_us);
		}
		if (end_us == INT64_MAX &&
		    (fleet->is_ending ||
		     (fleet->options.interval_us &&
		      now_us > fleet->start_us + (int64_t)fleet->options.reports *
							 fleet->options.interval_us)))
			end_us = now_us + fleet->options.settle_us;
		/* Without an interval the end is when nobody is answered any more. */
		if (now_us > end_us || (!fleet->options.interval_us &&
					now_us > fleet->answered_us + fleet->options.settle_us))
			break;
		count = epoll_wait(fleet->poll_fd, events, 256, wait_ms(fleet, now_us));
		now_us = fleet_now_us();
		for (int i = 0; i < count; i++)
			agent_ready(fleet, &fleet->agents[events[i].data.u32], events[i].events,
				    now_us);
		wake_agents(fleet, now_us);
	}
}

/* --- the outcome --- */

static int compare_latencies(const void *a, const void *b)
{
	const struct fleet_latency *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

static double percentile(const struct fleet *fleet, double share)
{
	uint64_t at = (uint64_t)(share * (double)fleet->latency_count);

	if (!fleet->latency_count)
		return 0;
	return fleet->latencies[at < fleet->latency_count ? at : fleet->latency_count - 1].us /
	       1000.0;
}

static void write_latencies(const struct fleet *fleet, FILE *file)
{
	for (uint64_t i = 0; i < fleet->latency_count; i++)
		fprintf(file, "%" PRId64 " %u\n", fleet->latencies[i].due_us,
			fleet->latencies[i].us);
	if (fclose(file))
		err(2, "the latencies");
}

static void print_outcome(struct fleet *fleet, double seconds, double prepared_cpu)
{
	const struct fleet_counts *counts = &fleet->counts;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	qsort(fleet->latencies, fleet->latency_count, sizeof *fleet->latencies, compare_latencies);
	printf("{\"agents\":%u,\"seconds\":%.1f,\"acknowledged\":%" PRIu64 ",\"partial\":%" PRIu64
	       ",\"refused\":%" PRIu64 ",\"first_refusal\":%d,\"unanswered\":%" PRIu64
	       ",\"busy\":%" PRIu64 ",\"retries\":%" PRIu64 ",\"duplicates\":%" PRIu64
	       ",\"restarts\":%" PRIu64 ",\"late\":%" PRIu64 ",\"connects\":%" PRIu64
	       ",\"samples\":%" PRIu64 ",\"pairs\":%" PRIu64 ",\"fresh\":%" PRIu64
	       ",\"body_bytes\":%" PRIu64 ",\"raw_bytes\":%" PRIu64,
	       fleet->options.agents, seconds, counts->acknowledged, counts->partial,
	       counts->refused, counts->first_refusal, counts->unanswered, counts->busy,
	       counts->retries, counts->duplicates, counts->restarts, counts->late,
	       counts->connects, counts->samples, counts->pairs, counts->fresh, counts->bytes,
	       counts->raw_bytes);
	printf(",\"first_busy\":\"%s\"", counts->first_busy);
	printf(",\"latencies\":%" PRIu64
	       ",\"p50_ms\":%.2f,\"p90_ms\":%.2f,\"p99_ms\":%.2f,\"p999_ms\":%.2f,\"max_ms\":%.2f,"
	       "\"cpu_s\":%.2f,\"prepare_cpu_s\":%.2f}\n",
	       fleet->latency_count, percentile(fleet, 0.5), percentile(fleet, 0.9),
	       percentile(fleet, 0.99), percentile(fleet, 0.999), percentile(fleet, 1),
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6 -
		       prepared_cpu,
	       prepared_cpu);
}

int main(int argc, char **argv)
{
	static struct fleet fleet;
	const struct sigaction action = {.sa_handler = on_signal};
	double prepared_cpu;

	parse_options(argc, argv, &fleet.options);
	raise_limit(fleet.options.agents);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	prepare(&fleet);
	prepared_cpu = (double)clock() / CLOCKS_PER_SEC;
	loop(&fleet);
	for (uint32_t i = 0; i < fleet.options.agents; i++)
		agent_end(&fleet, &fleet.agents[i]);
	if (fleet.options.tally && fclose(fleet.options.tally))
		err(2, "the tally");
	if (fleet.options.latencies)
		write_latencies(&fleet, fleet.options.latencies);
	print_outcome(&fleet, (double)(fleet_now_us() - fleet.start_us) / 1e6, prepared_cpu);
	return fleet.counts.refused || fleet.counts.unanswered || fleet.counts.partial ||
	       fleet.counts.first_refusal;
}
