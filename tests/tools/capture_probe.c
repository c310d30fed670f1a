/* SPDX-License-Identifier: Apache-2.0 */
/* The capture stage alone: prints what it delivers as lines of text, then its totals.
 *	capture_probe HZ SECONDS [MAX_FRAMES [SHOWN_PID [ONLY_PID…]]]
 * SHOWN_PID 0: no lines, totals only. POLL_PAUSE_MS in the environment: a slow reader; CAPTURE:
 * auto, bpf (default) or perf; COPIES=DIRECTORY: nothing is walked, and every copied stack of
 * SHOWN_PID becomes a file there; STOP: every sampled thread is stopped; RUNTIME=FILE: where
 * SHOWN_PID's interpreter has its frames, as lines "NAME NUMBER" of members of struct runtime_place
 * and of its layout; each of its samples has a second line with them. TYPES: kernel_wants. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/results.h"
#include "node-agent/capture/capture.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/kernel/runtime_places.h"

#define RESULT_NAME(name_, sentence_) #name_,
static const char *const result_names[] = {WALK_RESULTS(RESULT_NAME)};

static uint32_t shown_pid;
static const char *copies;
static volatile sig_atomic_t is_over;
static uint64_t events_seen[4], last_ns, disordered;

static void on_signal(int number)
{
	(void)number;
	is_over = 1;
}

static void in_order(uint64_t time_ns)
{
	if (time_ns + 1000000 < last_ns)
		disordered++;
	last_ns = time_ns;
}

static void on_exec(void *context, uint32_t tgid, uint64_t time_ns)
{
	(void)context;
	in_order(time_ns);
	events_seen[0]++;
	if (tgid == shown_pid)
		printf("exec %" PRIu64 "\n", time_ns);
}

static void on_fork(void *context, uint32_t tgid, uint32_t parent, uint64_t time_ns)
{
	(void)context;
	in_order(time_ns);
	events_seen[1]++;
	if (tgid == shown_pid || parent == shown_pid)
		printf("fork %u from %u\n", tgid, parent);
}

static void on_exit_(void *context, uint32_t tgid, uint64_t time_ns)
{
	(void)context;
	in_order(time_ns);
	events_seen[2]++;
	if (tgid == shown_pid)
		printf("exit %" PRIu64 "\n", time_ns);
}

static void on_mapping(void *context, const struct mapping_event *mapping)
{
	char hex[BUILD_ID_HEX];

	(void)context;
	in_order(mapping->time_ns);
	events_seen[3]++;
	if (mapping->tgid == shown_pid)
		printf("mapping %" PRIx64 "-%" PRIx64 " %" PRIx64 " %s %s\n", mapping->start,
		       mapping->start + mapping->length, mapping->file_offset,
		       mapping->build_id.length ? build_id_format(&mapping->build_id, hex) : "-",
		       mapping->path);
}

static void copy_write(const struct stack_copy_event *copy)
{
	static unsigned number;
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%u.copy", copies, number);
	file = fopen(path, "w");
	if (!file || fwrite(copy, copy->size, 1, file) != 1) {
		perror(path);
		exit(1);
	}
	fclose(file);
	printf(" copy=%u", number++);
}

/* --- an interpreter --- */

static struct runtime_places runtimes = {.array = -1, .pids_map = -1};
static struct runtime_place runtime_place;
static bool has_runtime;

#define MEMBER(name_)                                                    \
	{                                                                \
#name_, &runtime_place.name_, sizeof runtime_place.name_ \
	}
static const struct {
	const char *name;
	void *at;
	size_t bytes;
} runtime_members[] = {
	MEMBER(current_at),
	MEMBER(thread_at),
	MEMBER(thread_in),
	MEMBER(other_at),
	MEMBER(other_in),
	MEMBER(thread_id_minus_tp),
	MEMBER(layout.tstate_thread_id),
	MEMBER(layout.tstate_frame),
	MEMBER(layout.cframe_frame),
	MEMBER(layout.frame_code),
	MEMBER(layout.frame_previous),
	MEMBER(layout.frame_instr),
	MEMBER(layout.frame_entry),
	MEMBER(layout.entry_value),
	MEMBER(layout.flags),
	MEMBER(layout.code_argcount),
	MEMBER(layout.code_kwonly),
	MEMBER(layout.code_flags),
	MEMBER(layout.code_firstline),
	MEMBER(layout.code_bytes),
	MEMBER(layout.code_name),
	MEMBER(layout.code_filename),
	MEMBER(layout.code_lines),
};

static void runtime_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char name[64];
	long long value;

	runtime_place.language = RUNTIME_CPYTHON;
	while (file && fscanf(file, "%63s %lld", name, &value) == 2)
		for (size_t i = 0; i < sizeof runtime_members / sizeof *runtime_members; i++)
			if (!strcmp(runtime_members[i].name, name))
				memcpy(runtime_members[i].at, &value, runtime_members[i].bytes);
	if (!file) {
		perror(path);
		exit(1);
	}
	fclose(file);
	if (!runtime_layout_spans(&runtime_place.layout)) {
		fprintf(stderr, "%s: offsets that are too large\n", path);
		exit(1);
	}
	has_runtime = true;
}

/* Whose it is says its first sample. */
static void runtime_place_it(const struct sample_event *sample)
{
	struct error err = {0};

	if (!has_runtime || runtime_place.start_time_ns)
		return;
	runtime_place.start_time_ns = sample->start_time_ns;
	runtime_place.exec_id = sample->exec_id;
	if (runtime_places_put(&runtimes, sample->tgid, &runtime_place, &err))
		return;
	fprintf(stderr, "%s\n", err.message);
	exit(1);
}

static void runtime_print(const struct sample_event *sample)
{
	const uint64_t *words = sample_runtime_frames(sample);
	const uint64_t ip = sample->user_count ? *sample_user_frames(sample) : 0;

	const bool is_swept = sample->type == EVENT_SAMPLE_SWITCH && sample->wait.is_swept;

	printf("runtime type=%u tid=%u time=%" PRIu64 " ip=%" PRIx64 " swept=%d", sample->type,
	       sample->tid, (uint64_t)sample->time_ns, ip, is_swept);
	for (uint32_t at = 0; at < sample->runtime_count;
	     at = stack_frame_next(words, sample->runtime_count, at)) {
		const uint64_t object = stack_frame_address(words[at]);

		if (stack_frame_kind(words[at]) == STACK_FRAME_RUNTIME_END)
			printf(" end:%" PRIu64, object);
		else
			printf(" %" PRIx64 ":%d:%x:%d", object,
			       (int32_t)runtime_frame_position(words[at + 1]),
			       runtime_frame_cookie(words[at + 1]),
			       runtime_frame_is_entry(words[at + 1]));
	}
	putchar('\n');
}

static bool find_runtime(void *context, const struct sample_event *sample,
			 struct runtime_place *place)
{
	(void)context;
	return runtime_places_find(&runtimes, sample->tgid, place) &&
	       place->start_time_ns == sample->start_time_ns && place->exec_id == sample->exec_id;
}

static void on_sample(void *context, const struct sample_event *sample,
		      const struct stack_copy_event *copy)
{
	(void)context;
	in_order(sample->time_ns);
	if (sample->tgid != shown_pid)
		return;
	printf("sample tid=%u exec=%u start=%" PRIu64
	       " flags=%u result=%s comm=%s/%s cgroup=%" PRIu64 " value=%" PRIu64
	       " kernel=%u user=%u",
	       sample->tid, sample->exec_id, (uint64_t)sample->start_time_ns, sample->flags,
	       result_names[sample->result], sample->process_comm, sample->comm,
	       (uint64_t)sample->cgroup_id, (uint64_t)sample->tick.period_ns, sample->kernel_count,
	       sample->user_count);
	if (copy && copies)
		copy_write(copy);
	for (unsigned i = 0; i < sample->kernel_count + sample->user_count; i++)
		printf(" %" PRIx64, (uint64_t)sample->frames[i]);
	putchar('\n');
	if (has_runtime)
		runtime_print(sample);
	runtime_place_it(sample);
	fflush(stdout);
}

static void print_memory(void)
{
	char line[128];
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "Rss:", 4) || !strncmp(line, "Pss:", 4))
			printf("memory %s", line);
	if (file)
		fclose(file);
	file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "VmHWM:", 6))
			printf("memory %s", line);
	if (file)
		fclose(file);
}

static void print_totals(struct capture *capture, uint64_t period_ns)
{
	struct capture_totals totals;

	capture_totals(capture, &totals);
	printf("totals ticks=%" PRIu64 " idle=%" PRIu64 " filtered=%" PRIu64 " missed=%" PRIu64
	       " taken=%" PRIu64 " delivered=%" PRIu64 " ring_full=%" PRIu64 " no_scratch=%" PRIu64
	       " events_lost=%" PRIu64 " perf_ticks=%" PRIu64 " map_bytes=%" PRIu64
	       " disordered=%" PRIu64 " copies=%" PRIu64 " copy_bytes=%" PRIu64
	       " copies_rate=%" PRIu64 " copies_ring=%" PRIu64 " copies_unmatched=%" PRIu64
	       " runtimes=%" PRIu64 " runtimes_cut=%" PRIu64 " runtimes_unread=%" PRIu64 "\n",
	       totals.ticks, totals.idle, totals.filtered, totals.missed, totals.taken,
	       totals.delivered, totals.ring_full, totals.no_scratch, totals.process_events_lost,
	       totals.perf_count_ns / period_ns, capture_map_bytes(capture), disordered,
	       totals.copies, totals.copy_bytes, totals.kernel[COUNT_copies_rate],
	       totals.kernel[COUNT_copies_ring], totals.copies_unmatched,
	       totals.kernel[COUNT_runtimes], totals.kernel[COUNT_runtimes_cut],
	       totals.kernel[COUNT_runtimes_unread]);
	printf("events exec=%" PRIu64 " fork=%" PRIu64 " exit=%" PRIu64 " mapping=%" PRIu64 "\n",
	       events_seen[0], events_seen[1], events_seen[2], events_seen[3]);
	for (int i = 0; i < WALK_RESULT_COUNT; i++)
		if (totals.stacks_by_result[i])
			printf("result %s=%" PRIu64 "\n", result_names[i],
			       totals.stacks_by_result[i]);
}

int main(int argc, char **argv)
{
	const struct capture_callbacks callbacks = {
		.on_exec = on_exec,
		.on_fork = on_fork,
		.on_exit = on_exit_,
		.on_mapping = on_mapping,
		.on_sample = on_sample,
		.find_runtime = find_runtime,
	};
	struct capture_options options = {
		.frequency_hz = 99, .max_frames = USER_FRAMES_DEFAULT, .wants = KERNEL_WANTS_TICKS};
	const char *pause = getenv("POLL_PAUSE_MS"), *way = getenv("CAPTURE");
	struct capture *capture;
	struct error err = {0};
	uint32_t pids[16];
	time_t end;
	int loaded = kernel_loader_main(argc, argv);

	if (loaded >= 0)
		return loaded;
	if (argc > 1)
		options.frequency_hz = (uint32_t)atoi(argv[1]);
	if (argc > 3)
		options.max_frames = (uint32_t)atoi(argv[3]);
	if (argc > 4)
		shown_pid = (uint32_t)atoi(argv[4]);
	for (int i = 5; i < argc && options.pid_count < 16; i++)
		pids[options.pid_count++] = (uint32_t)atoi(argv[i]);
	options.pids = pids;
	copies = getenv("COPIES");
	if (getenv("RUNTIME"))
		runtime_read(getenv("RUNTIME"));
	if (getenv("TYPES"))
		options.wants = (uint32_t)atoi(getenv("TYPES"));
	for (int i = 0; i < KERNEL_SOURCE_COUNT; i++)
		options.budgets[i] = 0.05;
	options.use_rows = copies;
	options.stop_after_sample = getenv("STOP");
	options.way = !way || !strcmp(way, "bpf") ? CAPTURE_BPF
		      : !strcmp(way, "perf")      ? CAPTURE_PERF
						  : CAPTURE_AUTO;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	capture = capture_open(&options, &callbacks, &err);
	if (!capture) {
		fprintf(stderr, "%s\n", err.message);
		return err.kind == ERROR_UNSUPPORTED ? 77 : 1;
	}
	runtime_places_init(&runtimes, capture_map(capture, KERNEL_MAP_RUNTIMES),
			    capture_map(capture, KERNEL_MAP_RUNTIME_PIDS));
	printf("ready\n");
	fflush(stdout);
	for (end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 2); time(NULL) < end && !is_over;) {
		if (!capture_poll(capture, 1000, &err)) {
			fprintf(stderr, "%s\n", err.message);
			break;
		}
		if (pause)
			usleep((useconds_t)atoi(pause) * 1000);
	}
	capture_stop(capture);
	print_totals(capture, 1000000000 / options.frequency_hz);
	print_memory();
	runtime_places_release(&runtimes);
	capture_close(capture);
	return err.kind != ERROR_NONE;
}
