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
 * FARFLAME_MALLOC_RATE: bytes per sample, exactly; 0 for none. Without: 512 KiB, and more in
 * threads whose samples would cost them too much. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node-agent/malloc/next_malloc.h"
#include "node-agent/malloc/pace.h"
#include "node-agent/malloc/poisson.h"
#include "node-agent/malloc/probes.h"
#include "node-agent/malloc/sampled_blocks.h"

#define EXPORT      __attribute__((visibility("default")))
#define RARE        __attribute__((noinline, cold))
#define unlikely(x) __builtin_expect(!!(x), 0)
/* Keeps a call a call: the entry point stays on the stack, as its outermost frame of ours. */
#define KEEP_FRAME(value) __asm__ volatile("" : "+r"(value))

struct sampler {
	uint64_t left;   /* bytes before the next one that is sampled */
	uint64_t random; /* 0: a new thread */
	uint64_t rate;   /* by which left was drawn: what a sample stands for goes by it */
	pid_t pid;       /* of whom random is: a child takes other samples than its parent */
	struct pace pace;
};

static __thread struct sampler sampler __attribute__((tls_model("initial-exec")));
static uint64_t rate = POISSON_RATE_DEFAULT;
static uint64_t latest_rate; /* that a thread came to: where new ones begin; 0: none */
static bool is_sampling, is_exact;

/* --- what is sampled --- */

static void seed(struct sampler *self, pid_t pid)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	self->pid = pid;
	self->rate = __atomic_load_n(&latest_rate, __ATOMIC_RELAXED);
	self->rate = self->rate ? self->rate : rate;
	self->pace = (struct pace){0};
	self->random = ((uint64_t)now.tv_nsec << 32) ^ (uint64_t)now.tv_sec ^ (uintptr_t)self ^
		       (uint64_t)pid << 40;
	for (int i = 0; i < 4; i++) {
		self->random += UINT64_C(0x9e3779b97f4a7c15);
		self->random |= !self->random;
		poisson_random(&self->random);
	}
}

static uint64_t draw(struct sampler *self)
{
	return poisson_distance(poisson_random(&self->random), self->rate);
}

/* Nothing was left of what to let go by. Whether this block is sampled. */
RARE static bool sample_next(size_t size)
{
	struct sampler *self = &sampler;
	const bool is_new = !self->random;
	const pid_t pid = getpid();
	uint64_t left;

	if (unlikely(pid != self->pid))
		seed(self, pid);
	left = draw(self);
	if (is_new && left >= size) {
		self->left = left - size;
		return false;
	}
	self->left = is_new ? draw(self) : left;
	return is_sampling && probe_alloc_listeners;
}

/* False: the block of so many bytes is of no interest, without a doubt. */
static inline bool may_be_sampled(size_t size)
{
	return unlikely(__builtin_sub_overflow(sampler.left, size, &sampler.left));
}

static inline bool is_sampled(size_t size)
{
	return may_be_sampled(size) && sample_next(size);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

RARE static void announce(void *block, size_t size)
{
	struct sampler *self = &sampler;
	const bool is_timed = !is_exact && pace_is_timed(&self->pace);
	const uint64_t began = is_timed ? thread_cpu_ns() : 0;
	uintptr_t address = (uintptr_t)block;
	uint64_t next;

	probe_alloc(sampled_blocks_add(address) ? address : 0, size,
		    poisson_weight(size, self->rate));
	KEEP_FRAME(address);
	if (is_exact)
		return;
	next = pace_told(&self->pace, began, is_timed ? thread_cpu_ns() : 0, self->rate, rate);
	if (next == self->rate)
		return;
	/* What was left says nothing of what follows, so that it may be drawn anew. */
	self->rate = next;
	self->left = draw(self);
	__atomic_store_n(&latest_rate, next, __ATOMIC_RELAXED);
}

static void tell_end(uintptr_t address)
{
	if (is_sampling && probe_free_listeners)
		probe_free(address);
}

/* Of a block that may be one that was sampled, before it is given back. */
RARE static void forget(const void *block)
{
	if (sampled_blocks_remove((uintptr_t)block))
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
RARE static void *special_realloc(void *block, size_t size, bool is_wanted)
{
	const uintptr_t address = (uintptr_t)block;
	bool is_sampled_one, has_ended;
	void *moved;

	if (next_early_has(block))
		return early_realloc(block, size);
	is_sampled_one = sampled_blocks_hold(address);
	moved = next_malloc.realloc(block, size);
	has_ended = moved || !size;
	if (is_sampled_one && has_ended)
		tell_end(address);
	if (is_sampled_one)
		sampled_blocks_settle(address, has_ended);
	if (moved && is_wanted)
		announce(moved, size);
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

RARE static void *rare_malloc(size_t size)
{
	void *block;

	if (!next_malloc.malloc && !next_malloc_find())
		return early_alloc(size, 1);
	block = next_malloc.malloc(size);
	if (sample_next(size) && block)
		announce(block, size);
	return block;
}

EXPORT void *malloc(size_t size)
{
	void *(*next)(size_t size) = next_malloc.malloc;
	void *block;

	if (!unlikely(!next) && !may_be_sampled(size))
		return next(size);
	block = rare_malloc(size);
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

RARE static void *rare_calloc(size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes))
		return out_of_memory();
	if (!next_malloc.calloc && !next_malloc_find())
		return early_alloc(bytes, 1);
	block = next_malloc.calloc(count, size);
	if (sample_next(bytes) && block)
		announce(block, bytes);
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
	block = rare_calloc(count, size);
	KEEP_FRAME(block);
	return block;
}

EXPORT void *realloc(void *block, size_t size)
{
	bool is_wanted;

	if (unlikely(!is_ready()))
		return block ? early_realloc(block, size) : early_alloc(size, 1);
	is_wanted = is_sampled(size);
	if (is_wanted || may_be_special(block)) {
		void *moved = special_realloc(block, size, is_wanted);

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
static inline void *taken(void *block, size_t size)
{
	if (block && is_sampled(size))
		announce(block, size);
	KEEP_FRAME(block);
	return block;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, alignment);
	return next_malloc.memalign ? taken(next_malloc.memalign(alignment, size), size)
				    : out_of_memory();
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, alignment);
	return next_malloc.aligned_alloc ? taken(next_malloc.aligned_alloc(alignment, size), size)
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
		taken(*block, size);
	return failure;
}

EXPORT void *valloc(size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, 4096);
	return next_malloc.valloc ? taken(next_malloc.valloc(size), size) : out_of_memory();
}

EXPORT void *pvalloc(size_t size)
{
	if (unlikely(!is_ready()))
		return early_alloc(size, 4096);
	return next_malloc.pvalloc ? taken(next_malloc.pvalloc(size), size) : out_of_memory();
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
	ok = sampler.left == LEFT - BLOCKS * SIZE && sampled_blocks_add((uintptr_t)blocks[0]);
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return ok && !sampled_blocks_remove((uintptr_t)blocks[0]);
}

__attribute__((constructor)) static void start(void)
{
	if (!next_malloc_find())
		return;
	read_rate();
	is_sampling = rate && is_whole();
	rate = rate ? rate : POISSON_RATE_DEFAULT;
	sampler = (struct sampler){0}; /* what it drew before went by another rate */
}
