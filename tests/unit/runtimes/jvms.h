/* SPDX-License-Identifier: Apache-2.0 */
/* The Java virtual machines that this machine has: Debian's, and those in the folder that
 * FARFLAME_JDKS names. What they run is their own rmiregistry, which waits. */
#ifndef TESTS_UNIT_RUNTIMES_JVMS_H
#define TESTS_UNIT_RUNTIMES_JVMS_H

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "node-agent/runtimes/python_memory.h"
#include "tests/check.h"

struct jvm {
	pid_t pid;
	char path[300]; /* of its libjvm */
	uint64_t base;
	struct runtime_symbols symbols;
	struct python_memory memory;
};

static inline bool jvm_read(void *context, uint64_t address, void *to, size_t bytes)
{
	const struct jvm *jvm = context;
	struct iovec there = {(void *)(uintptr_t)address, bytes}, here = {to, bytes};

	return process_vm_readv(jvm->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static inline bool jvm_file(const char *path, struct runtime_symbols *symbols)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_file *file = fd < 0 ? NULL : unwind_file_open(fd);

	if (!file)
		return false;
	unwind_file_runtime(file, symbols);
	unwind_file_close(file);
	return symbols->language == RUNTIME_HOTSPOT;
}

/* False: it is not mapped yet. */
static inline bool jvm_find(struct jvm *jvm)
{
	char name[64], line[600];
	uint64_t start;
	bool is_found = false;
	FILE *maps;

	snprintf(name, sizeof name, "/proc/%d/maps", jvm->pid);
	maps = fopen(name, "r");
	while (maps && !is_found && fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/');

		if (!path || !strstr(path, "/libjvm.so") ||
		    sscanf(line, "%" SCNx64 "-%*x %*s 0", &start) != 1)
			continue;
		path[strcspn(path, "\n")] = '\0';
		snprintf(jvm->path, sizeof jvm->path, "%s", path);
		jvm->base = start;
		is_found = jvm_file(path, &jvm->symbols);
	}
	if (maps)
		fclose(maps);
	return is_found;
}

static inline void jvm_stop(struct jvm *jvm)
{
	kill(jvm->pid, SIGKILL);
	waitpid(jvm->pid, NULL, 0);
}

/* program: bin/rmiregistry of an installation. False: it has not come up. */
static inline bool jvm_start(struct jvm *jvm, const char *program)
{
	*jvm = (struct jvm){.memory = {jvm_read, jvm}};
	jvm->pid = fork();
	if (jvm->pid == 0) {
		const int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execl(program, program, "-J-XX:+UseSerialGC", "-J-Xmx32m", "0", NULL);
		_exit(127);
	}
	for (unsigned i = 0; i < 1000; i++) {
		if (jvm_find(jvm))
			return true;
		usleep(10000);
	}
	jvm_stop(jvm);
	return false;
}

static inline void test_jvms(void (*test)(const char *program))
{
	const char *folder = getenv("FARFLAME_JDKS");
	glob_t found = {0};
	char pattern[300];

	glob("/usr/lib/jvm/*/bin/rmiregistry", 0, NULL, &found);
	snprintf(pattern, sizeof pattern, "%s/*/bin/rmiregistry", folder ? folder : "");
	if (folder)
		glob(pattern, GLOB_APPEND, NULL, &found);
	if (found.gl_pathc == 0)
		SKIP("no Java virtual machine");
	for (size_t i = 0; i < found.gl_pathc; i++)
		test(found.gl_pathv[i]);
	globfree(&found);
}

#endif
