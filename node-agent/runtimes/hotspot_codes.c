/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_codes.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/hotspot_frames.h"
#include "node-agent/runtimes/code_cache.h"
#include "node-agent/runtimes/hotspot_method.h"
#include "node-agent/runtimes/hotspot_names.h"

enum { UNCOUNTED_BITS = 33 }; /* of nanoseconds: 9 s */

struct hotspot_codes {
	struct code_cache *methods, *compiled; /* with the methods: stubs */
	struct hotspot_codes_counters counters;
};

struct hotspot_codes *hotspot_codes_new(size_t limit_bytes)
{
	struct hotspot_codes *codes = calloc(1, sizeof *codes);

	if (!codes)
		return NULL;
	codes->methods = code_cache_new(limit_bytes / 2);
	codes->compiled = code_cache_new(limit_bytes / 2);
	if (codes->methods && codes->compiled)
		return codes;
	hotspot_codes_free(codes);
	return NULL;
}

void hotspot_codes_free(struct hotspot_codes *codes)
{
	if (!codes)
		return;
	code_cache_free(codes->methods);
	code_cache_free(codes->compiled);
	free(codes);
}

void hotspot_codes_begin(struct hotspot_codes *codes)
{
	codes->counters.given_up += code_cache_begin(codes->methods);
	codes->counters.given_up += code_cache_begin(codes->compiled);
}

static struct code_cache_key key_of(const struct process_key *process, uint64_t first,
				    uint64_t second)
{
	struct code_cache_key key;

	memset(&key, 0, sizeof key); /* all of it is compared */
	key.process = *process;
	key.words[0] = first;
	key.words[1] = second;
	return key;
}

static bool may_read(struct hotspot_codes *codes, struct code_cache *cache,
		     const struct hotspot_codes_process *process)
{
	const bool may = code_cache_may_read(cache, process->key.tgid, process->now_ns);

	codes->counters.refused += !may;
	return may;
}

/* Counts what was read into *count. */
static void count(struct hotspot_codes *codes, enum hotspot_state state, uint64_t *as)
{
	codes->counters.gone += state == HOTSPOT_GONE;
	codes->counters.unread += state == HOTSPOT_UNREAD;
	*as += state == HOTSPOT_READ;
}

static const void *put(struct hotspot_codes *codes, struct code_cache *cache,
		       const struct code_cache_key *key, void *value, size_t bytes)
{
	const void *kept = code_cache_put(cache, key, value, bytes);

	codes->counters.refused += value && !kept;
	return kept;
}

/* Whether what was read belongs to the sample: no class has been unloaded since. */
static bool is_current(const struct hotspot_codes_process *process)
{
	uint64_t unloads;

	return !process->unloads || !process->unloads_at ||
	       (process->memory->read(process->memory->context, process->unloads_at, &unloads,
				      sizeof unloads) &&
		unloads + 1 == process->unloads);
}

/* --- methods --- */

/* The time in which a Method is the same one, in 40 bits. */
static uint64_t epoch_of(const struct hotspot_codes_process *process)
{
	const uint64_t epoch = process->unloads ? process->unloads
						: process->now_ns >> UNCOUNTED_BITS;

	return epoch & ((1ULL << 40) - 1);
}

static const struct hotspot_method *method_find(struct hotspot_codes *codes,
						const struct hotspot_codes_process *process,
						uint64_t address, uint16_t cookie)
{
	const struct code_cache_key key = key_of(
		&process->key, address,
		hotspot_word(STACK_FRAME_JAVA_INTERPRETED, epoch_of(process) << 16 | cookie));
	struct hotspot_method *method;
	enum hotspot_state state;
	const void *known;

	if (code_cache_find(codes->methods, &key, &known))
		return known;
	if (!may_read(codes, codes->methods, process))
		return NULL;
	state = hotspot_method_read(process->memory, process->layout, address, cookie, &method);
	if (method && !is_current(process)) {
		free(method);
		method = NULL;
		state = HOTSPOT_GONE;
	}
	count(codes, state, &codes->counters.methods);
	codes->counters.names_cut += method && method->is_name_cut;
	codes->counters.lines_cut += method && method->is_lines_cut;
	return put(codes, codes->methods, &key, method, method ? method->bytes : 0);
}

static struct hotspot_named name_call(struct hotspot_codes *codes,
				      const struct hotspot_codes_process *process,
				      const struct hotspot_call *call, const char *tier)
{
	const struct hotspot_method *method =
		call->cookie ? method_find(codes, process, call->method, call->cookie) : NULL;

	if (!method)
		return (struct hotspot_named){NULL, "", 0, tier};
	return (struct hotspot_named){method->name, method->file,
				      hotspot_method_line(method, call->bci), tier};
}

/* --- compiled code --- */

static size_t compiled_bytes(uint32_t count)
{
	return offsetof(struct hotspot_compiled, calls) + count * sizeof(struct hotspot_call);
}

/* Of as many calls as there are. NULL: it could not be read. */
static struct hotspot_compiled *compiled_read(struct hotspot_codes *codes,
					      const struct hotspot_codes_process *process,
					      const struct hotspot_place_in_code *place)
{
	struct hotspot_compiled read, *kept;
	enum hotspot_state state = hotspot_compiled_read(process->memory, process->layout, place,
							 &read);

	if (state == HOTSPOT_READ && !is_current(process))
		state = HOTSPOT_GONE;
	count(codes, state, &codes->counters.compiled);
	if (state != HOTSPOT_READ)
		return NULL;
	codes->counters.calls_cut += read.is_cut;
	kept = malloc(compiled_bytes(read.count));
	if (kept)
		memcpy(kept, &read, compiled_bytes(read.count));
	return kept;
}

static const struct hotspot_compiled *compiled_find(struct hotspot_codes *codes,
						    const struct hotspot_codes_process *process,
						    const uint64_t words[2])
{
	const struct code_cache_key key = key_of(&process->key, words[0], words[1]);
	struct hotspot_compiled *compiled;
	const void *known;

	if (code_cache_find(codes->compiled, &key, &known))
		return known;
	if (!may_read(codes, codes->compiled, process))
		return NULL;
	compiled = compiled_read(
		codes, process,
		&(struct hotspot_place_in_code){.nmethod = hotspot_frame_pointer(words[1]),
						.compile_id = hotspot_frame_with(words[1]),
						.pc = stack_frame_address(words[0])});
	return put(codes, codes->compiled, &key, compiled,
		   compiled ? compiled_bytes(compiled->count) : 0);
}

static const char *tier_of(uint8_t level)
{
	static const char *const tiers[] = {"native", "C1 1", "C1 2", "C1 3", "C2"};

	return level < sizeof tiers / sizeof *tiers ? tiers[level] : "compiled";
}

static size_t name_compiled(struct hotspot_codes *codes,
			    const struct hotspot_codes_process *process, const uint64_t words[2],
			    struct hotspot_named *named)
{
	const struct hotspot_compiled *compiled = compiled_find(codes, process, words);

	if (!compiled) {
		*named = (struct hotspot_named){NULL, "", 0, "compiled"};
		return 1;
	}
	for (uint32_t i = 0; i < compiled->count; i++)
		named[i] = name_call(codes, process, &compiled->calls[i], tier_of(compiled->level));
	return compiled->count;
}

/* --- stubs --- */

/* The text at that address, of at most HOTSPOT_STUB_BYTES. NULL: none. */
static char *text_read(const struct python_memory *memory, uint64_t address)
{
	enum { PAGE = 4096 };
	const size_t left = PAGE - address % PAGE;
	uint8_t bytes[HOTSPOT_STUB_BYTES] = {0};
	struct hotspot_text text = {.room = HOTSPOT_STUB_BYTES};
	size_t have = left < sizeof bytes ? left : sizeof bytes;

	if (!address || !memory->read(memory->context, address, bytes, have))
		return NULL;
	if (have < sizeof bytes && strnlen((char *)bytes, have) == have)
		have = memory->read(memory->context, address + have, bytes + have,
				    sizeof bytes - have)
			       ? sizeof bytes
			       : have;
	text.to = calloc(1, text.room);
	if (text.to)
		hotspot_text_add(&text, bytes, strnlen((char *)bytes, have));
	return text.to;
}

static struct hotspot_named name_stub(struct hotspot_codes *codes,
				      const struct hotspot_codes_process *process, uint64_t blob)
{
	const struct code_cache_key key = key_of(&process->key, blob,
						 hotspot_word(STACK_FRAME_JAVA_STUB, 0));
	const struct python_memory *memory = process->memory;
	uint64_t address;
	const void *known;
	char *name = NULL;

	if (code_cache_find(codes->methods, &key, &known) ||
	    !may_read(codes, codes->methods, process))
		return (struct hotspot_named){known, "", 0, "stub"};
	if (memory->read(memory->context, blob + process->layout->blob_name, &address,
			 sizeof address))
		name = text_read(memory, address);
	count(codes, name ? HOTSPOT_READ : HOTSPOT_UNREAD, &codes->counters.stubs);
	return (struct hotspot_named){put(codes, codes->methods, &key, name, HOTSPOT_STUB_BYTES),
				      "", 0, "stub"};
}

size_t hotspot_codes_name(struct hotspot_codes *codes, const struct hotspot_codes_process *process,
			  const uint64_t words[2], struct hotspot_named named[HOTSPOT_CALLS_MAX])
{
	const uint64_t pointer = hotspot_frame_pointer(words[1]);
	struct hotspot_call call;

	switch (stack_frame_kind(words[0])) {
	case STACK_FRAME_JAVA_COMPILED:
		return name_compiled(codes, process, words, named);
	case STACK_FRAME_JAVA_STUB:
		*named = name_stub(codes, process, pointer);
		return 1;
	default:
		call = (struct hotspot_call){pointer, hotspot_frame_with(words[1]),
					     (uint16_t)stack_frame_address(words[0])};
		*named = name_call(codes, process, &call, "interpreted");
		return 1;
	}
}

void hotspot_codes_counters(const struct hotspot_codes *codes, struct hotspot_codes_counters *out)
{
	*out = codes->counters;
	out->bytes = code_cache_bytes(codes->methods) + code_cache_bytes(codes->compiled);
}
