/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_threads.h"

#include <string.h>

static const struct {
	const char *group, *begin;
} known[] = {
	{"[GC]", "GC Thread#"},
	{"[GC]", "GC task thread#"},
	{"[GC]", "Gang worker#"},
	{"[GC]", "ParGC Thread#"},
	{"[GC]", "G1 "},
	{"[GC]", "Concurrent Mark"},
	{"[GC]", "CMS "},
	{"[GC]", "Surrogate Locke"},
	{"[GC]", "Shenandoah"},
	{"[GC]", "ShenControl"},
	{"[GC]", "ShenWorker#"},
	{"[GC]", "ShenUncommit"},
	{"[GC]", "ZDirector"},
	{"[GC]", "ZDriver"},
	{"[GC]", "ZStat"},
	{"[GC]", "ZUncommitter"},
	{"[GC]", "ZUnmapper"},
	{"[GC]", "ZWorker"},
	{"[GC]", "XDirector"},
	{"[GC]", "XDriver"},
	{"[GC]", "XStat"},
	{"[GC]", "XUncommitter"},
	{"[GC]", "XUnmapper"},
	{"[GC]", "XWorker#"},
	{"[GC]", "StringDedup"},
	{"[JIT]", "C1 Comp"},
	{"[JIT]", "C2 Comp"},
	{"[JIT]", "JVMCI Comp"},
	{"[JIT]", "Sweeper thread"},
	{"[VM]", "VM Thread"},
	{"[VM]", "VM Peri"},
	{"[VM]", "RuntimeWorker#"},
	{"[VM]", "Service Thread"},
	{"[VM]", "Monitor Deflati"},
	{"[VM]", "Monitor..Thread"},
	{"[VM]", "Signal Dispatch"},
	{"[VM]", "Signal ..atcher"},
	{"[VM]", "Notification Th"},
	{"[VM]", "Notific..Thread"},
	{"[VM]", "Attach Listener"},
	{"[VM]", "AsyncLog Thread"},
	{"[VM]", "JFR "},
};

const char *hotspot_thread_group(const char *name, size_t room)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const size_t length = strlen(known[i].begin);

		if (length <= room && !memcmp(name, known[i].begin, length))
			return known[i].group;
	}
	return NULL;
}
