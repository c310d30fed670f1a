/* SPDX-License-Identifier: Apache-2.0 */
/* Says to profilers on the same host what this process is and which request each of its threads
 * serves, by writing it into memory where they look: OpenTelemetry's process context (OTEP 4719,
 * version 2) and thread context (OTEP 4947). For programs without an OpenTelemetry SDK that does it.
 * C11 or C++11, GCC or Clang, Linux, x86-64 or arm64; nothing to link.
 *
 *	static const char *const keys[] = {"http.route"};
 *	static const struct farflame_attribute own[] = {{"service.name", "shop"}};
 *	farflame_context_publish(own, 1, keys, 1);              once, at the start, and after fork()
 *
 *	struct farflame_request request;                        in each thread, for each request
 *	farflame_request_begin(&request, trace_id, span_id);
 *	farflame_request_add(&request, 0, "/basket");           0: the first of keys
 *	struct farflame_request *before = farflame_request_attach(&request);
 *	…
 *	farflame_request_attach(before);                        before request goes out of scope
 *
 * A thread may be stopped and read at any instruction: what is read is a whole record or none. The
 * thread's pointer is the symbol otel_thread_ctx_v1, which has to be seen from outside: a library
 * exports it as any other; link a program with -rdynamic or -Wl,--export-dynamic-symbol=
 * otel_thread_ctx_v1, or do not strip it. Define FARFLAME_CONTEXT_EXTERN before including this where
 * another library of the same program has the symbol already. */
#ifndef FARFLAME_CONTEXT_H
#define FARFLAME_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	FARFLAME_REQUEST_ATTRIBUTES = 612, /* bytes: a record of 640 in all */
	FARFLAME_CONTEXT_BYTES = 16384,	   /* of a published process context */
	FARFLAME_CONTEXT_KEYS = 256,
};

struct farflame_attribute {
	const char *key, *value;
};

/* A thread's record as OTEP 4947 has it. It must stay where it is while it is attached. */
struct farflame_request {
	uint8_t trace_id[16], span_id[8];
	uint8_t valid;
	uint8_t trace_flags;
	uint16_t attributes_bytes;
	uint8_t attributes[FARFLAME_REQUEST_ATTRIBUTES];
};

#ifdef FARFLAME_CONTEXT_EXTERN
extern __thread void *otel_thread_ctx_v1;
#else
__attribute__((weak, visibility("default"))) __thread void *otel_thread_ctx_v1;
#endif

/* The compiler may not move memory accesses over it; the reader stops the thread, so the processor
 * need not be told. */
#define FARFLAME_ORDERED() __asm__ volatile("" ::: "memory")

/* --- requests --- */

static inline void farflame_request_begin(struct farflame_request *request,
					  const uint8_t trace_id[16], const uint8_t span_id[8])
{
	request->valid = 0;
	FARFLAME_ORDERED();
	memcpy(request->trace_id, trace_id, sizeof request->trace_id);
	memcpy(request->span_id, span_id, sizeof request->span_id);
	request->trace_flags = 0;
	request->attributes_bytes = 0;
	FARFLAME_ORDERED();
	request->valid = 1;
}

/* key: its index in what was published; of a key that is added again the last value counts. False:
 * there is no room; longer values than 255 bytes are cut. */
static inline int farflame_request_add(struct farflame_request *request, uint8_t key,
				       const char *value)
{
	const uint16_t at = request->attributes_bytes;
	size_t length = strlen(value);

	if (length > 255)
		length = 255;
	if (at + 2u + length > sizeof request->attributes)
		return 0;
	request->attributes[at] = key;
	request->attributes[at + 1] = (uint8_t)length;
	memcpy(request->attributes + at + 2, value, length);
	FARFLAME_ORDERED(); /* not before it is there */
	request->attributes_bytes = (uint16_t)(at + 2u + length);
	return 1;
}

/* From now on this thread serves that request; NULL: none. Returns which it served before. */
static inline struct farflame_request *farflame_request_attach(struct farflame_request *request)
{
	struct farflame_request *before = (struct farflame_request *)otel_thread_ctx_v1;

	FARFLAME_ORDERED();
	*(void *volatile *)&otel_thread_ctx_v1 = request;
	FARFLAME_ORDERED();
	return before;
}

/* --- the process --- */

/* As OTEP 4719 has it, then room for two payloads: the one that is published and the next. */
struct farflame_context {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_at_ns; /* 0: it is being written */
	const uint8_t *payload;
	uint8_t payloads[2][FARFLAME_CONTEXT_BYTES];
};

/* One for all that include this, in one program or library. */
__attribute__((weak, visibility("hidden"))) struct farflame_context *farflame_context_published;
__attribute__((weak, visibility("hidden"))) int farflame_context_process;

/* Protobuf; what does not fit makes it fail. */
struct farflame_writer {
	uint8_t *at, *end;
	int is_full;
};

static inline void farflame_put(struct farflame_writer *to, const void *bytes, size_t length)
{
	if (to->is_full || length > (size_t)(to->end - to->at)) {
		to->is_full = 1;
		return;
	}
	memcpy(to->at, bytes, length);
	to->at += length;
}

static inline size_t farflame_number_bytes(uint64_t number)
{
	size_t bytes = 1;

	while (number >>= 7)
		bytes++;
	return bytes;
}

static inline size_t farflame_field_bytes(size_t length)
{
	return 1 + farflame_number_bytes(length) + length;
}

/* A field of bytes: its number, and how many follow. */
static inline void farflame_put_field(struct farflame_writer *to, uint8_t number, size_t length)
{
	uint8_t bytes[12], count = 0;

	bytes[count++] = (uint8_t)(number << 3 | 2);
	while (length > 127) {
		bytes[count++] = (uint8_t)(length | 128);
		length >>= 7;
	}
	bytes[count++] = (uint8_t)length;
	farflame_put(to, bytes, count);
}

static inline void farflame_put_text(struct farflame_writer *to, uint8_t number, const char *text)
{
	farflame_put_field(to, number, strlen(text));
	farflame_put(to, text, strlen(text));
}

/* KeyValue {key = 1, value = 2: AnyValue {string_value = 1}}, an attribute of Resource (1). */
static inline void farflame_put_attribute(struct farflame_writer *to, const char *key,
					  const char *value)
{
	const size_t value_bytes = farflame_field_bytes(strlen(value));

	farflame_put_field(to, 1,
			   farflame_field_bytes(strlen(key)) + farflame_field_bytes(value_bytes));
	farflame_put_text(to, 1, key);
	farflame_put_field(to, 2, value_bytes);
	farflame_put_text(to, 1, value);
}

/* The same with AnyValue {array_value = 5: ArrayValue {values = 1: AnyValue …}}. */
static inline void farflame_put_list(struct farflame_writer *to, const char *key,
				     const char *const *values, size_t count)
{
	size_t list_bytes = 0, value_bytes, i;

	for (i = 0; i < count; i++)
		list_bytes += farflame_field_bytes(farflame_field_bytes(strlen(values[i])));
	value_bytes = farflame_field_bytes(list_bytes);
	farflame_put_field(to, 1,
			   farflame_field_bytes(strlen(key)) + farflame_field_bytes(value_bytes));
	farflame_put_text(to, 1, key);
	farflame_put_field(to, 2, value_bytes);
	farflame_put_field(to, 5, list_bytes);
	for (i = 0; i < count; i++) {
		farflame_put_field(to, 1, farflame_field_bytes(strlen(values[i])));
		farflame_put_text(to, 1, values[i]);
	}
}

/* A mapping whose name says what it is, by a memfd's or, where there is none, the mapping's own. A
 * child does not inherit it: it is another process. */
static inline struct farflame_context *farflame_context_map(void)
{
	const size_t bytes = sizeof(struct farflame_context);
	void *at = MAP_FAILED;
	int fd = (int)syscall(SYS_memfd_create, "OTEL_CTX", 1u /* MFD_CLOEXEC */);

	if (fd >= 0) {
		if (ftruncate(fd, (off_t)bytes) == 0)
			at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		close(fd);
	}
	if (at == MAP_FAILED)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, bytes, MADV_DONTFORK) != 0) {
		munmap(at, bytes);
		return NULL;
	}
	return (struct farflame_context *)at;
}

static inline uint64_t farflame_context_now_ns(uint64_t before_ns)
{
	struct timespec now = {0, 0};
	uint64_t ns;

	clock_gettime(CLOCK_BOOTTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return ns > before_ns ? ns : before_ns + 1;
}

/* What this process is, instead of what it said before. keys: those that requests' attributes have
 * indices of; a list may only grow. Everything is copied. Not from two threads at a time, and not
 * from a signal's handler. False: it does not fit FARFLAME_CONTEXT_BYTES, or there is no memory;
 * what was published stays. */
static inline int farflame_context_publish(const struct farflame_attribute *attributes,
					   size_t attribute_count, const char *const *keys,
					   size_t key_count)
{
	struct farflame_context *context = farflame_context_published;
	struct farflame_writer to;
	uint64_t before_ns = 0;
	uint8_t *payload;
	size_t i;

	if (farflame_context_process != (int)getpid())
		context = NULL; /* the parent's, which is not here */
	if (!context)
		context = farflame_context_map();
	if (!context)
		return 0;
	farflame_context_published = context;
	farflame_context_process = (int)getpid();
	payload = context->payloads[context->payload == context->payloads[0]];
	to.at = payload;
	to.end = payload + FARFLAME_CONTEXT_BYTES;
	to.is_full = key_count > FARFLAME_CONTEXT_KEYS;
	for (i = 0; i < attribute_count; i++)
		farflame_put_attribute(&to, attributes[i].key, attributes[i].value);
	farflame_put_attribute(&to, "threadlocal.schema_version", "tlsdesc_v1_dev");
	farflame_put_list(&to, "threadlocal.attribute_key_map", keys, key_count);
	if (to.is_full)
		return 0;
	before_ns = context->published_at_ns;
	*(volatile uint64_t *)&context->published_at_ns = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* read from another CPU */
	context->payload = payload;
	context->payload_bytes = (uint32_t)(to.at - payload);
	context->version = 2;
	memcpy(context->signature, "OTEL_CTX", sizeof context->signature);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)&context->published_at_ns = farflame_context_now_ns(before_ns);
	/* PR_SET_VMA, PR_SET_VMA_ANON_NAME: a name where the mapping has none, and for those who
	 * watch the call a sign that there is something new. */
	prctl(0x53564d41, 0, context, sizeof *context, "OTEL_CTX");
	return 1;
}

#ifdef __cplusplus
}
#endif

#endif
