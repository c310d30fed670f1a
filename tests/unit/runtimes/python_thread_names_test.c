/* SPDX-License-Identifier: Apache-2.0 */
/* When names are read, with a made-up process whose one thread has one, or none. The clock is the
 * test's. */
#include "node-agent/runtimes/python_thread_names.h"

#include "tests/check.h"

#define SECOND UINT64_C(1000000000)

/* --- the reader of names: says what the test wants --- */

static struct {
	const char *name; /* NULL: none */
	bool has_table, is_alive;
	unsigned tables, names;
} process;

bool python_thread_table_find(const struct python_memory *memory,
			      const struct python_layout *layout, uint64_t state,
			      struct python_thread_table *out)
{
	(void)memory, (void)layout, (void)state;
	*out = (struct python_thread_table){1, 2};
	process.tables++;
	return process.has_table;
}

bool python_thread_name_read(const struct python_memory *memory, const struct python_layout *layout,
			     const struct python_thread_table *table, uint64_t thread,
			     char name[PYTHON_THREAD_NAME_BYTES])
{
	(void)memory, (void)layout, (void)thread;
	process.names++;
	if (process.name)
		snprintf(name, PYTHON_THREAD_NAME_BYTES, "%s", process.name);
	return process.name && table->active == 1;
}

static bool is_alive(void *context, uint32_t tid)
{
	(void)context, (void)tid;
	return process.is_alive;
}

static const char *find(struct python_thread_names *names, uint32_t tid, uint64_t now_ns)
{
	static const struct python_memory memory;

	return python_thread_names_find(names, &(struct python_thread){.process = {7, 1, 70},
								       .tid = tid,
								       .now_ns = now_ns,
								       .memory = &memory,
								       .is_alive = is_alive});
}

static bool is(const char *name, const char *want)
{
	return name && !strcmp(name, want);
}

static void test_life(void)
{
	struct python_thread_names *names = python_thread_names_new();
	uint64_t now = SECOND;

	memset(&process, 0, sizeof process);
	CHECK(!find(names, 8, now) && process.tables == 1 && process.names == 0);
	CHECK(!find(names, 8, now) && process.tables == 1); /* not at once again */
	process.has_table = process.is_alive = true;
	CHECK(!find(names, 8, now += SECOND / 4) && process.tables == 2 && process.names == 1);
	process.name = "worker";
	CHECK(is(find(names, 8, now += SECOND), "worker"));
	CHECK_NUMBER(process.tables, 2);
	process.name = "renamed";
	CHECK(is(find(names, 8, now += SECOND), "worker") && process.names == 2);
	CHECK(is(find(names, 8, now += 30 * SECOND), "renamed"));
	/* Its number is another thread's when it is gone; what it was called it still is. */
	process.name = "other's";
	process.is_alive = false;
	CHECK(is(find(names, 8, now += 31 * SECOND), "renamed"));
	CHECK(!find(names, 9, now));
	process.is_alive = true;
	CHECK(is(find(names, 9, now += SECOND), "other's"));
	python_thread_names_free(names);
}

/* Whatever there is of threads: so many are read a second, and so many kept. */
static void test_bounds(void)
{
	struct python_thread_names *names = python_thread_names_new();
	uint64_t now = SECOND;
	uint32_t tid = 1;

	memset(&process, 0, sizeof process);
	process.has_table = process.is_alive = true;
	process.name = "one";
	while (tid < 10000)
		find(names, tid++, now);
	CHECK_NUMBER(process.names, PYTHON_THREAD_NAMES_BURST);
	for (int i = 0; i < 10; i++)
		for (int k = 0; k < 1000; k++)
			find(names, tid++, now + (uint64_t)i * SECOND);
	CHECK_NUMBER(process.names, PYTHON_THREAD_NAMES_BURST + 9 * PYTHON_THREAD_NAMES_A_SECOND);
	python_thread_names_free(names);
	python_thread_names_free(NULL);
}

int main(void)
{
	test_life();
	test_bounds();
	return checks_done();
}
