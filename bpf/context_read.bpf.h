/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread says of the request that it serves, read from its process' memory, which may say
 * anything. The programs in the kernel read that of the thread that they run in; user space, which
 * reads that of one that waits, defines how before it includes this. Either may define the others.
 *
 *	CONTEXT_READ(to, bytes, from)         0, or it is not there
 *	CONTEXT_ADD_LABEL(room, words, k, v)  may be context_label_add(),
 *	CONTEXT_ADD_BUCKET(room, words)       and context_add_bucket() */
#ifndef BPF_CONTEXT_READ_BPF_H
#define BPF_CONTEXT_READ_BPF_H

#include "bpf/thread_context.h"

#if defined(__bpf__)
#include <bpf/bpf_helpers.h>
#define CONTEXT_READ(to, bytes, from) bpf_probe_read_user(to, bytes, (const void *)(from))
#elif !defined(CONTEXT_READ)
#error "define CONTEXT_READ(to, bytes, from): 0, or it is not there"
#endif
#ifndef CONTEXT_ADD_LABEL
#define CONTEXT_ADD_LABEL(room, words, k, v) context_label_add(room, words, k, v)
#endif
#ifndef CONTEXT_ADD_BUCKET
#define CONTEXT_ADD_BUCKET(room, words) context_add_bucket(room, words)
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline int context_read_word(__u64 *to, __u64 from)
{
	return CONTEXT_READ(to, sizeof(*to), from) != 0;
}

/* --- records of OTEP 4947 --- */

/* Where the thread's pointer to its record is. False: its memory is not there. */
static __always_inline int context_slot(const struct thread_context_place *place, __u64 pointer,
					__u64 *slot)
{
	__u64 vector, block;

	if (!pointer)
		return 0;
	*slot = pointer + place->offset;
	if (place->kind == THREAD_CONTEXT_STATIC)
		return 1;
	if (context_read_word(&vector, pointer + place->vector_at) ||
	    context_read_word(&block, vector + (__u64)place->module * place->entry_bytes))
		return 0;
	*slot = block + place->offset;
	return block && block != ~0ULL; /* this thread has not touched it yet */
}

/* Fills room, which has THREAD_CONTEXT_MAX bytes. pointer: the thread's. Returns how many there
 * are; 0: the thread serves no request, or *is_missing. */
static __always_inline __u32 context_read_record(const struct thread_context_place *place,
						 __u64 pointer, struct thread_context *room,
						 int *is_missing)
{
	__u64 slot, record;
	__u32 more;

	*is_missing = 0;
	if (!context_slot(place, pointer, &slot))
		return 0;
	*is_missing = 1;
	if (context_read_word(&record, slot))
		return 0;
	*is_missing = 0;
	if (!record)
		return 0;
	*is_missing = 1;
	if (CONTEXT_READ(room, THREAD_CONTEXT_HEADER, record))
		return 0;
	*is_missing = 0;
	if (room->valid != THREAD_CONTEXT_RECORD)
		return 0;
	more = room->attributes_bytes;
	if (more > THREAD_RECORD_ATTRIBUTES_BYTES)
		more = THREAD_RECORD_ATTRIBUTES_BYTES;
	if (more && CONTEXT_READ(room->attributes, more, record + THREAD_CONTEXT_HEADER)) {
		*is_missing = 1;
		room->attributes_bytes = 0;
		return THREAD_CONTEXT_HEADER;
	}
	return THREAD_CONTEXT_HEADER + more;
}

/* --- goroutines' labels --- */

/* They never change: a goroutine gets others, and while it is looked at it stands still. Words are
 * read in pieces of at most: */
enum {
	CONTEXT_WORDS = 64,
	GO_G_M = 0x30, /* runtime.g.m */
	/* A list's header, and a label: words */
	GO_LIST_WORDS = 3,
	GO_LABEL_WORDS = 4,
	GO_LABELS_MAX = CONTEXT_WORDS / GO_LABEL_WORDS,
	/* A map's header, and a bucket: 8 bytes of hashes, 8 keys, 8 values, the next bucket */
	GO_MAP_WORDS = 4,
	GO_BUCKET_WORDS = 1 + 8 * 2 + 8 * 2 + 1,
	GO_BUCKET_USED = 5, /* hashes from there on are of a key */
	GO_BUCKET_LOG2_MAX = 2,
	GO_BUCKETS_MAX = 8,
};

static __always_inline void context_left_out(struct thread_context *room, __u64 count)
{
	room->cut = count < (__u64)255 - room->cut ? room->cut + count : 255;
}

static __always_inline __u64 context_word(const __u64 *words, __u32 at)
{
	return words[at & (CONTEXT_WORDS - 1)];
}

/* Appends the label whose key is the string, address and length, at word key_at, and whose value
 * is the one at value_at. 0: it is there. */
static __always_inline int context_label_add(struct thread_context *room, const __u64 *words,
					     __u32 key_at, __u32 value_at)
{
	__u64 key_bytes = context_word(words, key_at + 1);
	__u64 value_bytes = context_word(words, value_at + 1);
	__u32 used = room->attributes_bytes;
	__u8 *to;

	if (key_bytes > THREAD_LABEL_KEY_MAX || used > (THREAD_LABELS_MAX - 1) * THREAD_LABEL_MAX) {
		context_left_out(room, 1);
		return 1;
	}
	if (value_bytes > THREAD_LABEL_VALUE_MAX) {
		value_bytes = THREAD_LABEL_VALUE_MAX;
		context_left_out(room, 1);
	}
	to = room->attributes + used;
	to[0] = key_bytes;
	to[1] = value_bytes;
	if (CONTEXT_READ(to + 2, key_bytes, context_word(words, key_at)) ||
	    CONTEXT_READ(to + 2 + key_bytes, value_bytes, context_word(words, value_at))) {
		context_left_out(room, 1);
		return 1;
	}
	room->attributes_bytes = used + 2 + key_bytes + value_bytes;
	return 0;
}

/* A slice of {key, value}. 0, or it is not there. */
static __always_inline int context_read_list(struct thread_context *room, __u64 *words,
					     __u64 labels)
{
	__u64 count;

	if (CONTEXT_READ(words, GO_LIST_WORDS * sizeof(*words), labels))
		return 1;
	count = words[1];
	if (count > GO_LABELS_MAX) {
		context_left_out(room, count - GO_LABELS_MAX);
		count = GO_LABELS_MAX;
	}
	if (CONTEXT_READ(words, count * GO_LABEL_WORDS * sizeof(*words), words[0]))
		return 1;
	for (__u32 i = 0; i < GO_LABELS_MAX; i++) {
		if (i >= count)
			break;
		CONTEXT_ADD_LABEL(room, words, GO_LABEL_WORDS * i, GO_LABEL_WORDS * i + 2);
	}
	return 0;
}

/* The labels of the bucket. Returns how many it has. */
static __always_inline __u32 context_add_bucket(struct thread_context *room, const __u64 *words)
{
	__u64 hashes = words[0];
	__u32 count = 0;

	for (__u32 i = 0; i < 8; i++, hashes >>= 8) {
		if ((hashes & 255) < GO_BUCKET_USED)
			continue;
		CONTEXT_ADD_LABEL(room, words, 1 + 2 * i, 1 + 8 * 2 + 2 * i);
		count++;
	}
	return count;
}

/* map[string]string as it was before Go 1.24. */
static __always_inline int context_read_map(struct thread_context *room, __u64 *words, __u64 labels)
{
	__u64 count, seen = 0, bucket, buckets;
	__u32 log2, number = 1;

	if (context_read_word(words, labels) || !words[0] ||
	    CONTEXT_READ(words, GO_MAP_WORDS * sizeof(*words), words[0]))
		return 1;
	count = words[0];
	log2 = (words[1] >> 8) & 255;
	buckets = bucket = words[2];
	if (log2 > GO_BUCKET_LOG2_MAX)
		log2 = GO_BUCKET_LOG2_MAX;
	for (__u32 i = 0; i < GO_BUCKETS_MAX && seen < count; i++) {
		if (!bucket) {
			if (number >> log2)
				break;
			bucket = buckets + number++ * GO_BUCKET_WORDS * sizeof(*words);
		}
		if (CONTEXT_READ(words, GO_BUCKET_WORDS * sizeof(*words), bucket))
			return 1;
		bucket = words[GO_BUCKET_WORDS - 1];
		seen += CONTEXT_ADD_BUCKET(room, words);
	}
	if (seen < count)
		context_left_out(room, count - seen);
	return 0;
}

/* Where the labels of the thread's goroutine are. 0: it has none, or there is none, or *is_missing.
 */
static __always_inline __u64 context_labels_at(const struct thread_context_place *place,
					       __u64 pointer, int *is_missing)
{
	__u64 g, m, goroutine, owner, labels;

	*is_missing = 0;
	if (!pointer)
		return 0;
	*is_missing = 1;
	if (context_read_word(&g, pointer + place->offset))
		return 0;
	*is_missing = g != 0; /* a thread of C's has none */
	if (context_read_word(&m, g + GO_G_M) || context_read_word(&goroutine, m + place->curg))
		return 0;
	*is_missing = 0;
	if (!goroutine)
		return 0;
	*is_missing = 1;
	if (context_read_word(&owner, goroutine + GO_G_M) ||
	    context_read_word(&labels, goroutine + place->labels))
		return 0;
	*is_missing = 0;
	return owner == m ? labels : 0;
}

/* As context_read_record(). words: room for CONTEXT_WORDS. */
static __always_inline __u32 context_read_labels(const struct thread_context_place *place,
						 __u64 pointer, struct thread_context *room,
						 __u64 *words, int *is_missing)
{
	__u64 labels = context_labels_at(place, pointer, is_missing);

	if (!labels)
		return 0;
	__builtin_memset(room, 0, THREAD_CONTEXT_HEADER);
	room->valid = THREAD_CONTEXT_LABELS;
	if (place->kind == THREAD_CONTEXT_GO_LIST)
		*is_missing = context_read_list(room, words, labels);
	else
		*is_missing = context_read_map(room, words, labels);
	if (*is_missing || (!room->attributes_bytes && !room->cut))
		return 0;
	return THREAD_CONTEXT_HEADER + room->attributes_bytes;
}

#endif
