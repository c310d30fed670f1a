/* SPDX-License-Identifier: Apache-2.0 */
/* What one request brings: decoded, checked, borrowed during the call. All that ingest sees of the
 * store. */
#ifndef SYMBOL_SERVER_STORE_SAMPLE_BATCH_H
#define SYMBOL_SERVER_STORE_SAMPLE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/profile.h" /* enum address_base */

enum {
	SAMPLES_BUCKET_MS = 60000,
	SAMPLES_DEPTH_MAX = 2050, /* frames of a stack; ingest cuts at 2048 and says so */
	SAMPLES_LABELS_MAX = 40,
};

/* PROFILE_TYPE(name on the API, unit of its values, is it a gauge, sampling). The position is
 * the number on disk; rows are only ever added. A gauge's samples say how much there is at the end
 * of their report, not what happened since the one before: gauges.h. */
#define PROFILE_TYPES(TYPE)                                \
	TYPE("on-cpu", "nanoseconds", false, EVEN)         \
	TYPE("off-cpu", "nanoseconds", false, UNEVEN)      \
	TYPE("waker", "nanoseconds", false, UNEVEN)        \
	TYPE("run-queue", "nanoseconds", false, UNEVEN)    \
	TYPE("still-blocked", "nanoseconds", false, WHOLE) \
	TYPE("mem-alloc", "bytes", false, UNEVEN)          \
	TYPE("mem-inuse", "bytes", true, UNEVEN)           \
	TYPE("page-fault", "bytes", false, UNEVEN)         \
	TYPE("on-gpu", "nanoseconds", false, UNEVEN)       \
	TYPE("hbm-alloc", "bytes", false, UNEVEN)          \
	TYPE("hbm-inuse", "bytes", true, UNEVEN)           \
	TYPE("rdma", "bytes", false, UNEVEN)

/* Do samples of one host all weigh the same? WHOLE: nothing is sampled, all there is was told. */
enum profile_sampling { SAMPLING_EVEN, SAMPLING_UNEVEN, SAMPLING_WHOLE };

/* Number of a type and back; -1 and NULL when there is none such. */
int profile_type_find(const char *name, size_t length);
const char *profile_type_name(unsigned number);
const char *profile_type_unit(unsigned number);
bool profile_type_is_gauge(unsigned number);
enum profile_sampling profile_type_sampling(unsigned number);

enum location_kind {
	LOCATION_NATIVE, /* module + ELF address */
	LOCATION_KERNEL, /* module + address relative to its base */
	LOCATION_NAMED,  /* function, file, line as the sender resolved them; type says the language
			  */
	LOCATION_ANONYMOUS,  /* "[anon]" */
	LOCATION_INCOMPLETE, /* last (root) frame of a stack: function holds the sentence why */
	LOCATION_RUNTIME,    /* NATIVE of an interpreter's own: what a NAMED frame stands for */
};

/* Module and address say where it is. */
static inline bool location_has_address(enum location_kind kind)
{
	return kind == LOCATION_NATIVE || kind == LOCATION_KERNEL || kind == LOCATION_RUNTIME;
}

struct text { /* not NUL-terminated; UTF-8 repaired by the reader */
	const char *at;
	uint32_t length;
};

struct batch_module {
	/* The key: GNU build-id, else htlhash, else 16 bytes made of the Go id: hash_bytes() of its
	 * text with seeds 1 and 2, little-endian. Length 0: the sender knows only a name. */
	struct build_id id;
	struct build_id htlhash; /* when the sender gave it: an alias of id */
	struct text go_id;       /* likewise */
	struct text name;        /* base name of the file */
	enum address_base base;
};

struct batch_location {
	enum location_kind kind;
	uint32_t module;  /* into modules; of those with an address (UINT32_MAX: no module, name is
			     "[unknown]") */
	uint64_t address; /* canonical: ELF address, or relative to base */
	struct text function, file, type;
	uint32_t line;
};

struct batch_stack {          /* leaf first */
	uint32_t first_index; /* into location_indices */
	uint32_t depth;
	uint64_t hash[2]; /* of its modules' ids and addresses: the stable id (first 64 bits shown)
			   */
};

struct batch_label {
	struct text name, value;
	bool is_attribute; /* the sender did not mean it as a label: label_limits.h */
};

struct batch_series { /* sorted by name, no duplicates, no empty values */
	struct batch_label *labels;
	uint32_t label_count;
};

/* Of a link: a trace's id, then a span's. */
enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, SPAN_IDS_BYTES = 24 };

struct batch_sample {
	uint32_t stack;
	struct text thread;              /* its name */
	struct text context;             /* the same with its id and attributes: sample_context.h */
	const uint8_t *link;             /* SPAN_IDS_BYTES; NULL: none */
	uint64_t samples;                /* count */
	uint64_t value;                  /* in the type's unit */
	uint32_t first_time, time_count; /* into times; 0: the sender does not say when */
};

struct batch_profile {
	uint8_t id[16];      /* all zero: none, then nothing is deduplicated */
	const char *type;    /* "on-cpu" …, static */
	int64_t time_ms;     /* start of its interval, unix; decides the bucket */
	int64_t duration_ms; /* of its interval; 0: the sender does not say */
	uint32_t series;
	uint32_t first_sample, sample_count;
	bool is_counted; /* the sender counts what it takes (batch_counters); else taken = samples
			  */
};

enum {
	BATCH_LOST_REASONS = 24, /* with tallies.h */
	BATCH_STACK_RESULTS = 40,
	COUNT_NAME_BYTES = 40,
};

struct named_count { /* a counter whose name the sender chose */
	char name[COUNT_NAME_BYTES];
	uint64_t count;
};

/* What a report says of its agent in numbers. Counters are cumulative since that agent's start;
 * the names of lost[] and stacks[] stand beside it, as whoever has it knows them. */
struct agent_numbers {
	uint32_t rate_hz;
	uint64_t seq, acknowledged;
	uint64_t taken, idle;
	unsigned lost_count, stacks_count;
	uint64_t lost[BATCH_LOST_REASONS];
	uint64_t stacks[BATCH_STACK_RESULTS]; /* by how the walk ended */
	int64_t time_ms, duration_ms;         /* of the report's interval */
	int64_t received_ms;
	int64_t sent_ms; /* on the agent's clock; 0: it does not say */
};

static inline int64_t agent_numbers_end_ms(const struct agent_numbers *numbers)
{
	return numbers->time_ms + numbers->duration_ms;
}

/* What agents count of a type beside its samples (tallies.h). It comes among the losses, under a
 * name that no reason can have. */
enum tally_what {
	TALLY_EXACT,
	TALLY_COVERED, /* what samples stand for */
	TALLY_WINDOWS, /* that samples come from; variances of sums of them, by their samples, and
			  by how they differ: in one unit, node-agent/window_spread.h */
	TALLY_WITHIN,
	TALLY_BETWEEN,
	TALLY_COUNT
};
struct tally {
	const char *attribute; /* after "farflame." */
	const char *name;      /* among the losses: with a colon */
	const char *type;
	enum tally_what what;
};

/* NULL: none such. */
const struct tally *tally_of_attribute(struct text attribute);

/* What an agent can be denied while it runs (node-agent/kernel/lacks.h), as "farflame.lacks.…". */
#define AGENT_LACKS(LACK)      LACK(descriptors) LACK(realtime) LACK(threads) LACK(bpf)
#define AGENT_LACK_ENUM(name_) AGENT_LACK_##name_,
enum agent_lack { AGENT_LACKS(AGENT_LACK_ENUM) AGENT_LACK_COUNT };
#undef AGENT_LACK_ENUM
extern const char *const agent_lack_names[AGENT_LACK_COUNT];

struct batch_counters { /* an agent's own resource */
	uint8_t agent_id[16], profile_id[16];
	struct text host, agent_version, kernel_release;
	struct agent_numbers numbers;
	struct text lost[BATCH_LOST_REASONS], stacks[BATCH_STACK_RESULTS]; /* names */
	uint64_t lacks[AGENT_LACK_COUNT]; /* how often it was denied that */
	uint64_t clock_jumps;             /* how often its host's clock was set */
	uint64_t cpus;                    /* online on its host; 0: it does not say */
};

struct batch_refusals { /* profiles that the store does not take; the rest of the batch is */
	unsigned profiles;
	char sentence[200]; /* why the first one is not; "" when none */
};

struct batch_untimely { /* what is too old to be kept or in the future, of a sender without counters
			 */
	const char *type, *reason; /* static: "too_old" or "too_new" */
	uint32_t series;           /* for its host alone */
	uint64_t samples;
	int64_t received_ms; /* counted as lost then */
	uint8_t id[16];      /* as struct batch_profile's; zero: not known */
};

struct sample_batch {
	uint32_t tenant; /* 1: the default tenant */
	struct batch_module *modules;
	uint32_t module_count;
	struct batch_location *locations;
	uint32_t location_count;
	uint32_t *location_indices;
	uint32_t location_index_count;
	struct batch_stack *stacks;
	uint32_t stack_count;
	struct batch_series *series;
	uint32_t series_count;
	struct batch_sample *samples;
	uint32_t sample_count;
	uint64_t *times;
	uint32_t time_count; /* unix ns, of single samples */
	struct batch_profile *profiles;
	uint32_t profile_count;
	struct batch_counters *counters;
	uint32_t counters_count;
	struct batch_untimely *untimely;
	uint32_t untimely_count;
	struct text sender; /* address of the peer: host label of senders that name no host */
	struct batch_refusals *refusals; /* filled by samples_add(); NULL: nobody asks */
};

#endif
