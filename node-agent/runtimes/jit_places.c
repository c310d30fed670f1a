/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/jit_places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/processes.h"

enum { OLDER_SLACK_S = 2 }; /* clocks that were set, and file systems with whole seconds */

bool jit_owner_read(int directory, struct jit_owner *owner)
{
	return owner->pid ||
	       (process_user(directory, &owner->user) && process_inner_pid(directory, &owner->pid));
}

/* --- mappings --- */

/* CPython is none of them: what it makes itself says so by its names, and what others make in its
 * process (numba, ctypes) is not its. */
static enum jit_language language_of(const char *path)
{
	static const struct {
		const char *begin;
		enum jit_language language;
	} runtimes[] = {{"libjvm.so", JIT_JVM},       {"libcoreclr.so", JIT_DOTNET},
			{"libmonosgen-", JIT_DOTNET}, {"mono-sgen", JIT_DOTNET},
			{"beam.", JIT_BEAM},          {"luajit", JIT_LUAJIT},
			{"libluajit", JIT_LUAJIT},    {"libnode.so", JIT_V8},
			{"libv8.so", JIT_V8}};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
		if (!strncmp(name, runtimes[i].begin, strlen(runtimes[i].begin)))
			return runtimes[i].language;
	return !strcmp(name, "node") || !strcmp(name, "deno") ? JIT_V8 : JIT_UNKNOWN;
}

void jit_place_find(int directory, struct jit_owner *owner, struct jit_place *dump)
{
	struct stranger_maps maps;
	struct memory_row row;
	uint32_t pid;

	stranger_maps_begin(&maps, directory);
	while (memory_map_read(&maps, &row)) {
		if (!row.is_executable || !row.inode)
			continue;
		if (owner->language == JIT_UNKNOWN)
			owner->language = language_of(row.path);
		if (memory_path_is_dump(row.path, &pid) && pid == owner->pid) {
			dump->start = row.start;
			dump->end = row.end;
		}
	}
	stranger_maps_end(&maps);
}

/* --- opening --- */

static int find_map(int directory, const struct jit_owner *owner)
{
	const struct file_search search = {.reader = owner->user, .owner = owner->user};
	int root = stranger_open_at(directory, "root"), fd, why;
	char path[40];

	if (root < 0)
		return -1;
	snprintf(path, sizeof path, "tmp/perf-%u.map", owner->pid);
	fd = stranger_find(root, path, &search);
	why = errno;
	close(root);
	errno = why;
	return fd;
}

/* A process forgets its clocks as little as a file does: both are of the host's. */
static bool is_older(const struct stat *st, const struct process *process)
{
	const uint64_t boot_ns = boot_time_ns(), start_ns = process->key.start_time_ns;
	const time_t age_s = (time_t)((boot_ns > start_ns ? boot_ns - start_ns : 0) / 1000000000);

	return process->is_identified && st->st_mtim.tv_sec + OLDER_SLACK_S < time(NULL) - age_s;
}

static bool is_its_own(const struct stat *st, const struct process *process,
		       const struct jit_owner *owner)
{
	return S_ISREG(st->st_mode) && (st->st_uid == owner->user || !st->st_uid) &&
	       !is_older(st, process);
}

int jit_place_look(int directory, const struct process *process, const struct jit_owner *owner,
		   struct jit_place *place)
{
	int path_fd = place->format == JIT_DUMP
			      ? process_open_mapping(directory, place->start, place->end)
			      : find_map(directory, owner);
	struct stat st;

	if (path_fd < 0)
		return errno == ELOOP || errno == EPERM || errno == EINVAL ? JIT_PLACE_FOREIGN
									   : JIT_PLACE_ABSENT;
	if (stranger_file_stat(path_fd, &st) && is_its_own(&st, process, owner)) {
		place->device = st.st_dev;
		place->inode = st.st_ino;
		place->bytes = (uint64_t)st.st_size;
		place->seen_ns = monotonic_ns();
		return path_fd;
	}
	close(path_fd);
	return JIT_PLACE_FOREIGN;
}
