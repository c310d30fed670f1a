/* SPDX-License-Identifier: Apache-2.0 */
/* A process held in each state. A traced thread that has exited stays listed until its tracer waits
 * for it, as every thread does for a moment after the kernel has told of its exit. */
#include "node-agent/capture/thread_group.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

/* One byte each ends a thread: the second, then the main one. */
struct child {
	pid_t pid, second;
	int end_main, end_second;
};

static void exit_when_told(int go)
{
	char byte;

	if (read(go, &byte, 1) == 1)
		syscall(SYS_exit, 0);
	_exit(1);
}

static void *second_main(void *go)
{
	exit_when_told(*(int *)go);
	return NULL;
}

/* Of the thread that is not the main one. 0: there is none yet. */
static pid_t second_thread(pid_t pid)
{
	char path[32];
	const struct dirent *entry;
	pid_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name) && atoi(entry->d_name) != pid)
			found = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return found;
}

static struct child child_start(void)
{
	struct child child = {0};
	int main_pipe[2], second_pipe[2];
	pthread_t thread;

	CHECK(pipe(main_pipe) == 0 && pipe(second_pipe) == 0);
	child.pid = fork();
	if (child.pid == 0) {
		pthread_create(&thread, NULL, second_main, &second_pipe[0]);
		exit_when_told(main_pipe[0]);
	}
	while (!(child.second = second_thread(child.pid)))
		usleep(1000);
	child.end_main = main_pipe[1];
	child.end_second = second_pipe[1];
	close(main_pipe[0]);
	close(second_pipe[0]);
	return child;
}

static bool is_zombie(pid_t pid, pid_t tid)
{
	char path[64], state = 0;
	FILE *stat;

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	stat = fopen(path, "r");
	if (!stat)
		return true;
	if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(stat);
	return state == 'Z' || state == 'X';
}

static void thread_end(const struct child *child, int end, pid_t tid)
{
	CHECK(write(end, "", 1) == 1);
	while (!is_zombie(child->pid, tid))
		usleep(1000);
}

static void child_free(const struct child *child)
{
	close(child->end_main);
	close(child->end_second);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

static void test_main_thread_first(void)
{
	struct child child = child_start();

	CHECK(thread_group_lives((uint32_t)child.pid));
	thread_end(&child, child.end_main, child.pid);
	CHECK(thread_group_lives((uint32_t)child.pid));
	thread_end(&child, child.end_second, child.second);
	CHECK(!thread_group_lives((uint32_t)child.pid));
	child_free(&child);
	CHECK(!thread_group_lives((uint32_t)child.pid));
}

static void test_exited_but_listed(void)
{
	struct child child = child_start();

	if (ptrace(PTRACE_SEIZE, child.second, 0, 0) == 0) {
		thread_end(&child, child.end_main, child.pid);
		thread_end(&child, child.end_second, child.second);
		CHECK_NUMBER(second_thread(child.pid), child.second);
		CHECK(!thread_group_lives((uint32_t)child.pid));
	} else {
		SKIP("a child of ours cannot be traced here");
		kill(child.pid, SIGKILL);
	}
	child_free(&child);
}

int main(void)
{
	CHECK(thread_group_lives((uint32_t)getpid()));
	test_main_thread_first();
	test_exited_but_listed();
	return checks_done();
}
