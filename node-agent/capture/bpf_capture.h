/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by a BPF program on each CPU's timer, as capture.h says. */
#ifndef NODE_AGENT_CAPTURE_BPF_CAPTURE_H
#define NODE_AGENT_CAPTURE_BPF_CAPTURE_H

#include "node-agent/capture/capture.h"

struct bpf_capture;

struct bpf_capture *bpf_capture_open(const struct capture_options *options,
				     const struct capture_callbacks *callbacks, struct error *err);
bool bpf_capture_poll(struct bpf_capture *capture, int timeout_ms, struct error *err);
uint64_t bpf_capture_delivered_until_ns(const struct bpf_capture *capture);
void bpf_capture_watch(struct bpf_capture *capture, int fd);
void bpf_capture_stop(struct bpf_capture *capture);
/* Timers' counts now; without it they are a second old at most, and no CPU is interrupted. */
void bpf_capture_count(struct bpf_capture *capture);
void bpf_capture_totals(struct bpf_capture *capture, struct capture_totals *totals);
uint64_t bpf_capture_map_bytes(const struct bpf_capture *capture);
const struct kernel_programs *bpf_capture_programs(const struct bpf_capture *capture);
void bpf_capture_close(struct bpf_capture *capture); /* NULL is fine */

/* Whether its programs could be loaded now; they are not kept. */
bool bpf_capture_try(const struct capture_options *options, struct error *err);

#endif
