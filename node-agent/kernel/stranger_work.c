/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/stranger_work.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/kernel/code_copy.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/kernel/waiting_context.h"
#include "node-agent/kernel/waiting_runtime.h"

/* --- the work --- */

static int maps = -1; /* that are being read */

static void read_all(int fd, uint64_t at, struct stranger_room *room)
{
	const size_t wanted = room->bytes < sizeof room->text ? room->bytes : sizeof room->text;
	ssize_t got = pread(fd, room->text, wanted, (off_t)at);

	room->got = got > 0 ? (uint64_t)got : 0;
	room->error = got < 0 ? errno : 0;
}

static void read_memory(struct stranger_room *room, int directory)
{
	int memory = openat(directory, "mem", O_RDONLY | O_CLOEXEC);

	if (memory < 0) {
		room->error = errno;
		return;
	}
	read_all(memory, room->at, room);
	close(memory);
}

static void read_code(struct stranger_room *room, int directory)
{
	int memory = openat(directory, "mem", O_RDONLY | O_CLOEXEC);

	if (memory < 0) {
		room->error = errno;
		return;
	}
	room->got = code_copy(memory, &room->code.layout, &room->code.told);
	close(memory);
}

/* One that shows a piece of its memory, as cmdline does. */
static void read_text(struct stranger_room *room, int directory)
{
	int file = openat(directory, room->text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (file < 0) {
		room->error = errno;
		return;
	}
	read_all(file, 0, room);
	close(file);
}

static uint32_t read_of_thread(uint32_t tid, uint64_t from, void *to, uint32_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
	ssize_t got = process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0);

	return got > 0 ? (uint32_t)got : 0;
}

static void read_threads(struct stranger_room *room)
{
	for (uint32_t i = 0; i < room->count && i < STRANGER_THREADS_MAX; i++) {
		struct stranger_thread *thread = &room->threads[i];

		room->now = i;
		if (thread->has_stack) {
			thread->has_code = read_of_thread(thread->tid, thread->code_at,
							  thread->code, sizeof thread->code) ==
					   sizeof thread->code;
			thread->stack_bytes = read_of_thread(thread->tid, thread->stack_at,
							     room->of[i].stack,
							     sizeof room->of[i].stack);
		}
		if (thread->has_place)
			thread->context_bytes = waiting_context_read(
				thread->tid, &thread->place, thread->pointer,
				(struct thread_context *)room->of[i].context, &thread->is_missing);
		if (thread->has_runtime)
			thread->runtime_words = waiting_runtime_read(thread->tid, &thread->runtime,
								     thread->pointer,
								     room->of[i].runtime);
	}
}

static void close_maps(void)
{
	if (maps >= 0)
		close(maps);
	maps = -1;
}

static void read_maps(struct stranger_room *room, int directory)
{
	const size_t wanted = room->bytes < sizeof room->text ? room->bytes : sizeof room->text;
	ssize_t got = 0;

	if (directory >= 0) {
		close_maps();
		maps = openat(directory, "maps", O_RDONLY | O_CLOEXEC);
	}
	if (maps < 0) {
		room->error = directory >= 0 ? errno : EBADF;
		return;
	}
	for (; room->got < wanted; room->got += (uint64_t)got) {
		got = read(maps, room->text + room->got, wanted - room->got);
		if (got <= 0)
			break;
	}
	room->error = got < 0 ? errno : 0;
	if (!room->got)
		close_maps();
}

static void read_link(struct stranger_room *room, int directory)
{
	char text[PATH_MAX];
	ssize_t got = readlinkat(directory, room->text, text, sizeof text);

	room->error = got < 0 ? errno : 0;
	room->got = got > 0 ? (uint64_t)got : 0;
	memcpy(room->text, text, room->got);
}

static void read_type(struct stranger_room *room, int fd)
{
	struct statfs system;

	room->error = fstatfs(fd, &system) ? errno : 0;
	room->got = room->error ? 0 : (uint64_t)system.f_type;
}

static int opened(struct stranger_room *room, int fd)
{
	room->error = fd < 0 ? errno : 0;
	return fd;
}

int stranger_work(struct stranger_room *room, int fd)
{
	room->got = 0;
	room->error = 0;
	switch ((enum stranger_question)room->question) {
	case STRANGER_MEMORY:
		read_memory(room, fd);
		break;
	case STRANGER_TEXT:
		read_text(room, fd);
		break;
	case STRANGER_CODE:
		read_code(room, fd);
		break;
	case STRANGER_THREADS:
		read_threads(room);
		break;
	case STRANGER_MAPS:
		read_maps(room, fd);
		break;
	case STRANGER_OPEN_AT:
		return opened(room, openat(fd, room->text, O_PATH | O_CLOEXEC));
	case STRANGER_STAT_AT:
		room->error = stranger_file_stat_at(fd, room->text, 0, &room->st) ? 0 : errno;
		break;
	case STRANGER_LINK_AT:
		read_link(room, fd);
		break;
	case STRANGER_REOPEN:
		return opened(room, stranger_file_reopen(fd));
	case STRANGER_FIND:
		return opened(room, stranger_file_find(fd, room->text, &room->search));
	case STRANGER_PREAD:
		read_all(fd, room->at, room);
		break;
	case STRANGER_STATFS:
		read_type(room, fd);
		break;
	}
	return -1;
}

/* --- the child --- */

/* Of what root may, only reading: of processes, of files, of what processes have mapped (which
 * kernels before 5.9 ask CAP_SYS_ADMIN for). */
static void keep_few_capabilities(void)
{
	enum { CHECKPOINT_RESTORE = 40 };
	const uint64_t few = 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_DAC_READ_SEARCH |
			     1ULL << CAP_SYS_ADMIN | 1ULL << CHECKPOINT_RESTORE;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data))
		return;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective &= (uint32_t)(few >> 32 * i);
		data[i].permitted &= (uint32_t)(few >> 32 * i);
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}

static struct stranger_room *enter(void)
{
	struct stranger_room *room = MAP_FAILED;
	int shared;

	prctl(PR_SET_NAME, STRANGER_READER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	close_range(OWN_CHILD_SOCKET + 1, ~0U, 0);
	keep_few_capabilities();
	if (own_child_receive(OWN_CHILD_SOCKET, &shared) == 1 && shared >= 0)
		room = mmap(NULL, sizeof *room, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	if (shared >= 0)
		close(shared);
	return room == MAP_FAILED ? NULL : room;
}

int stranger_reader_main(int argc, char **argv)
{
	struct stranger_room *room;
	int fd, answer;

	if (argc != 1 || strcmp(argv[0], STRANGER_READER_NAME) != 0)
		return -1;
	room = enter();
	while (room && own_child_receive(OWN_CHILD_SOCKET, &fd) == 1) {
		answer = stranger_work(room, fd);
		room->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		if (!own_child_send(OWN_CHILD_SOCKET, answer))
			break;
		if (fd >= 0)
			close(fd);
		if (answer >= 0)
			close(answer);
	}
	_exit(EXIT_SUCCESS);
}
