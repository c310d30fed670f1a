/* SPDX-License-Identifier: Apache-2.0 */
/* What one report interval of sampling amounts to on one host: tables that refer to each other by
 * index; index 0 of strings, mappings, frames, links and attribute sets means "none". */
#ifndef COMMON_PROFILE_H
#define COMMON_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"

/* What an address of a mapping counts from. */
enum address_base {
	ADDRESS_ELF,		/* ELF virtual address of the file */
	ADDRESS_KERNEL_TEXT,	/* offset from the kernel's _text: no KASLR on the wire */
	ADDRESS_MODULE_TEXT,	/* offset from a kernel module's .text */
};

struct profile_mapping { /* one executable file, known by its content */
	uint32_t file_name;   /* string: base name; "vmlinux" and "module.ko" for the kernel */
	uint32_t path;	      /* string: as the process has it; 0 for the kernel */
	struct build_id gnu;  /* length 0: none */
	uint32_t go_id;	      /* string; 0 = none */
	struct build_id htlhash; /* length 0: not made (the kernel) */
	enum address_base base;
	uint64_t start, limit, file_offset; /* ELF addresses of the executable segment and its offset */
};

enum profile_frame_kind {
	PROFILE_FRAME_NATIVE,
	PROFILE_FRAME_KERNEL,
	PROFILE_FRAME_NAMED,	 /* resolved on the host: function, file, line (interpreters, JIT) */
	PROFILE_FRAME_ANONYMOUS, /* code in anonymous memory that nobody names: "[anon]" */
	PROFILE_FRAME_RUNTIME,	 /* NATIVE of an interpreter's own, which a NAMED one stands for */
};

struct profile_frame {
	enum profile_frame_kind kind;
	uint32_t mapping;  /* NATIVE, KERNEL, RUNTIME */
	uint64_t address;  /* ELF address; callers' are already one less than the return address */
	uint32_t function, file, line; /* NAMED: strings, line number */
	uint32_t type;	   /* NAMED: string for OTLP's profile.frame.type, such as "cpython" */
};

struct profile_stack { /* leaf first, kernel frames before user frames */
	uint32_t first_index; /* into frame_indices */
	uint32_t depth;
	uint32_t incomplete; /* string: the sentence why the user part does not reach its start; 0 = it does */
};

struct profile_process { /* what samples of one kind of process have in common; one OTLP resource */
	uint32_t name;	       /* string: the main thread's name as the kernel has it */
	uint32_t executable;   /* string: path of the executable, or 0 */
	uint32_t container_id; /* string, or 0 */
	uint32_t service;      /* string: --label service, else the container's or unit's name, or 0 */
	uint32_t first_label;  /* pod, namespace …: into label_indices, pairs of strings */
	uint32_t label_count;
	uint32_t attributes; /* what the program says of itself, under its own keys: into attribute_sets */
};

struct profile_link { /* the request that a sample belongs to */
	uint8_t trace_id[16], span_id[8]; /* all zero: none */
};

struct profile_attribute {
	uint32_t key, value; /* strings */
};

struct profile_attribute_set {
	uint32_t first_index, count; /* into attribute_indices */
};

struct profile_sample {
	uint32_t process; /* index into processes */
	uint32_t thread;  /* string: thread name */
	uint32_t stack;
	uint32_t thread_id; /* as the host has it; 0: not known */
	uint64_t count;
	uint64_t value; /* in the profile's unit: nanoseconds for on-cpu */
	uint32_t first_time, time_count; /* newest first: into times, each names the next; 0: none */
	uint32_t type; /* 0: the profile's own, n: other_types[n − 1] */
	uint32_t link; /* into links */
	uint32_t attributes; /* of the request, under its own keys: into attribute_sets */
};

struct profile_time { /* when one sample was taken; entry 0 means "none" */
	uint64_t time_ns; /* on a clock of the sampler's */
	uint32_t next;
};

struct profile_type {
	const char *name; /* on the API: "on-cpu" */
	const char *unit; /* "nanoseconds", "bytes" */
};

/* The samples of one report, of one type ("on-cpu") or of several. */
struct profile {
	const char *type; /* of samples of type 0, as struct profile_type */
	const char *unit;
	const struct profile_type *other_types;
	size_t other_type_count;
	uint64_t start_ns;     /* unix time */
	uint64_t duration_ns;
	uint64_t period_ns;    /* one sample's worth, of type 0; 0 where that means nothing */
	uint8_t id[16];	       /* profile_id of the first process; others count up in the last 4 bytes */
	const char **strings;		   size_t string_count;
	struct profile_mapping *mappings;  size_t mapping_count;
	struct profile_frame *frames;	   size_t frame_count;
	uint32_t *frame_indices;	   size_t frame_index_count;
	struct profile_stack *stacks;	   size_t stack_count;
	struct profile_process *processes; size_t process_count;
	uint32_t *label_indices;
	struct profile_sample *samples;	   size_t sample_count;
	struct profile_time *times;	   size_t time_count;
	struct profile_link *links;	   size_t link_count;
	struct profile_attribute *attributes; size_t attribute_count;
	uint32_t *attribute_indices;
	struct profile_attribute_set *attribute_sets; size_t attribute_set_count;
	uint64_t time_offset_ns;	   /* unix time = time_ns + this, modulo 2^64 */
};

/* The agent's own resource, sent with every report: who it is and what it counted since its start. */
struct profile_counter {
	const char *name; /* "taken", "idle", "lost.ring_full" …: attribute farflame.<name> */
	uint64_t value;   /* cumulative since the agent's start */
};

struct profile_host {
	const char *host, *kernel_release, *architecture, *agent_version;
	uint8_t agent_id[16];	/* random at every start of the agent */
	uint64_t report_seq;	/* 1, 2, 3 …; one for every closed interval, also for lost ones */
	uint64_t acknowledged_seq; /* the last one a server answered 200 to; 0 = none yet */
	uint32_t rate_hz;
	uint64_t start_ns, duration_ns;	/* of this report's interval */
	uint64_t sent_ns;	/* the sender's clock when it was sent, unix time; 0: not said */
	const char *const *label_names, *const *label_values; /* --label */
	size_t label_count;
	const struct profile_counter *counters;
	size_t counter_count;
};

#endif
