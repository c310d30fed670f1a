/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that sample what memory they take: which run, probes where their runtimes do it, the
 * rates at which they do, and what the probes cost them. A file is looked at once, by the parser of
 * strangers' files; its probes hold for all processes that run it. Joins kernel, unwind and
 * processes, as only main may. */
#ifndef NODE_AGENT_ALLOCATIONS_MEMORY_PROBES_H
#define NODE_AGENT_ALLOCATIONS_MEMORY_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/capture/capture.h"
#include "node-agent/processes/processes.h"
#include "node-agent/stacks/code_pages.h"

struct memory_probes_sources { /* borrowed */
	struct processes *processes; /* begins and ends are heard of from there */
	const struct capture *capture;
	struct code_pages *pages;
	double budget;        /* share of a process' CPU time that its probes may cost */
	bool wants_frees;     /* else what is given back is not probed */
	const uint32_t *pids; /* whom to look at; none: all */
	size_t pid_count;
	/* What this process has in use is not known any more. */
	void (*lost)(void *context, uint32_t tgid);
	/* Ends were lost; as live_set_bound(). */
	uint64_t (*bound)(void *context, uint32_t tgid,
			  uint64_t (*most)(void *context, uint64_t key), void *most_context);
	void *context;
};

struct memory_probes;

/* Looks at what runs already. */
struct memory_probes *memory_probes_new(const struct memory_probes_sources *from,
					struct error *err);
void memory_probes_free(struct memory_probes *probes);

/* A file was mapped with code: it may be the library that samples, node-agent/malloc/. */
void memory_probes_mapping(struct memory_probes *probes, uint32_t tgid, const char *path);

/* For file_parser_set_memory(), numbers from 1 on. */
void memory_probes_places(struct memory_probes *probes, uint32_t number,
			  const struct memory_places *places);

/* Attaches what has been found, reads rates, cuts off what costs too much: often, it looks at the
 * clock itself. */
void memory_probes_run(struct memory_probes *probes);

/* Of the process that the sample is of: bytes of which one is sampled on average, at least 1. For
 * struct allocations_sources. */
uint64_t memory_probes_rate(void *probes, const struct sample_event *sample);

/* False: its probes are cut off, what is still on its way of it is nothing to go by. */
bool memory_probes_has(const struct memory_probes *probes, uint32_t tgid);

struct memory_probes_counters {
	uint32_t files, processes; /* that are probed now */
	uint64_t without;          /* Go programs that keep no memory profile, since the start */
	uint64_t cut_off;          /* processes whose probes cost them too much */
	uint64_t failed;           /* files that could not be probed */
	uint64_t refused;          /* files and processes for which there was no room */
	uint64_t unsure;           /* processes of which ends were lost for good */
	uint64_t corrected;        /* pieces whose lost ends the program's own count told */
	uint64_t unknown_rates;    /* samples whose process' rate could not be read */
	uint64_t cost_ns;          /* of all probes, in the programs */
};
void memory_probes_counters(const struct memory_probes *probes, struct memory_probes_counters *out);

#endif
