/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The part of the user's stack that was read last. A read costs as much as a frame's arithmetic,
 * of a few words or of many, and cache lines that are fetched together arrive together: callers
 * whose frames lie close are served by one read. */
#ifndef BPF_STACK_WINDOW_BPF_H
#define BPF_STACK_WINDOW_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum { STACK_WINDOW_WORDS = 64 };

struct stack_window {
	__u64 start, bytes; /* user address; 0 bytes: nothing was read */
	__u64 words[STACK_WINDOW_WORDS];
};

/* From that address on as much as there is room for, or, where that reaches into a hole, one word.
 * 0, or what went wrong. */
static __always_inline long stack_window_fill(struct stack_window *window, __u64 from)
{
	const void *user = (const void *)from;

	window->start = from;
	window->bytes = sizeof(window->words);
	if (!bpf_probe_read_user(window->words, sizeof(window->words), user))
		return 0;
	window->bytes = sizeof(window->words[0]);
	if (!bpf_probe_read_user(window->words, sizeof(window->words[0]), user))
		return 0;
	window->bytes = 0;
	return -1;
}

/* The word at that address, if it is there. 0: it was. */
static __always_inline int stack_window_word(const struct stack_window *window, __u64 *word,
					     __u64 from)
{
	__u64 at = from - window->start;

	if (at >= window->bytes || at % sizeof(*word))
		return -1;
	*word = window->words[at / sizeof(*word) % STACK_WINDOW_WORDS];
	return 0;
}

#endif
