/* SPDX-License-Identifier: Apache-2.0 */
/* 1000 modules' tables of very different sizes, loaded and evicted by several threads at once: what
 * the kernel counts stays near --symbol-memory, and what is dropped from the disk is gone from it.
 */
#include "symbol-server/symbolize/symbolizer.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/convert/table_builder.h"
#include "symbol-server/symbolize/worker.h"
#include "tests/check.h"

enum {
	MODULES = 1000,
	SIZES = 10,
	THREADS = 4,
	LOADS = 500, /* of each thread */
	LIMIT_MB = 64,
	/* Each thread holds a table of up to 12 MB beside the limit, and one is being unpacked from
	 * its packed bytes and a column. */
	BESIDE_MB = THREADS * 12 + 32,
};

static char folder[] = "/tmp/symbol-memory-test-XXXXXX";
static struct symbolizer *symbolizer;
static size_t peak_kb;

static struct build_id id_of(uint32_t number)
{
	struct build_id id = {.length = 20};

	memcpy(id.bytes, &number, sizeof(number));
	return id;
}

static size_t resident_kb(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%lu %lu", &pages, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * ((size_t)sysconf(_SC_PAGESIZE) >> 10);
}

/* A table of functions of 16 bytes each. */
static struct buffer table_of(uint32_t functions)
{
	const uint64_t sections[1][2] = {{0x1000, 0x1000 + (uint64_t)functions * 16}};
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {.quality = QUALITY_DWARF};
	struct error err = {0};
	struct buffer packed;

	buffer_init(&packed, 64 << 20);
	CHECK(table_builder_sections(builder, sections, 1, &err));
	for (uint32_t i = 0; i < functions; i++) {
		char name[80];

		snprintf(name, sizeof(name), "function_%08x_of_a_module_with_names",
			 i * 2654435761u);
		table_builder_symbol(
			builder, &(struct code_symbol){.address = 0x1000 + (uint64_t)i * 16,
						       .size = 16,
						       .name = table_builder_text(builder, name)});
	}
	table_builder_sort_symbols(builder);
	table.bases[ADDRESS_ELF].is_known = true;
	CHECK(table_builder_finish(builder, NULL, &table, &err));
	CHECK(symbol_table_pack(&table, &packed, &err));
	table_builder_free(builder);
	return packed;
}

static void fill_store(struct symbols_store *store)
{
	struct buffer packed[SIZES];
	struct error err = {0};

	for (unsigned i = 0; i < SIZES; i++)
		packed[i] = table_of(300u << i);
	for (uint32_t i = 0; i < MODULES; i++) {
		/* Half of them small, every twentieth the largest. */
		unsigned size = i % 20 == 19 ? SIZES - 1 : i % 2 ? i % SIZES : i % 4;
		struct build_id id = id_of(i);
		struct module_row row = {.id = id,
					 .name = "m",
					 .state = MODULE_ready,
					 .quality = QUALITY_DWARF,
					 .reason = "",
					 .source = "upload",
					 .packed_bytes = packed[size].length,
					 .converter = SYMBOL_CONVERTER_VERSION};

		if (!symbols_put_module(store, &row, &err) ||
		    !symbols_put_table(store, &id, SYMBOL_TABLE_FORMAT, packed[size].bytes,
				       packed[size].length, &err)) {
			CHECK_TEXT(err.message, "");
			break;
		}
	}
	for (unsigned i = 0; i < SIZES; i++)
		buffer_release(&packed[i]);
}

static void *load(void *context)
{
	unsigned seed = (unsigned)(uintptr_t)context;
	unsigned long found = 0;

	for (unsigned i = 0; i < LOADS; i++) {
		struct build_id id = id_of((uint32_t)rand_r(&seed) % MODULES);
		struct symbol_table *table = symbolizer_take_table(symbolizer, &id, NULL, 0);
		struct symbol_frame frames[SYMBOL_CHAIN_MAX];
		size_t now = i % 16 ? 0 : resident_kb();

		found += table && symbol_table_lookup(table, ADDRESS_ELF, 0x1008, frames) == 1;
		symbol_table_release(table);
		if (now > __atomic_load_n(&peak_kb, __ATOMIC_RELAXED))
			__atomic_store_n(&peak_kb, now, __ATOMIC_RELAXED);
	}
	return (void *)(uintptr_t)found;
}

static void load_and_evict(void)
{
	struct symbolizer_counters counters;
	size_t before = resident_kb(), after, most;
	pthread_t threads[THREADS];
	unsigned long found = 0;

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, load, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < THREADS; i++) {
		void *one;

		pthread_join(threads[i], &one);
		found += (unsigned long)(uintptr_t)one;
	}
	after = resident_kb();
	symbolizer_counters(symbolizer, &counters);
	most = before + ((LIMIT_MB + BESIDE_MB) << 10);
	printf("# %u loads of %u modules: %zu MB before, %zu MB at most, %zu MB after; %llu tables "
	       "of "
	       "%llu MB in memory\n",
	       THREADS * LOADS, MODULES, before >> 10, peak_kb >> 10, after >> 10,
	       (unsigned long long)counters.tables_in_memory,
	       (unsigned long long)counters.table_bytes >> 20);
	CHECK_NUMBER(found, THREADS * LOADS);
	CHECK(counters.table_bytes <= (uint64_t)LIMIT_MB << 20);
	CHECK(counters.tables_in_memory < MODULES / 2); /* they did not all fit */
#if !defined(__SANITIZE_ADDRESS__)                      /* which keeps what is freed */
	CHECK(peak_kb < most);
	CHECK(after < before + ((LIMIT_MB + 48) << 10));
#else
	(void)most;
#endif
}

int main(int argc, char **argv)
{
	struct symbolizer_options options = {.cache_directory = folder,
					     .memory_limit_bytes = LIMIT_MB << 20,
					     .workers = 1,
					     .upload_limit_bytes = 1};
	struct symbols_store *store;
	struct error err = {0};
	char command[128];

	symbol_worker_main(argc, argv);
	if (!mkdtemp(folder))
		return 1;
	store = symbols_open(folder, &err);
	CHECK(store);
	fill_store(store);
	malloc_trim(0);
	symbolizer = symbolizer_start(&options, store, &err);
	CHECK(symbolizer);
	if (symbolizer)
		load_and_evict();
	symbolizer_stop(symbolizer);
	symbols_close(store);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command));
	return checks_done();
}
