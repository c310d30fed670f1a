/* SPDX-License-Identifier: Apache-2.0 */
/* libfarflame-malloc.so, for LD_PRELOAD or to be linked with: the C library's allocator, with a
 * sample of its blocks announced by the probes of probes.h while somebody listens. C++'s operator
 * new and delete come by here through malloc() and free(), as libstdc++ and libc++ have it.
 *
 * The usual way through malloc() is a subtraction and a jump to the C library's, that of free() a
 * look at a byte. Blocks have no header of ours, so that any of them may be given back by any
 * means. State is each thread's own, of the initial-exec kind: it needs no allocation, no
 * destructor, and no lock that a child of fork() or a signal handler could find taken.
 *
 * FARFLAME_MALLOC_RATE: bytes per sample, exactly; 0 for none. Without: as few as leave the
 * program its CPU time, and of these those that site_rates.h chooses are told. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node-agent/malloc/batch.h"
#include "common/clock.h"
#include "node-agent/malloc/call_place.h"
#include "node-agent/malloc/next_malloc.h"
#include "node-agent/malloc/poisson.h"
#include "node-agent/malloc/probes.h"
#include "node-agent/malloc/python.h"
#include "node-agent/malloc/sampled_blocks.h"
#include "node-agent/malloc/site_rates.h"

#define EXPORT      __attribute__((visibility("default")))
#define RARE        __attribute__((noinline, cold))
#define unlikely(x) __builtin_expect(!!(x), 0)
/* Keeps a call a call: the entry point stays on the stack, as its outermost frame of ours. */
#define KEEP_FRAME(value) __asm__ volatile("" : "+r"(value))
#define CALLER            __builtin_return_address(0)

enum {
	LOOKS = 64, /* samples of a thread from one look at the clock to the next */
	TIMED = 8,  /* one told block of so many */
	/* What one in a batch counts for: it costs the program less, and the agent the rest. */
	BATCHED_NS = 2000,
};

struct sampler {
	uint64_t left;   /* bytes before the next one that is sampled */
	uint64_t random; /* 0: a new thread */
	uint64_t rate;   /* by which left was drawn: what a sample stands for goes by it */
	uint32_t samples;
	pid_t pid; /* of whom random is: a child takes other samples than its parent */
};

static __thread struct sampler sampler __attribute__((tls_model("initial-exec")));
static uint64_t rate = POISSON_RATE_DEFAULT;
static bool is_sampling, is_exact;
static struct site_rates rates;
static uint64_t settled_ns, settled_cpu_ns; /* when rates were, and the process' CPU time then */

/* --- what is sampled --- */

static void seed(struct sampler *self)
{
	const uint64_t now = monotonic_ns();

	self->pid = getpid();
	self->random = (now << 32) ^ (now >> 32) ^ (uintptr_t)self ^ (uint64_t)self->pid << 40;
	for (int i = 0; i < 4; i++) {
		self->random += UINT64_C(0x9e3779b97f4a7c15);
		self->random |= !self->random;
		poisson_random(&self->random);
	}
}

static uint64_t draw(struct sampler *self, bool is_heard)
{
	self->rate = is_heard && !is_exact ? __atomic_load_n(&rates.rate, __ATOMIC_RELAXED) : rate;
	return poisson_distance(poisson_random(&self->random), self->rate);
}

/* Whoever comes first when it is time. A child's CPU time begins anew. */
RARE static void settle(bool is_due)
{
	const uint64_t now = monotonic_ns();
	uint64_t last = __atomic_load_n(&settled_ns, __ATOMIC_RELAXED), cpu_ns, before;

	if ((!is_due && now - last < SITE_TICK_NS) ||
	    !__atomic_compare_exchange_n(&settled_ns, &last, now, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	batch_tick();
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	before = __atomic_exchange_n(&settled_cpu_ns, cpu_ns, __ATOMIC_RELAXED);
	site_rates_settle(&rates, cpu_ns > before ? cpu_ns - before : 0, now - last);
}

/* Nothing was left of what to let go by. What the block stands for if it is to be told, for
 * sample_weight(); 0: it is not. from: into whom the entry point returns. */
RARE static uint64_t sample_next(size_t size, const void *from)
{
	struct sampler *self = &sampler;
	const bool is_heard = is_sampling && probe_alloc_listeners;
	uint64_t drawn_by = self->rate, left;
	uint32_t count = 1;

	if (unlikely(!self->random)) {
		seed(self);
		left = draw(self, is_heard);
		if (left >= size) {
			self->left = left - size;
			return 0;
		}
		drawn_by = self->rate;
	}
	self->left = draw(self, is_heard);
	if (!is_heard) {
		batch_drop();
		return 0;
	}
	if (!is_exact) {
		if (unlikely(++self->samples % LOOKS == 0))
			settle(false);
		count = site_sample(&rates, call_place((uintptr_t)from, (uintptr_t)self));
	}
	if (!count)
		return 0;
	if (unlikely(python_calls(from)))
		batch_end();
	return drawn_by << 32 | count;
}

static uint64_t sample_weight(uint64_t sample, size_t size)
{
	uint64_t weight = poisson_weight(size, sample >> 32);

	return __builtin_mul_overflow(weight, sample & UINT32_MAX, &weight) ? UINT64_MAX : weight;
}

/* False: the block of so many bytes is of no interest, without a doubt. */
static inline bool may_be_sampled(size_t size)
{
	return unlikely(__builtin_sub_overflow(sampler.left, size, &sampler.left));
}

static void was_told(uint64_t cost_ns)
{
	if (!is_exact && site_rates_told(&rates, cost_ns))
		settle(true);
}

static void tell(uintptr_t address, size_t size, uint64_t weight)
{
	struct sampler *self = &sampler;
	const bool is_timed = !is_exact && (self->random >> 40) % TIMED == 0;
	const uint64_t began = is_timed ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;

	if (unlikely(self->pid != getpid()))
		seed(self);
	probe_alloc(sampled_blocks_add(address, 0) ? address : 0, size, weight);
	was_told(is_timed ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - began : 0);
}

RARE static void announce(void *block, size_t size, uint64_t sample)
{
	const uint64_t weight = sample_weight(sample, size);
	uintptr_t address = (uintptr_t)block;

	if (batch_add(address, size, weight))
		was_told(BATCHED_NS);
	else
		tell(address, size, weight);
	KEEP_FRAME(address);
}

static void tell_end(uintptr_t address)
{
	if (!is_sampling || !probe_free_listeners)
		return;
	probe_free(address);
	batch_tick();
}

/* Of a block that may be one that was sampled, before it is given back. */
RARE static void forget(const void *block)
{
	unsigned waits;

	if (sampled_blocks_remove((uintptr_t)block, &waits) && !waits)
		tell_end((uintptr_t)block);
}

static inline bool may_be_special(const void *block)
{
	return unlikely(sampled_blocks_may_have((uintptr_t)block));
}

/* --- the ways that are seldom gone --- */

static void *out_of_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

RARE static void *early_alloc(size_t size, size_t alignment)
{
	void *block = next_early_alloc(size, alignment);

	return block ? block : out_of_memory();
}

RARE static void *early_realloc(void *block, size_t size)
{
	const size_t had = next_early_size(block);
	void *moved = malloc(size);

	if (moved)
		memcpy(moved, block, had < size ? had : size);
	return moved;
}

/* Only then is it known whether the old block has ended; one of size 0 may be none. Until that is
 * told nobody else's is followed by its address. */
RARE static void *special_realloc(void *block, size_t size, uint64_t sample)
{
	const uintptr_t address = (uintptr_t)block;
	bool is_sampled_one, has_ended;
	unsigned waits;
	void *moved;

	if (next_early_has(block))
		return early_realloc(block, size);
	is_sampled_one = sampled_blocks_hold(address, &waits);
	moved = next_malloc.realloc(block, size);
	has_ended = moved || !size;
	if (is_sampled_one && has_ended && !waits)
		tell_end(address);
	if (is_sampled_one)
		sampled_blocks_settle(address, has_ended);
	if (moved && sample)
		announce(moved, size, sample);
	return moved;
}

RARE static void special_free(void *block)
{
	if (next_early_has(block) || unlikely(!next_malloc.free))
		return;
	forget(block);
	next_malloc.free(block);
}

static bool is_ready(void)
{
	return next_malloc.malloc || next_malloc_find();
}

/* --- the entry points --- */

RARE static void *rare_malloc(size_t size, const void *from)
{
	uint64_t sample;
	void *block;

	if (!next_malloc.malloc && !next_malloc_find())
		return early_alloc(size, 1);
	sample = sample_next(size, from);
	block = next_malloc.malloc(size);
	if (sample && block)
		announce(block, size, sample);
	return block;
}

EXPORT void *malloc(size_t size)
{
	void *(*next)(size_t size) = next_malloc.malloc;
	void *block;

	if (!unlikely(!next) && !may_be_sampled(size))
		return next(size);
	block = rare_malloc(size, CALLER);
	KEEP_FRAME(block);
	return block;
}

EXPORT void free(void *block)
{
	if (may_be_special(block)) {
		special_free(block);
		return;
	}
	if (unlikely(!next_malloc.free)) /* then it is nobody's */
		return;
	next_malloc.free(block);
}

RARE static void *rare_calloc(size_t count, size_t size, const void *from)
{
	uint64_t sample;
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes))
		return out_of_memory();
	if (!next_malloc.calloc && !next_malloc_find())
		return early_alloc(bytes, 1);
	sample = sample_next(bytes, from);
	block = next_malloc.calloc(count, size);
	if (sample && block)
		announce(block, bytes, sample);
	return block;
}

EXPORT void *calloc(size_t count, size_t size)
{
	void *(*next)(size_t count, size_t size) = next_malloc.calloc;
	size_t bytes;
	void *block;

	if (!unlikely(!next) && !__builtin_mul_overflow(count, size, &bytes) &&
	    !may_be_sampled(bytes))
		return next(count, size);
	block = rare_calloc(count, size, CALLER);
	KEEP_FRAME(block);
	return block;
}

EXPORT void *realloc(void *block, size_t size)
{
	uint64_t sample;

	if (unlikely(!is_ready()))
		return block ? early_realloc(block, size) : early_alloc(size, 1);
	sample = may_be_sampled(size) ? sample_next(size, CALLER) : 0;
	if (sample || may_be_special(block)) {
		void *moved = special_realloc(block, size, sample);

		KEEP_FRAME(moved);
		return moved;
	}
	return next_malloc.realloc(block, size);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;
	void *moved;

	if (__builtin_mul_overflow(count, size, &bytes))
		return out_of_memory();
	moved = realloc(block, bytes);
	KEEP_FRAME(moved);
	return moved;
}

/* What became of a block that one of the functions below took. */
static inline void *taken(void *block, size_t size, const void *from)
{
	uint64_t sample = block && may_be_sampled(size) ? sample_next(size, from) : 0;

	if (sample)
		announce(block, size, sample);
	KEEP_FRAME(block);
	return block;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, alignment);
	return next_malloc.memalign ? taken(next_malloc.memalign(alignment, size), size, CALLER)
				    : out_of_memory();
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, alignment);
	return next_malloc.aligned_alloc
		       ? taken(next_malloc.aligned_alloc(alignment, size), size, CALLER)
		       : out_of_memory();
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
	void *early;
	int failure;

	if (unlikely(!is_ready())) {
		early = next_early_alloc(size, alignment);
		if (early)
			*block = early;
		return early ? 0 : ENOMEM;
	}
	if (!next_malloc.posix_memalign)
		return ENOMEM;
	failure = next_malloc.posix_memalign(block, alignment, size);
	if (!failure)
		taken(*block, size, CALLER);
	return failure;
}

EXPORT void *valloc(size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, 4096);
	return next_malloc.valloc ? taken(next_malloc.valloc(size), size, CALLER) : out_of_memory();
}

EXPORT void *pvalloc(size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, 4096);
	return next_malloc.pvalloc ? taken(next_malloc.pvalloc(size), size, CALLER)
				   : out_of_memory();
}

/* C23's; a C library that has them would not come by free(). */
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_sized(void *block, size_t size)
{
	(void)size;
	free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size)
{
	(void)alignment, (void)size;
	free(block);
}

static void arena_given(void *arena)
{
	if (may_be_special(arena))
		forget(arena);
}

/* --- start --- */

static void read_rate(void)
{
	const char *text = secure_getenv("FARFLAME_MALLOC_RATE");
	uint64_t number = 0;

	if (!text || !*text)
		return;
	for (; *text >= '0' && *text <= '9' && number < UINT32_MAX; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	if (*text)
		return;
	rate = number;
	is_exact = true;
}

/* Whether all that the program takes and gives back comes by here: of one with an allocator of its
 * own perhaps only a part does. Asked by trying, since what a symbol's address is said to be may be
 * an entry in the program's own table of calls. */
static bool is_whole(void)
{
	enum { SIZE = 16, BLOCKS = 7, LEFT = 1 << 20 };
	void *blocks[BLOCKS];
	unsigned waits;
	bool ok;

	if (!next_malloc_is_libc())
		return false;
	sampler = (struct sampler){.left = LEFT, .random = 1, .pid = getpid()};
	blocks[0] = malloc(SIZE);
	blocks[1] = calloc(1, SIZE);
	blocks[2] = realloc(NULL, SIZE);
	blocks[3] = reallocarray(NULL, 1, SIZE);
	blocks[4] = memalign(SIZE, SIZE);
	blocks[5] = aligned_alloc(SIZE, SIZE);
	if (posix_memalign(&blocks[6], SIZE, SIZE))
		blocks[6] = NULL;
	ok = sampler.left == LEFT - BLOCKS * SIZE && sampled_blocks_add((uintptr_t)blocks[0], 0);
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return ok && !sampled_blocks_remove((uintptr_t)blocks[0], &waits);
}

__attribute__((constructor)) static void start(void)
{
	if (!next_malloc_find())
		return;
	read_rate();
	call_place_init();
	site_rates_init(&rates);
	if (!python_is_there())
		batch_init();
	is_sampling = rate && is_whole();
	if (is_sampling)
		python_watch_arenas(taken, arena_given);
	rate = rate ? rate : POISSON_RATE_DEFAULT;
	sampler = (struct sampler){0}; /* what it drew before went by another rate */
}

__attribute__((destructor)) static void stop(void)
{
	if (is_sampling && probe_alloc_listeners)
		batch_flush();
}
