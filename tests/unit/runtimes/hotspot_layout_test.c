/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of each Java virtual machine that is here, beside what stands in its memory: its code
 * heaps are walked by it, and the parts of each compiled method have to fit each other. */
#include "node-agent/runtimes/hotspot_layout.h"
#include "node-agent/runtimes/hotspot_place.h"

#include "tests/unit/runtimes/jvms.h"

enum { SEGMENTS_MAX = 1 << 20, NMETHODS = 5, HEAPS_MAX = 4 };

static struct hotspot_layout layout;

static uint64_t word(struct jvm *jvm, uint64_t address)
{
	uint64_t value = 0;

	jvm_read(jvm, address, &value, sizeof value);
	return value;
}

static uint32_t number(struct jvm *jvm, uint64_t address)
{
	uint32_t value = 0;

	jvm_read(jvm, address, &value, sizeof value);
	return value;
}

/* "17.0.9": JAVA_VERSION of the installation's own file, 8 has "1.8.0_…" or no file at all. */
static unsigned told_version(const char *program)
{
	char path[400], line[200];
	unsigned version = 8, minor = 0;
	FILE *file;

	snprintf(path, sizeof path, "%.*s/release", (int)(strstr(program, "/bin/") - program),
		 program);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "JAVA_VERSION=\"%u.%u", &version, &minor) == 2 && version == 1)
			version = minor;
	if (file)
		fclose(file);
	return version;
}

/* PcDescs: one in front of all, then by their offsets, up to one behind all. */
static bool is_sound_pcs(struct jvm *jvm, uint64_t begin, uint32_t bytes)
{
	int32_t before = INT32_MIN;

	if (bytes < 2U * layout.pc_bytes || bytes % layout.pc_bytes)
		return false;
	for (uint64_t at = begin; at < begin + bytes; at += layout.pc_bytes) {
		const int32_t offset = (int32_t)number(jvm, at + layout.pc_offset);

		if (offset <= before)
			return false;
		before = offset;
	}
	return true;
}

static bool has_word(struct jvm *jvm, uint64_t begin, uint32_t bytes, uint64_t wanted)
{
	for (uint64_t at = begin; at < begin + bytes; at += sizeof wanted)
		if (word(jvm, at) == wanted)
			return true;
	return false;
}

/* Its class' and its own name are texts, each byte of them. */
static bool has_names(struct jvm *jvm, uint64_t method)
{
	const uint64_t constant = word(jvm, method + layout.method_const);
	const uint64_t pool = word(jvm, constant + layout.const_constants);
	const uint64_t klass = word(jvm, pool + layout.pool_holder);
	uint16_t name = 0, length = 0;
	char text[200] = "";
	uint64_t symbol;

	jvm_read(jvm, constant + layout.const_name, &name, sizeof name);
	if (!name || name >= number(jvm, pool + layout.pool_length))
		return false;
	symbol = word(jvm, pool + layout.pool_bytes + name * sizeof(uint64_t));
	jvm_read(jvm, symbol + layout.symbol_length, &length, sizeof length);
	if (!length || length >= sizeof text ||
	    !jvm_read(jvm, symbol + layout.symbol_body, text, length) || strlen(text) != length)
		return false;
	symbol = word(jvm, klass + layout.klass_name);
	memset(text, 0, sizeof text);
	jvm_read(jvm, symbol + layout.symbol_length, &length, sizeof length);
	return length && length < sizeof text &&
	       jvm_read(jvm, symbol + layout.symbol_body, text, length) && strlen(text) == length &&
	       strchr(text, '/');
}

/* What no compiler has made, of native methods and method handles, may be without parts. */
static bool is_sound_nmethod(struct jvm *jvm, uint64_t address)
{
	uint8_t bytes[HOTSPOT_BLOB_BYTES] = {0};
	uint64_t code, begin, method;
	uint32_t size;
	bool is_compiled, is_described; /* of some place in it */

	if (!jvm_read(jvm, address, bytes, layout.nmethod_bytes) ||
	    !hotspot_layout_part(&layout, bytes, address, HOTSPOT_PART_CODE, &code, &size) ||
	    code < address || code + size > address + number(jvm, address + layout.blob_size))
		return false;
	is_compiled = bytes[layout.nmethod_comp_level] > 0;
	memcpy(&method, bytes + layout.nmethod_method, sizeof method);
	if (!hotspot_layout_part(&layout, bytes, address, HOTSPOT_PART_SCOPES_PCS, &begin, &size) ||
	    (is_compiled && !is_sound_pcs(jvm, begin, size)))
		return false;
	is_described = size > 2U * layout.pc_bytes;
	if (!hotspot_layout_part(&layout, bytes, address, HOTSPOT_PART_METADATA, &begin, &size) ||
	    (is_described && !has_word(jvm, begin, size, method)) ||
	    !hotspot_layout_part(&layout, bytes, address, HOTSPOT_PART_SCOPES_DATA, &begin, &size))
		return false;
	return has_names(jvm, method) && bytes[layout.nmethod_comp_level] <= 4;
}

struct seen {
	unsigned blobs, nmethods, unsound, interpreters;
	uint64_t first, last, interpreter; /* addresses */
};

static void look_at_blob(struct jvm *jvm, uint64_t address, struct seen *seen)
{
	char name[32] = "";

	jvm_read(jvm, word(jvm, address + layout.blob_name), name, sizeof name - 1);
	seen->blobs++;
	seen->first = seen->first && seen->first < address ? seen->first : address;
	seen->last = seen->last > address ? seen->last : address;
	if (!strcmp(name, "Interpreter")) {
		seen->interpreters++;
		seen->interpreter = address;
	}
	if (strcmp(name, "nmethod") != 0 && strcmp(name, "native nmethod") != 0)
		return;
	seen->nmethods++;
	if (is_sound_nmethod(jvm, address))
		return;
	seen->unsound++;
	printf("# %s at %#" PRIx64 "\n", name, address);
}

/* By the segment map: 0 is where a block begins, 0xff where there is none. */
static void look_at_heap(struct jvm *jvm, uint64_t heap, struct seen *seen)
{
	const uint64_t low = word(jvm, heap + layout.heap_low);
	const uint64_t map = word(jvm, heap + layout.heap_map);
	const uint64_t end = word(jvm, heap + layout.heap_map_end);
	const uint32_t log2 = number(jvm, heap + layout.heap_segment_log2);

	for (uint64_t i = 0; i < end - map && i < SEGMENTS_MAX; i++) {
		const uint64_t block = low + (i << log2);
		uint8_t hop = 0xff, is_used = 0;

		jvm_read(jvm, map + i, &hop, 1);
		if (hop == 0 && jvm_read(jvm, block + layout.block_used, &is_used, 1) && is_used)
			look_at_blob(jvm, block + layout.block_header, seen);
	}
}

static void look_at_heaps(struct jvm *jvm, struct seen *seen)
{
	uint64_t heaps = word(jvm, layout.heaps), data;
	uint32_t count;

	*seen = (struct seen){0};
	if (layout.flags & HOTSPOT_LAYOUT_ONE_HEAP) {
		look_at_heap(jvm, heaps, seen);
		return;
	}
	count = number(jvm, heaps + layout.growable_length);
	data = word(jvm, heaps + layout.growable_data);
	for (uint32_t i = 0; i < count && i < HEAPS_MAX; i++)
		look_at_heap(jvm, word(jvm, data + i * sizeof data), seen);
}

/* Its main thread, and those of its collector and compiler. */
static unsigned threads_of(struct jvm *jvm)
{
	const uint64_t list = word(jvm, layout.threads);
	const bool is_linked = layout.flags & HOTSPOT_LAYOUT_THREADS_LINKED;
	const uint32_t length = is_linked ? 64 : number(jvm, list + layout.list_length);
	const uint64_t items = is_linked ? 0 : word(jvm, list + layout.list_threads);
	uint64_t thread = is_linked ? list : 0;
	unsigned count = 0;

	for (uint32_t i = 0; i < length && i < 64; i++) {
		char path[64];
		uint64_t os;

		if (!is_linked)
			thread = word(jvm, items + i * sizeof items);
		if (!thread)
			break;
		os = word(jvm, thread + layout.thread_os);
		snprintf(path, sizeof path, "/proc/%d/task/%u", jvm->pid,
			 number(jvm, os + layout.os_thread_id));
		count += access(path, F_OK) == 0;
		if (is_linked)
			thread = word(jvm, thread + layout.thread_next);
	}
	return count;
}

/* Of the interpreter's ways in, those that make a frame, as bytes say it. */
static unsigned framed_ways(struct jvm *jvm, const struct hotspot_interpreter *interpreter)
{
	unsigned framed = 0;

	for (uint32_t i = 0; i < interpreter->entry_count; i++)
		framed += number(jvm, interpreter->low + interpreter->ways[i].framed) == 0xec8b4855;
	return framed;
}

/* What the kernel side is told, beside the blobs that have been seen. */
static void check_place(struct jvm *jvm, const struct seen *seen)
{
	struct hotspot_place place;
	const struct hotspot_interpreter *interpreter = &place.interpreter;
	bool is_sorted = true;

	CHECK_NUMBER(hotspot_place_read(&jvm->memory, &layout, &place), HOTSPOT_FOUND);
	CHECK(seen->first >= place.low && seen->last < place.high);
	CHECK(interpreter->low > seen->interpreter &&
	      interpreter->high <=
		      seen->interpreter + number(jvm, seen->interpreter + layout.blob_size));
	for (uint32_t i = 1; i < interpreter->entry_count; i++)
		is_sorted &= interpreter->ways[i - 1].framed <= interpreter->ways[i].begin;
	CHECK(is_sorted && interpreter->entries == interpreter->ways[0].begin &&
	      interpreter->templates >= interpreter->ways[interpreter->entry_count - 1].framed);
	printf("# %u heaps, %u ways into the interpreter, %u with frames\n", place.heap_count,
	       interpreter->entry_count, framed_ways(jvm, interpreter));
	CHECK(framed_ways(jvm, interpreter) >= 4); /* methods and native ones, and synchronized */
}

/* One that has not begun has no place. */
static void test_not_started(struct jvm *jvm)
{
	struct hotspot_layout early = layout;
	struct hotspot_place place;
	uint64_t nothing = 0;

	early.call_stub_return = jvm->base + jvm->symbols.hotspot[HOTSPOT_SYMBOL_STRUCTS];
	early.heaps = (uint64_t)(uintptr_t)&nothing; /* not there */
	CHECK_NUMBER(hotspot_place_read(&jvm->memory, &early, &place), HOTSPOT_NOT_STARTED);
}

static void test_jvm(const char *program)
{
	struct hotspot_structs *structs = NULL;
	struct error err = {0};
	struct seen seen = {0};
	struct jvm jvm;

	printf("# %s\n", program);
	if (!CHECK(jvm_start(&jvm, program)))
		return;
	for (unsigned i = 0; i < 1000 && !structs; i++, usleep(10000))
		structs = hotspot_structs_read(&jvm.memory, &jvm.symbols, jvm.base, &err);
	if (CHECK(structs) && CHECK(hotspot_layout_fill(structs, &jvm.memory, &layout, &err))) {
		printf("# Java %u: %u rows, %u reads\n", layout.version,
		       hotspot_structs_rows(structs), hotspot_structs_reads(structs));
		CHECK_NUMBER(layout.version, told_version(program));
		for (unsigned i = 0; i < 500; i++, usleep(20000)) {
			look_at_heaps(&jvm, &seen);
			if (seen.nmethods >= NMETHODS && threads_of(&jvm) > 2)
				break;
		}
		printf("# %u blobs, %u compiled\n", seen.blobs, seen.nmethods);
		CHECK(seen.nmethods >= NMETHODS);
		CHECK_NUMBER(seen.interpreters, 1);
		kill(jvm.pid, SIGSTOP); /* what is just being made is not sound yet */
		look_at_heaps(&jvm, &seen);
		CHECK_NUMBER(seen.unsound, 0);
		CHECK(threads_of(&jvm) > 2);
		check_place(&jvm, &seen);
		test_not_started(&jvm);
	} else {
		printf("# %s\n", err.message);
	}
	hotspot_structs_free(structs);
	jvm_stop(&jvm);
}

int main(void)
{
	test_jvms(test_jvm);
	return checks_done();
}
