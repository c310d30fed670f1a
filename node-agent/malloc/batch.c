/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/batch.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/alloc_batch.h"
#include "common/clock.h"
#include "node-agent/malloc/probes.h"
#include "node-agent/malloc/sampled_blocks.h"

enum {
	LANES = 16, /* threads that have something waiting; others tell at once */
	PAGE = 4096,
	RECORDS_MAX = ALLOC_BATCH_BYTES / sizeof(struct alloc_record),
	WAIT_NS = 500000000,
	WARM_NS = 1000000000, /* until an agent has met the program's code */
	SINGLE_NS = 50000000, /* so often one is told by itself, */
	SINGLE_BURST = 100,   /* so many at once; */
	BYTE_NS = 500,        /* and so often a byte waits: more is more than an agent has room for, */
	BYTES_BURST = 128 << 10,
	WORD_LEAST = 1 << 16, /* what is less is no address of code, */
	TAG_BITS = 11,        /* of a lane's records, more than it has */
	CONTEXT_REACH = 1 << 20,
};

#if defined(__x86_64__)
#define WORD_MOST (UINT64_C(1) << 47) /* nor what is more */
#else
#define WORD_MOST UINT64_MAX /* return addresses are signed */
#endif

_Static_assert(RECORDS_MAX < 1 << TAG_BITS && LANES << TAG_BITS <= 1 << (SAMPLED_TAG_BITS - 1),
	       "each that waits has a tag of its own");

/* The most bytes that a record of so many words may have. */
#define RECORD_BYTES(words_) \
	(sizeof(struct alloc_record) + ((words_) + ((words_) + 63) / 64) * sizeof(uint64_t))

/* One thread's. Whoever has the lock may do what it likes; nobody waits for it. */
struct lane {
	uint32_t lock;
	uint32_t count, used, made; /* records and their bytes; all that there ever were */
	uintptr_t owner;
	uint64_t oldest_ns;
	uint16_t tags[RECORDS_MAX];
	uint8_t records[ALLOC_BATCH_BYTES] __attribute__((aligned(PAGE)));
};

/* Zeros in a child of fork(). */
struct waiting {
	struct lane lanes[LANES];
	uint64_t first_ns;               /* when somebody was told for the first time; 0: nobody */
	uint64_t singles_ns, bytes_ns; /* as many as may be at once may be again then */
	uint32_t is_any;
};

static struct waiting *waiting; /* NULL: nothing is batched */
static bool is_over;
static uintptr_t main_thread;   /* its thread pointer */
static uintptr_t heap_start;    /* brk(2)'s: no code is there, and no stack */
static ptrdiff_t context_at;    /* from the thread pointer to what it serves; 0: nothing says so */
static __thread struct lane *own_lane __attribute__((tls_model("initial-exec")));

/* Where the main thread's stack begins; glibc's. */
extern void *__libc_stack_end __attribute__((weak));

static uintptr_t thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* False: somebody else has it, perhaps this thread itself below a signal. */
static bool lock_try(uint32_t *lock)
{
	return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

static void unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* --- what can be batched --- */

/* A bucket of so many, one of which comes in each step, has one; it is kept as the time at which it
 * is full again. */
static bool is_allowed(const uint64_t *full_ns, uint64_t now, uint64_t step_ns, uint64_t burst)
{
	const uint64_t full = __atomic_load_n(full_ns, __ATOMIC_RELAXED);

	return full < now || full - now < step_ns * burst;
}

/* Threads that come at once may take the same. */
static void spend(uint64_t *full_ns, uint64_t now, uint64_t spent_ns)
{
	const uint64_t full = __atomic_load_n(full_ns, __ATOMIC_RELAXED);

	__atomic_store_n(full_ns, (full < now ? now : full) + spent_ns, __ATOMIC_RELAXED);
}

/* For the first second, and now and then. */
static bool is_single(uint64_t now)
{
	const uint64_t first = __atomic_load_n(&waiting->first_ns, __ATOMIC_RELAXED);

	if (!first)
		__atomic_store_n(&waiting->first_ns, now, __ATOMIC_RELAXED);
	if (!first || now - first < WARM_NS)
		return true;
	if (!is_allowed(&waiting->singles_ns, now, SINGLE_NS, SINGLE_BURST))
		return false;
	spend(&waiting->singles_ns, now, SINGLE_NS);
	return true;
}

/* A request is read from its thread when that tells. */
static bool serves_request(uintptr_t thread)
{
	return context_at && *(void *const *)(thread + (uintptr_t)context_at);
}

/* From there to the stack's end. A thread of pthread_create(3) has its descriptor there, in the
 * same mapping; the main one's stack is at least so large. 0: too deep, or another stack. */
static uint32_t stack_words(uintptr_t sp, uintptr_t thread)
{
	const uintptr_t end = thread == main_thread
				      ? (&__libc_stack_end ? (uintptr_t)__libc_stack_end : 0)
				      : thread;

	return end > sp && end - sp < ALLOC_STACK_WORDS * sizeof(uint64_t)
		       ? (uint32_t)(end - sp + 7) / (uint32_t)sizeof(uint64_t)
		       : 0;
}

/* The caller's registers as they are when it returns: ip, sp, fp, saved. */
void batch_here(__u64 *registers);

#if defined(__x86_64__)
#define STORE_REGISTERS                     \
	"	mov (%rsp), %rax\n"         \
	"	lea 8(%rsp), %rcx\n"        \
	"	mov %rax, (%rdi)\n"         \
	"	mov %rcx, 8(%rdi)\n"        \
	"	mov %rbp, 16(%rdi)\n"       \
	"	mov %rbx, 24(%rdi)\n"       \
	"	mov %r12, 32(%rdi)\n"       \
	"	mov %r13, 40(%rdi)\n"       \
	"	mov %r14, 48(%rdi)\n"       \
	"	mov %r15, 56(%rdi)\n"
#elif defined(__aarch64__)
#define STORE_REGISTERS                     \
	"	mov x1, sp\n"               \
	"	stp x30, x1, [x0]\n"        \
	"	stp x29, x19, [x0, 16]\n"   \
	"	stp x20, x21, [x0, 32]\n"   \
	"	stp x22, x23, [x0, 48]\n"   \
	"	stp x24, x25, [x0, 64]\n"   \
	"	stp x26, x27, [x0, 80]\n"   \
	"	str x28, [x0, 96]\n"
#endif
__asm__(".pushsection .text, \"ax\", %progbits\n"
	"	.hidden batch_here\n"
	"	.globl batch_here\n"
	"	.type batch_here, %function\n"
	"batch_here:\n"
	"	.cfi_startproc\n" STORE_REGISTERS "	ret\n"
	"	.cfi_endproc\n"
	"	.size batch_here, . - batch_here\n"
	".popsection\n");

/* --- a lane, whose lock is had --- */

static struct alloc_record *record_at(struct lane *lane, uint32_t at)
{
	return (struct alloc_record *)(lane->records + at);
}

/* What ends from now on is seen by records_told(). */
static void records_settle(struct lane *lane)
{
	for (uint32_t i = 0, at = 0; i < lane->count; i++) {
		struct alloc_record *record = record_at(lane, at);

		if (record->key && !sampled_blocks_waits(record->key, lane->tags[i]))
			record->key = ALLOC_KEY_ENDED;
		at += record->size;
	}
}

/* One that has ended in between was told as one that is in use. */
static void records_told(struct lane *lane)
{
	for (uint32_t i = 0, at = 0; i < lane->count; i++) {
		const struct alloc_record *record = record_at(lane, at);

		at += record->size;
		if (record->key > ALLOC_KEY_ENDED &&
		    !sampled_blocks_told(record->key, lane->tags[i]) && probe_free_listeners)
			probe_free(record->key);
	}
}

static void lane_flush(struct lane *lane)
{
	const bool is_own = lane == own_lane && lane->owner == thread_pointer();

	if (lane->count && probe_batch_listeners) {
		records_settle(lane);
		probe_batch(lane->records, lane->used,
			    lane->count | (is_own ? 0 : ALLOC_BATCH_FOREIGN));
		records_told(lane);
	}
	lane->count = lane->used = 0;
}

/* This thread's, locked. NULL: there is none for it now. */
static struct lane *lane_take(void)
{
	const uintptr_t thread = thread_pointer();
	struct lane *lane = own_lane;

	if (lane && lane->owner == thread && lock_try(&lane->lock)) {
		if (lane->owner == thread)
			return lane;
		unlock(&lane->lock);
	}
	for (int i = 0; i < LANES; i++) {
		lane = &waiting->lanes[i];
		if (__atomic_load_n(&lane->count, __ATOMIC_RELAXED) || !lock_try(&lane->lock))
			continue;
		if (!lane->count) {
			lane->owner = thread;
			own_lane = lane;
			return lane;
		}
		unlock(&lane->lock);
	}
	return NULL;
}

/* Those of a stack that matter to who walks it. Returns how many. */
__attribute__((no_sanitize("address"))) static uint32_t
words_pick(const uint64_t *from, uint32_t words, uint64_t *bits, uint64_t *to)
{
	const uint64_t heap = (uint64_t)(uintptr_t)sbrk(0) - heap_start;
	uint32_t kept = 0;

	for (uint32_t at = 0; at < words; at += 64) {
		const uint32_t end = words - at < 64 ? words - at : 64;
		uint64_t set = 0;

		for (uint32_t i = 0; i < end; i++) {
			const uint64_t word = from[at + i];
			const uint64_t is_kept = (word - WORD_LEAST < WORD_MOST - WORD_LEAST) &
						 (word - heap_start >= heap);

			to[kept] = word;
			kept += (uint32_t)is_kept;
			set |= is_kept << i;
		}
		bits[at / 64] = set;
	}
	return kept;
}

/* There is room for the longest. */
static void record_put(struct lane *lane, const struct alloc_record *head)
{
	struct alloc_record *record = record_at(lane, lane->used);
	const uint32_t bits = (head->words + 63) / 64;

	*record = *head;
	record->size = (uint32_t)(sizeof *head + bits * sizeof(uint64_t)) +
		       words_pick((const uint64_t *)head->sp, head->words, (uint64_t *)record->stack,
				  (uint64_t *)record->stack + bits) *
			       (uint32_t)sizeof(uint64_t);
	if (!lane->count)
		lane->oldest_ns = head->time_ns;
	spend(&waiting->bytes_ns, head->time_ns, (uint64_t)BYTE_NS * record->size);
	lane->used += record->size;
	lane->count++;
	__atomic_store_n(&waiting->is_any, 1, __ATOMIC_RELAXED);
}

/* --- from outside --- */

__attribute__((noinline)) static bool add(struct alloc_record *head, uintptr_t address)
{
	struct lane *lane = lane_take();
	uint32_t tag;

	if (!lane)
		return false;
	if (lane->count && (lane->used + RECORD_BYTES(head->words) > ALLOC_BATCH_BYTES ||
			    head->time_ns - lane->oldest_ns > WAIT_NS))
		lane_flush(lane);
	tag = 1U << (SAMPLED_TAG_BITS - 1) | (uint32_t)(lane - waiting->lanes) << TAG_BITS |
	      (lane->made++ & ((1U << TAG_BITS) - 1));
	lane->tags[lane->count] = (uint16_t)tag;
	head->key = sampled_blocks_add(address, tag) ? address : 0;
	record_put(lane, head);
	unlock(&lane->lock);
	return true;
}

bool batch_add(uintptr_t address, uint64_t bytes, uint64_t weighted)
{
	const uintptr_t thread = thread_pointer();
	struct alloc_record head = {.bytes = bytes, .weighted = weighted, .tls = thread};

	if (!waiting || !probe_batch_listeners || serves_request(thread))
		return false;
	head.time_ns = monotonic_ns();
	if (__atomic_load_n(&is_over, __ATOMIC_RELAXED) || is_single(head.time_ns)) {
		batch_tick();
		return false;
	}
	batch_here(&head.ip);
	head.words = stack_words(head.sp, thread);
	return head.words &&
	       is_allowed(&waiting->bytes_ns, head.time_ns, BYTE_NS, BYTES_BURST) &&
	       add(&head, address);
}

/* Those that have waited for so long; what somebody is at just now is left to him. */
static void flush_older(uint64_t now, uint64_t wait_ns)
{
	for (int i = 0; i < LANES; i++) {
		struct lane *lane = &waiting->lanes[i];

		if (!__atomic_load_n(&lane->count, __ATOMIC_RELAXED) || !lock_try(&lane->lock))
			continue;
		if (lane->count && now - lane->oldest_ns >= wait_ns)
			lane_flush(lane);
		unlock(&lane->lock);
	}
}

void batch_tick(void)
{
	if (waiting && __atomic_load_n(&waiting->is_any, __ATOMIC_RELAXED))
		flush_older(monotonic_ns(), WAIT_NS);
}

void batch_flush(void)
{
	if (waiting)
		flush_older(monotonic_ns(), 0);
}

void batch_end(void)
{
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
}

void batch_drop(void)
{
	if (!waiting || !__atomic_exchange_n(&waiting->first_ns, 0, __ATOMIC_RELAXED))
		return;
	waiting->is_any = 0;
	for (int i = 0; i < LANES; i++)
		if (lock_try(&waiting->lanes[i].lock)) {
			waiting->lanes[i].count = waiting->lanes[i].used = 0;
			unlock(&waiting->lanes[i].lock);
		}
}

/* What a thread serves, by OpenTelemetry's name. False: it is no part of what all threads have from
 * their start on. */
static bool context_find(void)
{
	const void *at = dlsym(RTLD_DEFAULT, "otel_thread_ctx_v1");

	dlerror();
	if (at)
		context_at = (ptrdiff_t)((uintptr_t)at - thread_pointer());
	return context_at < CONTEXT_REACH && context_at > -CONTEXT_REACH;
}

void batch_init(void)
{
	void *at;

	main_thread = thread_pointer();
	heap_start = (uintptr_t)sbrk(0);
	if (!context_find())
		return;
	at = mmap(NULL, sizeof *waiting, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return;
	if (madvise(at, sizeof *waiting, MADV_WIPEONFORK)) {
		munmap(at, sizeof *waiting);
		return;
	}
	waiting = at;
}
