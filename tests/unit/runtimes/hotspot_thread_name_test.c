/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads in each Java virtual machine that is here, beside what it says of them
 * (jcmd Thread.print), and what is not believed. */
#include "node-agent/runtimes/hotspot_thread_name.h"

#include "node-agent/runtimes/hotspot_thread_names.h"
#include "tests/unit/runtimes/jvms.h"

enum { THREADS = 64, PRINTED_MAX = 256 << 10 };

static char printed[PRINTED_MAX]; /* "NAME" #…, nid=… of each */

/* rmiregistry has some of its own: "RMI TCP Accept-0", "RMI Reaper", "GC Daemon". */
static bool print_threads(const struct jvm *jvm, const char *program)
{
	char command[500];
	size_t length;
	FILE *pipe;

	snprintf(command, sizeof command, "%.*s/jcmd", (int)(strrchr(program, '/') - program),
		 program);
	if (access(command, X_OK))
		snprintf(command, sizeof command, "jcmd");
	snprintf(command + strlen(command), sizeof command - strlen(command),
		 " %d Thread.print 2>/dev/null", jvm->pid);
	pipe = popen(command, "r");
	length = pipe ? fread(printed, 1, sizeof printed - 1, pipe) : 0;
	printed[length] = '\0';
	if (pipe)
		pclose(pipe);
	return strstr(printed, "\"RMI TCP Accept-0\"");
}

static bool kernel_name(const struct jvm *jvm, uint32_t tid,
			char kernel[HOTSPOT_KERNEL_NAME_BYTES + 1])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/task/%u/comm", jvm->pid, tid);
	file = fopen(path, "r");
	if (!file || !fgets(kernel, HOTSPOT_KERNEL_NAME_BYTES + 1, file))
		kernel[0] = '\0';
	if (file)
		fclose(file);
	kernel[strcspn(kernel, "\n")] = '\0';
	return hotspot_thread_name_is_cut(kernel);
}

static unsigned named_threads(struct jvm *jvm, const struct hotspot_layout *layout)
{
	struct hotspot_name_place place = {0};
	uint64_t threads[THREADS];
	const uint32_t count = hotspot_threads_list(&jvm->memory, layout, 0, threads, THREADS);
	unsigned right = 0, wrong = 0;

	for (uint32_t i = 0; i < count; i++) {
		char kernel[HOTSPOT_KERNEL_NAME_BYTES + 1] = "", quoted[200];
		char name[HOTSPOT_THREAD_NAME_BYTES];

		if (!kernel_name(jvm, hotspot_thread_id(&jvm->memory, layout, threads[i]),
				 kernel) ||
		    !hotspot_thread_name_read(&jvm->memory, layout, &place, threads[i], kernel,
					      name))
			continue;
		snprintf(quoted, sizeof quoted, "\"%s\"", name);
		printf("# %s: %s, at %u, %u, %u\n", kernel, name, place.name, place.text,
		       place.array);
		right += !!strstr(printed, quoted);
		wrong += !strstr(printed, quoted);
	}
	CHECK_NUMBER(wrong, 0);
	return right;
}

/* One after the other as their samples come, of any of its tasks. */
static void test_names(struct jvm *jvm, const struct hotspot_layout *layout)
{
	struct hotspot_thread_names *names = hotspot_thread_names_new();
	struct hotspot_thread thread = {
		.process = {(uint32_t)jvm->pid, 1, 1}, .memory = &jvm->memory, .layout = layout};
	uint64_t threads[THREADS];
	const uint32_t count = hotspot_threads_list(&jvm->memory, layout, 0, threads, THREADS);
	unsigned known = 0, wrong = 0;

	for (unsigned round = 0; round < 100; round++) {
		known = 0;
		for (uint32_t i = 0; i < count; i++) {
			char kernel[HOTSPOT_KERNEL_NAME_BYTES + 1] = "", quoted[200];
			const char *name;

			thread.tid = hotspot_thread_id(&jvm->memory, layout, threads[i]);
			thread.kernel = kernel;
			thread.now_ns = round * UINT64_C(500000000);
			if (!kernel_name(jvm, thread.tid, kernel))
				continue;
			name = hotspot_thread_names_find(names, &thread);
			snprintf(quoted, sizeof quoted, "\"%s\"", name ? name : "");
			known += name != NULL;
			wrong += name && !strstr(printed, quoted);
			thread.kernel = "another-threads"; /* now: the old one is not its */
			wrong += round == 99 && hotspot_thread_names_find(names, &thread);
		}
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(known >= 4);
	hotspot_thread_names_free(names);
}

static void test_jvm(const char *program)
{
	struct hotspot_structs *structs = NULL;
	struct hotspot_layout layout;
	struct error err = {0};
	bool is_up = false;
	struct jvm jvm;

	printf("# %s\n", program);
	if (!CHECK(jvm_start(&jvm, program)))
		return;
	for (unsigned i = 0; i < 100 && !is_up; i++, usleep(50000))
		is_up = print_threads(&jvm, program);
	structs = hotspot_structs_read(&jvm.memory, &jvm.symbols, jvm.base, &err);
	if (!is_up)
		SKIP("no jcmd that says what its threads are called");
	else if (CHECK(structs) &&
		 CHECK(hotspot_layout_fill(structs, &jvm.memory, &layout, &err))) {
		CHECK(named_threads(&jvm, &layout) >= 4);
		test_names(&jvm, &layout);
	}
	hotspot_structs_free(structs);
	jvm_stop(&jvm);
}

static void test_fits(void)
{
	CHECK(hotspot_thread_name_is_cut("a-rather-long-j"));
	CHECK(!hotspot_thread_name_is_cut("rather-long-ja"));
	CHECK(hotspot_thread_name_fits("a-rather-long-java-name", "a-rather-long-j"));
	CHECK(!hotspot_thread_name_fits("a-rather-long-j", "a-rather-long-j"));
	CHECK(!hotspot_thread_name_fits("another-long-java-name", "a-rather-long-j"));
	CHECK(hotspot_thread_name_fits("a-rather-long-java-name", "a-rathe..a-name"));
	CHECK(!hotspot_thread_name_fits("a-rather-long-java-mane", "a-rathe..a-name"));
	CHECK(!hotspot_thread_name_fits("a-rathe", "a-rathe..a-name"));
	CHECK(!hotspot_thread_name_fits("", "a-rathe..a-name"));
}

int main(void)
{
	test_fits();
	test_jvms(test_jvm);
	return checks_done();
}
