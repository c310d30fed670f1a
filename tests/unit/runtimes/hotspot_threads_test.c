/* SPDX-License-Identifier: Apache-2.0 */
/* What machines of 8 to 28 call their threads, with each collector, as /proc has it. */
#include "node-agent/runtimes/hotspot_threads.h"

#include "tests/check.h"

static const char *const collectors[] = {
	"GC task thread#", "G1 Concurrent R", "G1 Main Concurr", "Gang worker#0 (",
	"Surrogate Locke", "ParGC Thread#0",  "G1 Conc#0",       "G1 Main Marker",
	"G1 Refine#0",     "G1 Young RemSet", "GC Thread#0",     "Shenandoah GC T",
	"ShenandoahContr", "Shenandoah Cont", "Shenandoah Unco", "ZDirector",
	"ZDriver",         "ZStat",           "ZUncommitter",    "ZUnmapper",
	"ZWorker#0",       "XDirector",       "XDriver",         "XStat",
	"XUncommitter",    "XUnmapper",       "XWorker#0",       "ZDriverMajor",
	"ZDriverMinor",    "ZUncommitter#0",  "ZWorkerOld#0",    "ZWorkerYoung#0",
	"G1 Refi..kers#0", "G1 Refi..ontrol", "G1 Service",      "ShenControl",
	"ShenUncommit",    "ShenWorker#0",
};
static const char *const compilers[] = {"C1 CompilerThre", "C2 CompilerThre", "C1 Comp..hread0",
					"C2 Comp..hread0", "Sweeper thread"};
static const char *const machine[] = {"VM Thread",       "VM Periodic Tas", "VM Peri..Thread",
				      "Service Thread",  "Monitor Deflati", "Monitor..Thread",
				      "Signal Dispatch", "Signal ..atcher", "Notification Th",
				      "Notific..Thread", "RuntimeWorker#0"};
static const char *const others[] = {"java",
				     "Finalizer",
				     "Reference Handl",
				     "Common-Cleaner",
				     "Referen..andler",
				     "main",
				     "Thread-0",
				     "pool-1-thread-1",
				     "",
				     "GC",
				     "C1 "};

static void test_names(const char *const *names, size_t count, const char *group)
{
	for (size_t i = 0; i < count; i++) {
		char name[16] = "";

		memcpy(name, names[i], strlen(names[i]));
		printf("# %s\n", names[i]);
		if (group)
			CHECK_TEXT(hotspot_thread_group(name, sizeof name), group);
		else
			CHECK(!hotspot_thread_group(name, sizeof name));
	}
}

#define TEST_NAMES(names, group) test_names(names, sizeof names / sizeof *names, group)

int main(void)
{
	TEST_NAMES(collectors, "[GC]");
	TEST_NAMES(compilers, "[JIT]");
	TEST_NAMES(machine, "[VM]");
	TEST_NAMES(others, NULL);
	return checks_done();
}
