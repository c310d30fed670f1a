/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/capture.h"

#include <stdlib.h>

#include "common/log.h"
#include "node-agent/capture/bpf_capture.h"
#include "node-agent/capture/perf_capture.h"
#include "node-agent/kernel/bpf_map.h"

/* One of the two. */
struct capture {
	struct bpf_capture *bpf;
	struct perf_capture *perf;
};

static bool options_check(const struct capture_options *options, struct error *err)
{
	if (options->frequency_hz < 1 || options->frequency_hz > 1000)
		return error_set(err, ERROR_OPTION, "frequency is %u, must be 1 to 1000 Hz",
				 options->frequency_hz);
	if (options->max_frames < 1 || options->max_frames > USER_FRAMES_MAX)
		return error_set(err, ERROR_OPTION, "max-frames is %u, must be 1 to %u",
				 options->max_frames, USER_FRAMES_MAX);
	if (options->pid_count > 65536)
		return error_set(err, ERROR_OPTION, "more than 65536 process ids");
	return true;
}

static bool open_by_perf(struct capture *capture, const struct capture_options *options,
			 const struct capture_callbacks *callbacks, struct error *err)
{
	if (options->stop_after_sample)
		return error_set(err, ERROR_UNSUPPORTED, "sampled threads are stopped by BPF only");
	if (options->wants != KERNEL_WANTS_TICKS)
		return error_set(err, ERROR_UNSUPPORTED,
				 "perf events alone profile on-cpu only: the other types need BPF");
	if (callbacks->on_loading)
		callbacks->on_loading(callbacks->context);
	capture->perf = perf_capture_open(options, callbacks, err);
	return capture->perf;
}

/* Both sentences where neither way is permitted. */
static bool open_by_either(struct capture *capture, const struct capture_options *options,
			   const struct capture_callbacks *callbacks, struct error *err)
{
	struct error by_bpf = {0}, by_perf = {0};

	capture->bpf = bpf_capture_open(options, callbacks, &by_bpf);
	if (capture->bpf)
		return true;
	if (by_bpf.kind != ERROR_UNSUPPORTED) {
		if (err)
			*err = by_bpf;
		return false;
	}
	if (!open_by_perf(capture, options, callbacks, &by_perf))
		return error_set(err, by_perf.kind, "%s; and %s", by_bpf.message, by_perf.message);
	log_warn("stacks are taken by perf events", "because=\"%s\"", by_bpf.message);
	return true;
}

struct capture *capture_open(const struct capture_options *options,
			     const struct capture_callbacks *callbacks, struct error *err)
{
	struct capture *capture = calloc(1, sizeof *capture);
	bool ok = false;

	if (!capture) {
		error_set(err, ERROR_MEMORY, "capture");
		return NULL;
	}
	if (!options_check(options, err))
		goto out;
	switch (options->way) {
	case CAPTURE_AUTO:
		ok = open_by_either(capture, options, callbacks, err);
		break;
	case CAPTURE_BPF:
		capture->bpf = bpf_capture_open(options, callbacks, err);
		ok = capture->bpf;
		break;
	case CAPTURE_PERF:
		ok = open_by_perf(capture, options, callbacks, err);
		break;
	}
out:
	if (!ok) {
		free(capture);
		return NULL;
	}
	return capture;
}

bool capture_poll(struct capture *capture, int timeout_ms, struct error *err)
{
	return capture->bpf ? bpf_capture_poll(capture->bpf, timeout_ms, err)
			    : perf_capture_poll(capture->perf, timeout_ms, err);
}

uint64_t capture_delivered_until_ns(const struct capture *capture)
{
	return capture->bpf ? bpf_capture_delivered_until_ns(capture->bpf)
			    : perf_capture_delivered_until_ns(capture->perf);
}

void capture_watch(struct capture *capture, int fd)
{
	if (capture->bpf)
		bpf_capture_watch(capture->bpf, fd);
	else
		perf_capture_watch(capture->perf, fd);
}

void capture_stop(struct capture *capture)
{
	if (capture->bpf)
		bpf_capture_stop(capture->bpf);
	else
		perf_capture_stop(capture->perf);
}

void capture_counts(struct capture *capture, struct capture_totals *totals)
{
	if (capture->bpf)
		bpf_capture_totals(capture->bpf, totals);
	else
		perf_capture_totals(capture->perf, totals);
}

void capture_totals(struct capture *capture, struct capture_totals *totals)
{
	if (capture->bpf)
		bpf_capture_count(capture->bpf);
	else
		perf_capture_count(capture->perf);
	capture_counts(capture, totals);
}

uint64_t capture_map_bytes(const struct capture *capture)
{
	return capture->bpf ? bpf_capture_map_bytes(capture->bpf) : 0;
}

int capture_map(const struct capture *capture, enum kernel_map map)
{
	return capture->bpf ? bpf_capture_programs(capture->bpf)->maps[map] : -1;
}

bool capture_map_read(const struct capture *capture, enum kernel_map map, const void *key,
		      void *value)
{
	return bpf_map_read(capture_map(capture, map), key, value, NULL);
}

void capture_map_remove(const struct capture *capture, enum kernel_map map, const void *key)
{
	bpf_map_remove(capture_map(capture, map), key, NULL);
}

int capture_program(const struct capture *capture, enum kernel_program program)
{
	return capture->bpf ? bpf_capture_programs(capture->bpf)->programs[program] : -1;
}

enum capture_way capture_way(const struct capture *capture)
{
	return capture->bpf ? CAPTURE_BPF : CAPTURE_PERF;
}

bool capture_try_bpf(const struct capture_options *options, struct error *err)
{
	return bpf_capture_try(options, err);
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	bpf_capture_close(capture->bpf);
	perf_capture_close(capture->perf);
	free(capture);
}
