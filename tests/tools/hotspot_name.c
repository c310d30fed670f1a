/* SPDX-License-Identifier: Apache-2.0 */
/* hotspot_name PID: names code of a JVM, which is stopped or does not change it, as the agent does,
 * to be compared with what its own tools say. Reads lines:
 *
 *	codes          a line for each compiled method: begin size compile-id level name
 *	pc HEX         a line for each frame, innermost first: tier, name, file:line; then an empty
 *	               one
 *	pcs N          the same of up to N described addresses of each compiled method, with a line
 *	               "= HEX" before each
 *	method HEX BCI the same of a bytecode in a Method
 *	cost           reads of memory so far
 */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/hotspot_frames.h"
#include "node-agent/file_parser/unwind_file.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/runtimes/hotspot_codes.h"

struct jvm {
	int directory;
	uint64_t reads;
	struct python_memory memory;
	struct hotspot_layout layout;
	struct hotspot_codes *codes;
	uint64_t now_ns;
};

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	struct jvm *jvm = context;

	jvm->reads++;
	return stranger_memory_read(jvm->directory, address, to, bytes);
}

static uint64_t word_at(struct jvm *jvm, uint64_t address)
{
	uint64_t word = 0;

	read_memory(jvm, address, &word, sizeof word);
	return word;
}

static uint32_t int_at(struct jvm *jvm, uint64_t address)
{
	uint32_t word = 0;

	read_memory(jvm, address, &word, sizeof word);
	return word;
}

/* The first mapping of libjvm, and its symbols. */
static bool find_library(int pid, uint64_t *base, struct runtime_symbols *symbols)
{
	char path[64], line[4400], file[4200];
	unsigned long start, offset;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof line, maps)) {
		if (!strstr(line, "libjvm.so") ||
		    sscanf(line, "%lx-%*x %*s %lx %*s %*s %4199s", &start, &offset, file) != 3 ||
		    offset)
			continue;
		fclose(maps);
		snprintf(path, sizeof path, "/proc/%d/root", pid);
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		struct unwind_file *elf = fd < 0 ? NULL : unwind_file_open(fd);
		if (!elf)
			return false;
		unwind_file_runtime(elf, symbols);
		unwind_file_close(elf);
		*base = start;
		return symbols->language == RUNTIME_HOTSPOT;
	}
	return false;
}

static bool jvm_open(struct jvm *jvm, int pid)
{
	struct error err = {0};
	struct runtime_symbols symbols;
	char path[64];
	uint64_t base;

	snprintf(path, sizeof path, "/proc/%d", pid);
	jvm->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	jvm->memory = (struct python_memory){read_memory, jvm};
	jvm->codes = hotspot_codes_new(64 << 20);
	if (jvm->directory < 0 || !find_library(pid, &base, &symbols)) {
		fprintf(stderr, "%d: no libjvm\n", pid);
		return false;
	}
	struct hotspot_structs *structs = hotspot_structs_read(&jvm->memory, &symbols, base, &err);
	if (structs && hotspot_layout_fill(structs, &jvm->memory, &jvm->layout, &err))
		return true;
	fprintf(stderr, "%d: %s\n", pid, err.message);
	return false;
}

/* --- code heaps --- */

typedef bool blob_fn(struct jvm *jvm, uint64_t blob, void *context); /* true: that is it */

struct heap {
	uint64_t low, high;
	uint32_t log2, segments;
	uint8_t *map;
};

static bool heap_read(struct jvm *jvm, uint64_t at, struct heap *heap)
{
	const struct hotspot_layout *layout = &jvm->layout;
	const uint64_t map = word_at(jvm, at + layout->heap_map);
	const uint64_t end = word_at(jvm, at + layout->heap_map_end);

	heap->low = word_at(jvm, at + layout->heap_low);
	heap->high = word_at(jvm, at + layout->heap_high);
	heap->log2 = int_at(jvm, at + layout->heap_segment_log2);
	heap->segments = (uint32_t)(end - map);
	heap->map = calloc(1, heap->segments + 1);
	return read_memory(jvm, map, heap->map, heap->segments);
}

static uint64_t heap_at(struct jvm *jvm, uint32_t i)
{
	uint64_t heaps = word_at(jvm, jvm->layout.heaps);

	if (jvm->layout.flags & HOTSPOT_LAYOUT_ONE_HEAP)
		return i ? 0 : heaps;
	if (i >= int_at(jvm, heaps + jvm->layout.growable_length))
		return 0;
	return word_at(jvm, word_at(jvm, heaps + jvm->layout.growable_data) + i * 8);
}

static bool is_compiled(struct jvm *jvm, uint64_t blob)
{
	char name[16] = "";

	read_memory(jvm, word_at(jvm, blob + jvm->layout.blob_name), name, sizeof name - 1);
	return !strcmp(name, "nmethod") || !strncmp(name, "native nmethod", 14);
}

static void blobs_each(struct jvm *jvm, blob_fn *each, void *context)
{
	uint64_t at;
	uint8_t used;

	for (uint32_t i = 0; (at = heap_at(jvm, i)); i++) {
		struct heap heap;
		bool is_done = !heap_read(jvm, at, &heap);

		for (uint32_t s = 0; s < heap.segments && !is_done; s++) {
			const uint64_t block = heap.low + ((uint64_t)s << heap.log2);

			if (heap.map[s] || block >= heap.high ||
			    !read_memory(jvm, block + jvm->layout.block_used, &used, 1) || !used)
				continue;
			is_done = each(jvm, block + jvm->layout.block_header, context);
		}
		free(heap.map);
	}
}

static bool code_of(struct jvm *jvm, uint64_t blob, uint64_t *begin, uint32_t *bytes)
{
	uint8_t nmethod[1024];

	return read_memory(jvm, blob, nmethod, jvm->layout.nmethod_bytes) &&
	       hotspot_layout_part(&jvm->layout, nmethod, blob, HOTSPOT_PART_CODE, begin, bytes);
}

/* --- names --- */

static size_t name(struct jvm *jvm, const uint64_t words[2],
		   struct hotspot_named named[HOTSPOT_CALLS_MAX])
{
	struct hotspot_codes_process process = {
		.key = {.tgid = 1}, .memory = &jvm->memory, .layout = &jvm->layout};

	jvm->now_ns += 10000000000; /* as much as it likes */
	process.now_ns = jvm->now_ns;
	hotspot_codes_begin(jvm->codes);
	return hotspot_codes_name(jvm->codes, &process, words, named);
}

static void print_frames(struct jvm *jvm, const uint64_t words[2])
{
	struct hotspot_named named[HOTSPOT_CALLS_MAX];
	const size_t count = name(jvm, words, named);

	for (size_t i = 0; i < count; i++)
		printf("%s\t%s\t%s:%u\n", named[i].tier, named[i].name ? named[i].name : "?",
		       named[i].file, named[i].line);
	printf("\n");
}

static void print_pc(struct jvm *jvm, uint64_t blob, uint64_t pc)
{
	const bool compiled = is_compiled(jvm, blob);
	const uint16_t id = (uint16_t)int_at(jvm, blob + jvm->layout.nmethod_compile_id);
	const uint64_t words[2] = {
		hotspot_word(compiled ? STACK_FRAME_JAVA_COMPILED : STACK_FRAME_JAVA_STUB, pc),
		hotspot_pointer_word(blob, compiled ? id : 0)};

	print_frames(jvm, words);
}

static void print_method(struct jvm *jvm, uint64_t method, uint16_t bci)
{
	uint16_t cookie = 0;

	hotspot_method_cookie(&jvm->memory, &jvm->layout, method, &cookie);
	print_frames(jvm, (uint64_t[]){hotspot_word(STACK_FRAME_JAVA_INTERPRETED, cookie),
				       hotspot_pointer_word(method, bci)});
}

static bool print_code(struct jvm *jvm, uint64_t blob, void *context)
{
	struct hotspot_method *read = NULL;
	uint64_t begin, method;
	uint32_t bytes;
	uint16_t cookie;

	(void)context;
	if (!is_compiled(jvm, blob) || !code_of(jvm, blob, &begin, &bytes))
		return false;
	method = word_at(jvm, blob + jvm->layout.nmethod_method);
	if (hotspot_method_cookie(&jvm->memory, &jvm->layout, method, &cookie))
		hotspot_method_read(&jvm->memory, &jvm->layout, method, cookie, &read);
	printf("%" PRIx64 " %" PRIx64 " %u %u %s\n", begin, (uint64_t)bytes,
	       int_at(jvm, blob + jvm->layout.nmethod_compile_id),
	       (uint8_t)int_at(jvm, blob + jvm->layout.nmethod_comp_level),
	       read ? read->name : "?");
	free(read);
	return false;
}

struct wanted {
	uint64_t pc;
	unsigned most;
};

static bool print_if_in(struct jvm *jvm, uint64_t blob, void *context)
{
	const struct wanted *wanted = context;

	if (wanted->pc < blob || wanted->pc - blob >= int_at(jvm, blob + jvm->layout.blob_size))
		return false;
	print_pc(jvm, blob, wanted->pc);
	return true;
}

static bool print_pcs(struct jvm *jvm, uint64_t blob, void *context)
{
	const struct wanted *wanted = context;
	const struct hotspot_layout *layout = &jvm->layout;
	uint8_t nmethod[1024];
	uint64_t begin, pcs;
	uint32_t bytes;

	if (!is_compiled(jvm, blob) || !code_of(jvm, blob, &begin, &bytes) ||
	    !read_memory(jvm, blob, nmethod, layout->nmethod_bytes) ||
	    !hotspot_layout_part(layout, nmethod, blob, HOTSPOT_PART_SCOPES_PCS, &pcs, &bytes))
		return false;
	const uint32_t count = bytes / layout->pc_bytes;
	const uint32_t step = count > wanted->most ? count / wanted->most : 1;
	for (uint32_t i = 1; i + 1 < count; i += step) {
		const uint64_t pc = begin +
				    int_at(jvm, pcs + i * layout->pc_bytes + layout->pc_offset);

		printf("= %" PRIx64 "\n", pc);
		print_pc(jvm, blob, pc);
	}
	return false;
}

int main(int argc, char **argv)
{
	static struct jvm jvm;
	char line[200], kind[20];
	uint64_t address;
	unsigned bci;

	if (argc != 2 || !jvm_open(&jvm, atoi(argv[1])))
		return 1;
	while (fgets(line, sizeof line, stdin)) {
		struct wanted wanted = {0};
		const int fields = sscanf(line, "%19s %" SCNx64 "", kind, &address);

		if (!strcmp(kind, "codes")) {
			blobs_each(&jvm, print_code, NULL);
		} else if (!strcmp(kind, "pcs") && sscanf(line, "pcs %u", &wanted.most) == 1) {
			blobs_each(&jvm, print_pcs, &wanted);
		} else if (!strcmp(kind, "pc") && fields == 2) {
			wanted.pc = address;
			blobs_each(&jvm, print_if_in, &wanted);
		} else if (sscanf(line, "method %" SCNx64 " %u", &address, &bci) == 2) {
			print_method(&jvm, address, (uint16_t)bci);
		} else if (!strcmp(kind, "cost")) {
			printf("%" PRIu64 " reads\n", jvm.reads);
		}
		fflush(stdout);
	}
	return 0;
}
