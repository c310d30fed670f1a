/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/switch_sweeps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/frames.h"
#include "bpf/results.h"
#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/stranger_reader.h"

enum {
	RECORDS_AT_ONCE = STRANGER_THREADS_MAX,
	RED_ZONE = 128, /* System V ABI for x86-64, 3.2.2 */
	LOOKS_MAX = 64, /* at a time */
};

#define SWEEP_NS        (SWITCH_SWEEP_MS * UINT64_C(1000000))
#define CREDIT_FIRST_NS 100e6 /* for those that wait already when it begins */
#define CREDIT_MAX_S    60

struct switch_sweeps {
	const struct kernel_programs *programs;
	const struct capture_callbacks *callbacks;
	double share;
	int link;
	uint64_t due_ns, paid_ns; /* the next one; when credit was added the last time */
	double credit_ns;         /* CPU time that may be spent now; below 0: it has been */
	uint64_t done, stacks, cpu_ns;
	uint64_t elsewhere_ns; /* of the one now: the reader's */
	uint64_t contexts, contexts_unread;
	bool has_failed;
	bool has_begun;     /* with all threads */
	bool has_no_single; /* iterators over one thread: before 6.1 */
	union {
		struct sample_event event;
		uint64_t room[(sizeof(struct sample_event) + THREAD_CONTEXT_MAX) / 8 +
			      SWITCH_KERNEL_FRAMES_MAX + 1 + RUNTIME_WORDS_MAX];
	} sample;
	struct switch_sweep_record records[RECORDS_AT_ONCE];
	struct stranger_thread threads[RECORDS_AT_ONCE]; /* the records', as they are read */
	union {
		struct stack_copy_event event;
		uint8_t room[sizeof(struct stack_copy_event) + STACK_COPY_BYTES_MAX];
	} copies[RECORDS_AT_ONCE];
	union {
		struct thread_context context;
		uint64_t room[THREAD_CONTEXT_MAX / 8];
	} contexts_read[RECORDS_AT_ONCE];
	uint64_t runtimes_read[RECORDS_AT_ONCE][RUNTIME_WORDS_MAX];
};

struct switch_sweeps *switch_sweeps_open(const struct kernel_programs *programs,
					 const struct capture_callbacks *callbacks, double share,
					 struct error *err)
{
	struct switch_sweeps *sweeps;

	if (programs->programs[KERNEL_PROGRAM_SWEEP] < 0)
		return NULL;
	sweeps = calloc(1, sizeof *sweeps);
	if (!sweeps) {
		error_set(err, ERROR_MEMORY, "no memory for sweeps");
		return NULL;
	}
	sweeps->programs = programs;
	sweeps->callbacks = callbacks;
	sweeps->share = share;
	sweeps->credit_ns = CREDIT_FIRST_NS;
	sweeps->link = kernel_sweep_attach(programs, 0, err);
	if (sweeps->link >= 0)
		return sweeps;
	free(sweeps);
	return NULL;
}

void switch_sweeps_close(struct switch_sweeps *sweeps)
{
	if (!sweeps)
		return;
	close(sweeps->link);
	free(sweeps);
}

int switch_sweeps_wait(const struct switch_sweeps *sweeps, uint64_t now_ns, int most_ms)
{
	uint64_t wait_ms;

	if (!sweeps)
		return most_ms;
	wait_ms = sweeps->due_ns > now_ns ? (sweeps->due_ns - now_ns) / 1000000 + 1 : 0;
	return wait_ms < (uint64_t)most_ms ? (int)wait_ms : most_ms;
}

/* --- one thread --- */

static const uint8_t syscall_code[2] = {0x0f, 0x05};

/* The stack, from the red zone below its pointer on, the instruction that waits, what it says of
 * its request, and what its interpreter does. */
static void wish(struct switch_sweeps *sweeps, uint32_t at)
{
	const struct switch_sweep_record *record = &sweeps->records[at];
	const struct capture_callbacks *callbacks = sweeps->callbacks;
	struct stranger_thread *thread = &sweeps->threads[at];

	*thread = (struct stranger_thread){
		.tgid = record->tgid,
		.tid = record->tid,
		.start_time_ns = record->start_time_ns,
		.has_stack = !record->is_32bit,
		.code_at = record->ip - sizeof syscall_code,
		.stack_at = record->sp - RED_ZONE,
		.pointer = record->tls,
		.stack = sweeps->copies[at].event.stack,
		.published = &sweeps->contexts_read[at].context,
		.runtime_frames = sweeps->runtimes_read[at],
	};
	sweeps->sample.event = (struct sample_event){.tgid = record->tgid,
						     .tid = record->tid,
						     .exec_id = record->exec_id,
						     .start_time_ns = record->start_time_ns};
	thread->has_place = callbacks->find_context && !record->is_32bit &&
			    callbacks->find_context(callbacks->context, &sweeps->sample.event,
						    &thread->place);
	thread->has_runtime = callbacks->find_runtime && !record->is_32bit &&
			      callbacks->find_runtime(callbacks->context, &sweeps->sample.event,
						      &thread->runtime);
}

/* A system call's instruction is the one before. */
static uint64_t instruction_of(const struct switch_sweep_record *record,
			       const struct stranger_thread *thread)
{
	const bool is_call = record->is_system_call && thread->has_code &&
			     !memcmp(thread->code, syscall_code, sizeof syscall_code);

	return is_call ? thread->code_at : record->ip;
}

void switch_sweep_describe(const struct switch_sweep_record *record, uint64_t ip, uint64_t now_ns,
			   struct sample_event *sample, struct stack_copy_event *copy,
			   uint32_t bytes)
{
	uint32_t kernel_count = record->kernel_count < SWITCH_KERNEL_FRAMES_MAX
					? record->kernel_count
					: SWITCH_KERNEL_FRAMES_MAX;

	*sample = (struct sample_event){
		.type = EVENT_SAMPLE_SWITCH,
		.flags = SAMPLE_IN_KERNEL | (record->is_32bit ? 0 : SAMPLE_HAS_COPY),
		.time_ns = now_ns,
		.start_time_ns = record->start_time_ns,
		.tgid = record->tgid,
		.tid = record->tid,
		.exec_id = record->exec_id,
		.wait = {.since_ns = record->since_ns,
			 .tid = record->tid,
			 .block = record->block,
			 .state = record->state,
			 .is_swept = 1,
			 .futex = record->futex},
		.kernel_count = (uint16_t)kernel_count,
		.result = record->is_32bit ? WALK_compat_32bit : WALK_not_loaded,
	};
	memcpy(sample->comm, record->comm, COMM_LENGTH);
	memcpy(sample->process_comm, record->process_comm, COMM_LENGTH);
	memcpy(sample->frames, record->kernel_frames, kernel_count * sizeof sample->frames[0]);
	sample_event_add_native(sample, ip);
	*copy = (struct stack_copy_event){
		.type = EVENT_STACK_COPY,
		.is_interrupted = 1,
		.size = (uint32_t)sizeof *copy + bytes,
		.stack_bytes = bytes,
		.stack_gap = -RED_ZONE,
		.tls = record->tls,
		.known = record->known | 1ULL << UNWIND_REGISTER_FP,
		.ip = ip,
		.sp = record->sp,
		.fp = record->fp,
	};
	memcpy(copy->registers, record->registers, sizeof copy->registers);
}

/* It has not run since the kernel side looked: what was read meanwhile is of one moment. */
static bool still_waits(const struct switch_sweeps *sweeps,
			const struct switch_sweep_record *record)
{
	struct thread_switch thread;

	return bpf_map_read(sweeps->programs->maps[KERNEL_MAP_THREADS], &record->tid, &thread,
			    NULL) &&
	       thread.block == record->block && thread.since_ns == record->since_ns;
}

/* Behind the native ones. */
static void add_runtime(struct sample_event *sample, const struct stranger_thread *thread)
{
	if (thread->has_runtime)
		sample->runtime_thread = thread->pointer +
					 (uint64_t)thread->runtime.thread_id_minus_tp;
	sample->runtime_count = (uint16_t)thread->runtime_words;
	memcpy((uint64_t *)sample_runtime_frames(sample), thread->runtime_frames,
	       thread->runtime_words * sizeof(uint64_t));
	sample->size = sample_event_frames_end(sample);
}

/* Behind the sample's frames. */
static void add_context(struct switch_sweeps *sweeps, const struct stranger_thread *thread)
{
	struct sample_event *sample = &sweeps->sample.event;

	sweeps->contexts += thread->context_bytes > 0;
	sweeps->contexts_unread += thread->is_missing;
	if (!thread->context_bytes)
		return;
	memcpy((uint8_t *)sample + sample->size, thread->published, thread->context_bytes);
	sample->flags |= SAMPLE_HAS_CONTEXT;
	sample->size += (thread->context_bytes + 7) & ~7u;
}

static void take(struct switch_sweeps *sweeps, uint32_t at)
{
	const struct switch_sweep_record *record = &sweeps->records[at];
	const struct stranger_thread *thread = &sweeps->threads[at];
	struct stack_copy_event *copy = &sweeps->copies[at].event;

	switch_sweep_describe(record, instruction_of(record, thread), monotonic_ns(),
			      &sweeps->sample.event, copy, thread->stack_bytes);
	add_runtime(&sweeps->sample.event, thread);
	add_context(sweeps, thread);
	if (!still_waits(sweeps, record))
		return;
	sweeps->stacks++;
	sweeps->callbacks->on_sample(sweeps->callbacks->context, &sweeps->sample.event,
				     record->is_32bit ? NULL : copy);
}

static void take_all(struct switch_sweeps *sweeps, uint32_t count)
{
	uint64_t cost_ns;

	for (uint32_t i = 0; i < count; i++)
		wish(sweeps, i);
	stranger_threads_read(sweeps->threads, count, &cost_ns);
	sweeps->elsewhere_ns += cost_ns;
	for (uint32_t i = 0; i < count; i++)
		take(sweeps, i);
}

/* --- all of them --- */

/* False: not to its end. */
static bool read_all(struct switch_sweeps *sweeps, int fd)
{
	for (;;) {
		ssize_t got = read(fd, sweeps->records, sizeof sweeps->records);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return got == 0;
		if ((size_t)got % sizeof *sweeps->records)
			return false;
		take_all(sweeps, (uint32_t)((size_t)got / sizeof *sweeps->records));
	}
}

static bool sweep_all(struct switch_sweeps *sweeps, int link, struct error *err)
{
	int fd = kernel_sweep_open(link, err);
	bool ok;

	if (fd < 0)
		return false;
	ok = read_all(sweeps, fd);
	close(fd);
	return ok || error_set(err, ERROR_NOT_FOUND, "the list of threads ends early");
}

/* One thread alone. False: this kernel cannot; one that is gone is none. */
static bool sweep_one(struct switch_sweeps *sweeps, uint32_t tid)
{
	struct error err = {0};
	int link = kernel_sweep_attach(sweeps->programs, tid, &err);

	if (link < 0) {
		sweeps->has_no_single = err.os_error != ESRCH;
		return false;
	}
	sweep_all(sweeps, link, &err);
	close(link);
	return true;
}

static bool sweep(struct switch_sweeps *sweeps, const struct switch_look *due, struct error *err)
{
	for (uint32_t i = 0; i < due->due; i++)
		if (!sweep_one(sweeps, due->tids[i]) && sweeps->has_no_single)
			return sweep_all(sweeps, sweeps->link, err);
	return true;
}

/* The kernel side knows by itself whether any thread needs a sweep, nearly for nothing. The first
 * one is for those that have been waiting since before. */
static bool look_and_sweep(struct switch_sweeps *sweeps, struct error *err)
{
	const int map = sweeps->programs->maps[KERNEL_MAP_LOOKS];
	uint32_t said = SWITCH_LOOK_MORE, key = 0;
	struct switch_look due = {0};
	bool is_lost = false;

	for (int i = 0; said & SWITCH_LOOK_MORE && i < LOOKS_MAX; i++) {
		if (!kernel_program_run(sweeps->programs, KERNEL_PROGRAM_LOOK, &said, err))
			return false;
		is_lost |= (said & SWITCH_LOOK_LOST) != 0;
	}
	if (said & SWITCH_LOOK_DUE && !bpf_map_read(map, &key, &due, err))
		return false;
	if (said || !sweeps->done)
		sweeps->done++;
	if (!is_lost && !(said & SWITCH_LOOK_MORE) && due.due <= SWITCH_DUE_MAX &&
	    sweeps->has_begun && !(due.due && sweeps->has_no_single))
		return sweep(sweeps, &due, err);
	sweeps->has_begun = sweep_all(sweeps, sweeps->link, err);
	return sweeps->has_begun;
}

/* What is spent beyond the share of the last minute is paid back by a pause: waits that it misses
 * are counted. */
static void pay(struct switch_sweeps *sweeps, uint64_t now_ns, uint64_t cpu_ns)
{
	const double most = sweeps->share * CREDIT_MAX_S * 1e9;

	if (sweeps->paid_ns)
		sweeps->credit_ns += sweeps->share * (double)(now_ns - sweeps->paid_ns);
	if (sweeps->credit_ns > most && sweeps->credit_ns > CREDIT_FIRST_NS)
		sweeps->credit_ns = most > CREDIT_FIRST_NS ? most : CREDIT_FIRST_NS;
	sweeps->paid_ns = now_ns;
	sweeps->credit_ns -= (double)cpu_ns;
	sweeps->due_ns = now_ns + SWEEP_NS;
	if (sweeps->credit_ns < 0 && sweeps->share > 0)
		sweeps->due_ns += (uint64_t)(-sweeps->credit_ns / sweeps->share);
}

void switch_sweeps_run(struct switch_sweeps *sweeps, uint64_t now_ns)
{
	struct error err = {0};
	uint64_t cpu_ns;
	bool is_whole;

	if (!sweeps || now_ns < sweeps->due_ns)
		return;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sweeps->elsewhere_ns = 0;
	is_whole = look_and_sweep(sweeps, &err);
	if (is_whole && sweeps->callbacks->on_sweep)
		sweeps->callbacks->on_sweep(sweeps->callbacks->context, now_ns, monotonic_ns());
	if (!is_whole && !sweeps->has_failed)
		log_warn("threads not swept", "why=\"%s\"", err.message);
	sweeps->has_failed = !is_whole;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns + sweeps->elsewhere_ns;
	sweeps->cpu_ns += cpu_ns;
	pay(sweeps, now_ns, cpu_ns);
}

void switch_sweeps_total(const struct switch_sweeps *sweeps, struct sweep_totals *totals)
{
	if (sweeps)
		*totals = (struct sweep_totals){sweeps->done, sweeps->stacks, sweeps->cpu_ns,
						sweeps->contexts, sweeps->contexts_unread};
}
