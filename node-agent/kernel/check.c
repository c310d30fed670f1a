/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/check.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_WIDTH = 78 };

/* What the agent uses each for; printed when it is missing. Bits as of <linux/capability.h>. */
static const struct {
	unsigned bit;
	const char *name, *use;
} capabilities[] = {
	{39, "CAP_BPF", "loading BPF programs"},
	{38, "CAP_PERFMON", "timers and stacks of all processes"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
	 "both of these before Linux 5.8, files of other namespaces"},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "mappings and files of other users' processes"},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "their files"},
	{CAP_SYSLOG, "CAP_SYSLOG", "kernel addresses"},
	{40, "CAP_CHECKPOINT_RESTORE", "files as processes have them mapped"},
	{CAP_SETUID, "CAP_SETUID", "a user of its own for the parser of files"},
	{CAP_SETGID, "CAP_SETGID", "the same"},
	{CAP_KILL, "CAP_KILL", "ending a parser that hangs"},
	{CAP_SYS_NICE, "CAP_SYS_NICE", "exact windows in allocators (mem-alloc)"},
};

/* Measured on a virtual machine of two CPUs, Linux 6.18, for stacks of some ten frames. */
static const char perf_cost[] =
	"A sample takes about 10 us in the kernel and 30 us in the agent; by BPF 20 and 20. The "
	"rings take 1 MiB of kernel memory per CPU at 19 Hz, 4 MiB at 99 Hz, at most 32 MiB. "
	"Stacks of more than 60 KiB are cut, of one's own processes of more than 15 KiB.";

/* --- pieces of text --- */

/* A paragraph, indented, broken at spaces. */
static void print_wrapped(const char *text, int indent, FILE *out)
{
	int column = indent;

	fprintf(out, "%*s", indent, "");
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > LINE_WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(out, "%s%.*s", column > indent ? " " : "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_fact(const char *name, const char *value, const char *meaning, FILE *out)
{
	fprintf(out, "  %-34s %-10s %s\n", name, value, meaning);
}

static void print_features(const struct kernel_features *features, enum kernel_feature_use use,
			   FILE *out)
{
	for (size_t i = 0; i < KERNEL_FEATURE_COUNT; i++) {
		const struct kernel_feature *feature = &features->features[i];

		if (feature->use != use)
			continue;
		fprintf(out, "  %-3s  %s\n", feature->is_there ? "yes" : "NO", feature->text);
		if (!feature->is_there)
			print_wrapped(feature->sentence, 7, out);
	}
}

/* --- facts --- */

static void print_privileges(const struct kernel_features *features, FILE *out)
{
	unsigned missing = 0;

	print_fact("user", features->is_root ? "root" : "not root", "", out);
	for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
		char text[120];

		if (features->capabilities >> capabilities[i].bit & 1)
			continue;
		missing++;
		snprintf(text, sizeof text, "needed for %s", capabilities[i].use);
		print_fact(capabilities[i].name, "missing", text, out);
	}
	if (!missing)
		print_fact("capabilities", "complete", "", out);
}

static void print_lockdown(enum kernel_lockdown lockdown, FILE *out)
{
	static const char *const texts[][2] = {
		[LOCKDOWN_UNKNOWN] = {"unknown", ""},
		[LOCKDOWN_NONE] = {"none", "nothing is held back"},
		[LOCKDOWN_INTEGRITY] = {"integrity", "sampling is allowed"},
		[LOCKDOWN_CONFIDENTIALITY] = {"confiden.",
					      "BPF may not read kernel memory: no sampling"},
	};

	print_fact("kernel lockdown", texts[lockdown][0], texts[lockdown][1], out);
}

static void print_sysctl(const char *name, int64_t value, const char *meaning, FILE *out)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	print_fact(name, value < -1 ? "unreadable" : text, meaning, out);
}

static void print_limit(const char *name, uint64_t value, const char *meaning, FILE *out)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, value);
	print_fact(name, value == UINT64_MAX ? "none" : text, meaning, out);
}

/* What a unit or a container may forbid although the capabilities are there. */
static void print_denied(FILE *out)
{
	const struct sched_param first = {.sched_priority = 1}, none = {0};
	const bool is_first = !sched_setscheduler(0, SCHED_FIFO, &first);
	const bool has_openat2 = syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno != ENOSYS &&
				 errno != EPERM;
	const bool has_seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0,
					 &(uint32_t){SECCOMP_RET_KILL_PROCESS}) == 0;

	if (is_first)
		sched_setscheduler(0, SCHED_OTHER, &none);
	print_fact("real-time priority", is_first ? "yes" : "denied",
		   is_first ? "" : "windows in allocators blur (mem-alloc)", out);
	print_fact("openat2", has_openat2 ? "yes" : "denied",
		   has_openat2 ? "" : "files are not found (RestrictSUIDSGID?)", out);
	print_fact("seccomp", has_seccomp ? "yes" : "denied",
		   has_seccomp ? "" : "the parser of files does not run", out);
}

static void print_facts(const struct kernel_features *features, FILE *out)
{
	struct rlimit files = {0};
	bool counts_memlock = features->version_major < 5 ||
			      (features->version_major == 5 && features->version_minor < 11);

	print_privileges(features, out);
	print_lockdown(features->lockdown, out);
	print_sysctl("kernel.perf_event_paranoid", features->perf_event_paranoid,
		     features->perf_event_paranoid > 0 ? "asks for CAP_PERFMON" : "", out);
	print_sysctl("kernel.kptr_restrict", features->kptr_restrict,
		     features->kptr_restrict > 1 ? "kernel frames stay without files" : "", out);
	print_sysctl("kernel.unprivileged_bpf_disabled", features->unprivileged_bpf_disabled, "",
		     out);
	print_sysctl("kernel.perf_event_max_sample_rate", features->perf_event_max_sample_rate,
		     "highest --frequency", out);
	print_limit("locked memory, bytes", features->memlock_bytes,
		    counts_memlock ? "BPF maps count (before 5.11)" : "BPF maps do not count", out);
	getrlimit(RLIMIT_NOFILE, &files);
	print_limit("open files", files.rlim_max == RLIM_INFINITY ? UINT64_MAX : files.rlim_max,
		    files.rlim_max < 4096 ? "few: files of some programs will not be kept open"
					  : "",
		    out);
	print_denied(out);
}

static bool can_sample(const struct kernel_features *features)
{
	return features->can_sample || features->features[KERNEL_FEATURE_perf_samples].is_there ||
	       features->features[KERNEL_FEATURE_perf_own_samples].is_there;
}

static const char *verdict(const struct kernel_features *features)
{
	if (features->can_sample)
		return "works";
	if (features->features[KERNEL_FEATURE_perf_samples].is_there)
		return "works without BPF";
	return can_sample(features) ? "of one's own processes (--pid) works without BPF"
				    : "does not work";
}

/* --profile, by what each needs. */
static void print_types(const struct kernel_features *features, FILE *out)
{
	const bool has_tracepoints = features->features[KERNEL_FEATURE_raw_tracepoint].is_there;
	const bool takes_switches = features->can_sample && has_tracepoints;
	const bool takes_memory = features->can_sample &&
				  features->features[KERNEL_FEATURE_uprobe].is_there;

	fprintf(out, "  %-3s  on-cpu\n", can_sample(features) ? "yes" : "NO");
	fprintf(out, "  %-3s  off-cpu, still-blocked, waker, run-queue\n",
		takes_switches ? "yes" : "NO");
	fprintf(out, "  %-3s  page-fault\n", features->can_sample ? "yes" : "NO");
	fprintf(out, "  %-3s  mem-alloc, mem-inuse\n", takes_memory ? "yes" : "NO");
	if (!takes_switches)
		print_wrapped(features->can_sample
				      ? "They need raw tracepoints."
				      : "They need BPF: perf events alone do not show them.",
			      7, out);
	if (features->can_sample && !takes_memory)
		print_wrapped("mem-alloc and mem-inuse need probes in programs.", 7, out);
}

void check_print(const struct kernel_features *features, FILE *out)
{
	fprintf(out, "farflame-agent %s on Linux %s, %u CPUs online of %u possible\n",
		FARFLAME_VERSION, features->release, features->online_cpus,
		features->possible_cpus);
	fputs("\nNeeded for on-cpu profiling by BPF:\n", out);
	print_features(features, KERNEL_FEATURE_NEEDED, out);
	fputs("\nBetter with it, works without:\n", out);
	print_features(features, KERNEL_FEATURE_BETTER, out);
	fputs("\nInstead of BPF (--capture perf):\n", out);
	print_features(features, KERNEL_FEATURE_INSTEAD, out);
	print_wrapped(perf_cost, 7, out);
	fputs("\nProfile types (--profile):\n", out);
	print_types(features, out);
	fputs("\nThis host:\n", out);
	print_facts(features, out);
	fprintf(out, "\nOn-CPU profiling %s here.\n", verdict(features));
}

bool check_run(FILE *out)
{
	struct kernel_features *features = calloc(1, sizeof *features);
	bool works;

	if (!features) {
		fputs("no memory\n", out);
		return false;
	}
	kernel_features_read(features);
	check_print(features, out);
	works = can_sample(features);
	free(features);
	return works;
}
