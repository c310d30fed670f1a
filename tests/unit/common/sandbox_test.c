/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/check.h"

static struct sandbox_limits limits = {
	.memory_bytes = 256 << 20,
	.cpu_seconds = 1,
	.output_bytes = 1 << 20,
};

static int sockets[2];

/* Runs action in a sandboxed child; its exit status, or 128 + signal. 99: no sandbox. */
static int run(int (*action)(int output), int output)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct error err = {0};

		if (!sandbox_enter(&limits, &err)) {
			fprintf(stderr, "# %s\n", err.message);
			_exit(99);
		}
		_exit(action(output));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int reads_and_writes(int output)
{
	char bytes[16];
	void *memory = malloc(1 << 20);

	if (!memory)
		return 2;
	memset(memory, 1, 1 << 20);
	free(memory);
	return write(output, "hello", 5) != 5 || pread(output, bytes, 5, 0) != 5 ||
	       memcmp(bytes, "hello", 5) != 0;
}

static int open_fails(int output)
{
	(void)output;
	return open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM;
}

static int create_fails(int output)
{
	(void)output;
	return open("/tmp/farflame-sandbox-test", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM;
}

static int socket_fails(int output)
{
	(void)output;
	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM;
}

static int forks(int output)
{
	(void)output;
	return fork() ? 0 : 0;
}

static int executes(int output)
{
	char *const arguments[] = {(char *)"true", NULL};

	(void)output;
	execv("/bin/true", arguments);
	return 0;
}

static int kills_its_parent(int output)
{
	(void)output;
	return kill(getppid(), 0);
}

static int maps_code(int output)
{
	(void)output;
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return 0;
}

static int spins(int output)
{
	(void)output;
	for (volatile unsigned long i = 0;; i++)
		;
	return 0;
}

static int writes_too_much(int output)
{
	static char bytes[64 << 10];

	for (int i = 0; i < 64; i++)
		if (write(output, bytes, sizeof(bytes)) < 0)
			return 1;
	return 0;
}

/* A message with a descriptor to itself. */
static int passes_messages(int output)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int))}};
	char byte = 7;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};

	(void)output;
	memcpy(CMSG_DATA(&control.header), &sockets[0], sizeof(int));
	if (sendmsg(sockets[0], &message, 0) != 1 || recvmsg(sockets[1], &message, 0) != 1)
		return 1;
	if (message.msg_flags & MSG_CTRUNC)
		return 2;
	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM;
}

static void *thread_runs(void *context)
{
	return context;
}

/* What asking strangers needs: sockets, threads, and files that everybody may read. */
static int uses_the_network(int output)
{
	struct sockaddr_in nowhere = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(1)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;
	void *result = NULL;

	if (fd < 0)
		return 1;
	if (!connect(fd, (struct sockaddr *)&nowhere, sizeof(nowhere)) || errno == EPERM)
		return 2;
	if (pthread_create(&thread, NULL, thread_runs, &output) || pthread_join(thread, &result) ||
	    result != &output)
		return 3;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* version */) > 0 &&
	    (open("/proc/self/status", O_RDONLY) >= 0 || errno != EACCES))
		return 5;
	return open("/etc/passwd", O_RDONLY) < 0 || pwrite(output, "hello", 5, 0) != 5 ? 4 : 0;
}

/* And what it does not: each answers EPERM, and the process lives. */
static int is_refused(int output)
{
	char *const arguments[] = {(char *)"true", NULL};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

#define IS_REFUSED(call_) ((errno = 0, (long)(call_) < 0) && errno == EPERM)
	if (!IS_REFUSED(open("/dev/null", O_WRONLY)) || !IS_REFUSED(open("/dev/null", O_RDWR)))
		return 1;
	if (!IS_REFUSED(execv("/bin/true", arguments)) || !IS_REFUSED(fork()))
		return 2;
	if (!IS_REFUSED(kill(getppid(), 0)) || !IS_REFUSED(listen(fd, 1)))
		return 3;
	if (!IS_REFUSED(unlink("/tmp/farflame-sandbox-test")) ||
	    !IS_REFUSED(mkdir("/tmp/farflame-sandbox-test", 0700)) ||
	    !IS_REFUSED(rename("/tmp/farflame-sandbox-test", "/tmp/farflame-sandbox-test-2")))
		return 4;
	if (!IS_REFUSED(open("/tmp/farflame-sandbox-test", O_RDONLY | O_CREAT, 0600)) ||
	    !IS_REFUSED(open("/tmp/farflame-sandbox-test", O_RDONLY | O_TRUNC)) ||
	    !IS_REFUSED(truncate("/tmp/farflame-sandbox-test", 0)))
		return 5;
	/* the output is its own, but not its owner or what else is known of it */
	if (!IS_REFUSED(fchmod(output, 0777)) ||
	    !IS_REFUSED(fsetxattr(output, "user.test", "1", 1, 0)) ||
	    !IS_REFUSED(futimens(output, NULL)) || !IS_REFUSED(flock(output, LOCK_EX)))
		return 6;
	return 0;
}

/* What the server would feel, whose user is the same: signals, limits, priorities, memory. */
static int is_no_harm_to_its_parent(int output)
{
	struct rlimit limit = {5, 5};
	siginfo_t info = {.si_code = SI_QUEUE};
	pid_t parent = getppid();

	(void)output;
	if (!IS_REFUSED(syscall(SYS_tgkill, parent, parent, 0)) ||
	    !IS_REFUSED(syscall(SYS_tkill, parent, 0)))
		return 1;
	if (!IS_REFUSED(syscall(SYS_rt_sigqueueinfo, parent, SIGCONT, &info)) ||
	    !IS_REFUSED(syscall(SYS_rt_tgsigqueueinfo, parent, parent, SIGCONT, &info)))
		return 2;
	if (!IS_REFUSED(prlimit(parent, RLIMIT_NOFILE, &limit, NULL)) ||
	    !IS_REFUSED(prlimit(parent, RLIMIT_NOFILE, NULL, &limit)) ||
	    !IS_REFUSED(setpriority(PRIO_PROCESS, (id_t)parent, 19)) ||
	    !IS_REFUSED(syscall(SYS_sched_setaffinity, parent, 0, NULL)))
		return 3;
	if (!IS_REFUSED(syscall(SYS_pidfd_open, parent, 0)) ||
	    !IS_REFUSED(syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0)) ||
	    !IS_REFUSED(syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, parent, 0, 0)))
		return 4;
	if (!IS_REFUSED(syscall(SYS_shmget, 0x5ec2, 4096, 0600 | 01000 /* IPC_CREAT */)) ||
	    !IS_REFUSED(syscall(SYS_memfd_create, "x", 0)) ||
	    !IS_REFUSED(syscall(SYS_io_uring_setup, 1, NULL)) ||
	    !IS_REFUSED(syscall(SYS_unshare, 0)) || !IS_REFUSED(syscall(SYS_bpf, 0, NULL, 0)))
		return 5;
#undef IS_REFUSED
	return getrlimit(RLIMIT_NOFILE, &limit) ? 6 : 0;
}

static int takes_memory(int output)
{
	(void)output;
	for (int i = 0; i < 64; i++) {
		void *memory = malloc(16 << 20);

		if (!memory)
			return 7;
		*(volatile char *)memory = 1;
	}
	return 0;
}

static int is_nobody(int output)
{
	(void)output;
	return syscall(39 /* getpid, allowed */) <= 0;
}

/* All four are its own, which the process' number is part of. */
static void check_own_id(const char *status, const char *which, pid_t pid)
{
	unsigned own = 0x7fc00000u | (unsigned)pid;
	char line[128];

	snprintf(line, sizeof(line), "%s:\t%u\t%u\t%u\t%u\n", which, own, own, own, own);
	CHECK(strstr(status, line));
}

static void has_no_privileges(void)
{
	struct error err = {0};
	int pipes[2], status;
	char text[4096] = "";
	pid_t pid;
	FILE *file;

	if (geteuid() != 0) {
		SKIP("changing the user id needs root");
		return;
	}
	if (pipe(pipes)) {
		CHECK(!"pipe");
		return;
	}
	pid = fork();
	if (pid == 0) {
		char c;

		close(pipes[1]);
		_exit(!sandbox_enter(&limits, &err) || read(pipes[0], &c, 1) < 0);
	}
	close(pipes[0]);
	/* Until the filter, the last, is there: not long, but on a busy host. */
	for (int i = 0; i < 250 && !strstr(text, "Seccomp:\t2"); i++) {
		usleep(20 * 1000);
		snprintf(text, sizeof(text), "/proc/%d/status", pid);
		file = fopen(text, "r");
		text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
		if (file)
			fclose(file);
	}
	check_own_id(text, "Uid", pid);
	check_own_id(text, "Gid", pid);
	CHECK(strstr(text, "NoNewPrivs:\t1"));
	CHECK(strstr(text, "Seccomp:\t2"));
	CHECK(strstr(text, "CapEff:\t0000000000000000"));
	close(pipes[1]);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	int output = memfd_create("output", MFD_CLOEXEC);

	CHECK_NUMBER(run(reads_and_writes, output), 0);
	CHECK_NUMBER(run(is_nobody, output), 0);
	CHECK_NUMBER(run(open_fails, output), 0);
	CHECK_NUMBER(run(create_fails, output), 0);
	CHECK_NUMBER(run(socket_fails, output), 0);
	CHECK_NUMBER(run(forks, output), 128 + SIGSYS);
	CHECK_NUMBER(run(executes, output), 128 + SIGSYS);
	CHECK_NUMBER(run(kills_its_parent, output), 128 + SIGSYS);
	CHECK_NUMBER(run(maps_code, output), 128 + SIGSYS);
	CHECK_NUMBER(run(spins, output), 128 + SIGXCPU);
	CHECK_NUMBER(run(writes_too_much, output), 128 + SIGXFSZ);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	CHECK_NUMBER(run(passes_messages, output), 128 + SIGSYS);
	limits.has_socket = true;
	CHECK_NUMBER(run(passes_messages, output), 0);
	CHECK_NUMBER(run(forks, output), 128 + SIGSYS);
	CHECK_NUMBER(run(executes, output), 128 + SIGSYS);
	limits.open_files = (uint32_t)sockets[1] + 1;  /* none more */
	CHECK_NUMBER(run(passes_messages, output), 2); /* comes without its descriptor */
	limits.open_files = 0;
	limits.has_socket = false;
	limits.has_network = true;
	CHECK_NUMBER(run(uses_the_network, output), 0);
	CHECK_NUMBER(run(is_refused, output), 0);
	CHECK_NUMBER(run(is_no_harm_to_its_parent, output), 0);
	CHECK_NUMBER(run(writes_too_much, output), 128 + SIGXFSZ);
	limits.has_network = false;
#if defined(__SANITIZE_ADDRESS__)
	SKIP("AddressSanitizer needs more address space than any limit");
	(void)takes_memory;
#else
	CHECK_NUMBER(run(takes_memory, output), 7);
#endif
	has_no_privileges();
	return checks_done();
}
