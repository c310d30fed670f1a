/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample has besides its series and its stack, as one text: the thread's name, then
 * attributes in rising order of their keys, the thread's id among them (thread.id): \x1f key \x1e
 * value each. Stores keep it where they kept the thread's name alone. Pure.
 *
 * Names on the API: thread; thread_id or thread.id; those of the process (PROCESS_LABELS); an
 * attribute's key where it has a dot (http.route), which no label of a series has; attr.KEY for
 * any, attr_KEY with _ for its dots where a language has none (attr_http_route; a key that is
 * written so itself goes before).
 *
 * Of the process a context has CONTEXT_LIFETIME alone, "PID.HASH", and one of the lifetime's has
 * the rest: lifetimes.h joins them. */
#ifndef SYMBOL_SERVER_STORE_SAMPLE_CONTEXT_H
#define SYMBOL_SERVER_STORE_SAMPLE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CONTEXT_KEY = 0x1f, /* begins a key */
	CONTEXT_VALUE = 0x1e,
	CONTEXT_OTHERS_MAX =
		11, /* the thread's id is one, two are of whom it woke or who woke it */
	CONTEXT_PROCESS_MAX = 10, /* its lifetime is one */
	CONTEXT_ATTRIBUTES_MAX = CONTEXT_OTHERS_MAX + CONTEXT_PROCESS_MAX,
	CONTEXT_KEY_MAX = 64, /* bytes */
	CONTEXT_VALUE_MAX = 128,
	CONTEXT_PROCESS_VALUE_MAX = 512, /* of a process' attributes */
	CONTEXT_BYTES_MAX = 8320,
};

#define CONTEXT_LIFETIME "farflame.lifetime"

/* Name on the API, key. */
#define PROCESS_LABELS(LABEL)                     \
	LABEL("pid", "process.pid")               \
	LABEL("command", "process.command_line")  \
	LABEL("exe", "process.executable.path")   \
	LABEL("unit", "systemd.unit")             \
	LABEL("cgroup", "process.linux.cgroup")   \
	LABEL("user", "process.owner")            \
	LABEL("started", "process.creation.time") \
	LABEL("ppid", "process.parent_pid")       \
	LABEL("program", "farflame.program")

/* Whether that name on the API is one of samples, not of series. */
bool sample_context_has_name(const char *name);
/* Of these, one of the process. */
bool sample_context_is_of_process(const char *name);
/* Whether that key, not NUL-terminated, is a process', its lifetime's among them. */
bool sample_context_is_process_key(const char *key, size_t length);

/* The value of that name, "" when there is none: cut to room with its NUL. */
void sample_context_get(const char *context, const char *name, char *out, size_t room);

/* The context with the names only, in out. */
void sample_context_reduce(const char *context, const char *const *names, unsigned count,
			   char out[CONTEXT_BYTES_MAX]);

/* Calls fn for each name (as on the API) and value; false from fn stops. NUL-terminated texts that
 * live during the call. */
bool sample_context_each(const char *context,
			 bool (*fn)(void *to, const char *name, const char *value), void *to);

#endif
