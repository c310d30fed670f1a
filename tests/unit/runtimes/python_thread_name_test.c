/* SPDX-License-Identifier: Apache-2.0 */
/* What interpreters call their threads, those below ~/.pyenv/versions and /usr/bin/python3, as they
 * say themselves; and memory that is none. */
#include "node-agent/runtimes/python_thread_name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

static unsigned reads;

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	reads++;
	return stranger_memory_read(*(int *)context, address, to, bytes);
}

static bool find_layout(const struct python_memory *memory, uint32_t version, uint64_t state,
			struct python_layout *layout)
{
	uint8_t bytes[PYTHON_DEBUG_OFFSETS_BYTES];

	if (version < 0x030d0000)
		return python_layout_find(version, layout);
	return memory->read(memory->context, state, bytes, sizeof bytes) &&
	       python_layout_decode(bytes, sizeof bytes, layout);
}

/* name is what hex says, or, where that is longer, its beginning up to the end of a character. */
static bool is_name(const char *name, const char *hex)
{
	const size_t length = strlen(name), whole = strlen(hex) / 2;
	char digits[2 * PYTHON_THREAD_NAME_BYTES + 1] = "";

	for (size_t i = 0; i < length; i++)
		snprintf(digits + 2 * i, 3, "%02x", (uint8_t)name[i]);
	if (strncmp(digits, hex, 2 * length))
		return false;
	return length == whole ||
	       (length < whole && length >= PYTHON_THREAD_NAME_BYTES - 4 &&
		strncmp(hex + 2 * length, "80", 2) < 0) ||
	       (length < whole && length >= PYTHON_THREAD_NAME_BYTES - 4 && hex[2 * length] >= 'c');
}

static void check_threads(FILE *output, int directory)
{
	const struct python_memory memory = {read_memory, &directory};
	struct python_thread_table table;
	struct python_layout layout;
	char name[PYTHON_THREAD_NAME_BYTES], hex[2000];
	uint32_t version, count;
	uint64_t state, thread;

	if (!CHECK(fscanf(output, "%" SCNu32 " %" SCNu64 " %" SCNu32, &version, &state, &count) ==
		   3) ||
	    !CHECK(find_layout(&memory, version, state, &layout)))
		return;
	reads = 0;
	bool is_found = false;
	for (int i = 0; i < 200 && !is_found; i++) { /* of 3.6 only while one of its threads runs */
		is_found = python_thread_table_find(&memory, &layout, state, &table);
		usleep(is_found ? 0 : 5000);
	}
	if (!CHECK(is_found))
		return;
	printf("# %x: %u reads to find the table\n", version, reads);
	reads = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!CHECK(fscanf(output, "%" SCNu64 " %1999s", &thread, hex) == 2))
			return;
		*name = '\0';
		if (!CHECK(python_thread_name_read(&memory, &layout, &table, thread, name) &&
			   is_name(name, hex)))
			printf("# %s, %s\n", hex, name);
		CHECK(!python_thread_name_read(&memory, &layout, &table, thread + 8, name));
	}
	printf("# %u reads for %u threads\n", reads, 2 * count);
	table.dict_type += 8;
	CHECK(!python_thread_name_read(&memory, &layout, &table, thread, name));
	layout.version = 0x030f0000;
	CHECK(!python_thread_table_find(&memory, &layout, state, &table));
}

static void test_interpreter(const char *path)
{
	char directory[40];
	int out[2], fd;
	FILE *output;
	pid_t pid;

	printf("# %s\n", path);
	if (!CHECK(!pipe2(out, O_CLOEXEC)))
		return;
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execl(path, path, "tests/programs/python_threads.py", NULL);
		_exit(127);
	}
	close(out[1]);
	output = fdopen(out[0], "r");
	snprintf(directory, sizeof directory, "/proc/%d", pid);
	fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check_threads(output, fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fclose(output);
	close(fd);
}

/* Any bytes: nothing but an answer comes of them, after so many reads. */
static bool read_chance(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context, (void)address;
	reads++;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = rand() % 8 ? 0 : (uint8_t)rand();
	return rand() % 64;
}

static void test_chance(void)
{
	const struct python_memory memory = {read_chance, NULL};
	struct python_thread_table table;
	struct python_layout layout;
	char name[PYTHON_THREAD_NAME_BYTES];
	unsigned most = 0;

	for (unsigned i = 0; i < 20000; i++) {
		reads = 0;
		python_layout_find(0x03060000 + (i % 7 << 16), &layout);
		python_thread_table_find(&memory, &layout, 1 << 20, &table);
		table = (struct python_thread_table){1 << 20, 0};
		python_thread_name_read(&memory, &layout, &table, 1 << 20, name);
		most = reads > most ? reads : most;
	}
	printf("# at most %u reads\n", most);
	CHECK(most < 4 * PYTHON_KEYS_MAX);
}

int main(void)
{
	test_chance();
	test_interpreters(test_interpreter);
	return checks_done();
}
