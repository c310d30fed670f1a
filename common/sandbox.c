/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Users and groups of our own, one for each process: below 2^31 and far above what is given
	 * to people, services and containers; process ids have 22 bits. */
	OWN_ID = 0x7fc00000,
	OWN_ID_MASK = (1 << 22) - 1,
	NOBODY = 65534, /* where there are no others, in a small user namespace */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW_MEMORY true /* 16 TiB of address space: RLIMIT_AS cannot be used */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW_MEMORY true
#endif
#endif
#ifndef HAS_SHADOW_MEMORY
#define HAS_SHADOW_MEMORY false
#endif

/* Memory, open descriptors, clocks, exiting. newfstatat is how glibc ≥ 2.33 does fstat(). */
static const int allowed[] = {
	SCMP_SYS(read),           SCMP_SYS(readv),
	SCMP_SYS(pread64),        SCMP_SYS(preadv),
	SCMP_SYS(write),          SCMP_SYS(writev),
	SCMP_SYS(pwrite64),       SCMP_SYS(lseek),
	SCMP_SYS(fstat),          SCMP_SYS(newfstatat),
	SCMP_SYS(close),          SCMP_SYS(munmap),
	SCMP_SYS(mremap),         SCMP_SYS(brk),
	SCMP_SYS(madvise),        SCMP_SYS(futex),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigreturn),   SCMP_SYS(sigaltstack),
	SCMP_SYS(clock_gettime),  SCMP_SYS(clock_nanosleep),
	SCMP_SYS(gettimeofday),   SCMP_SYS(restart_syscall),
	SCMP_SYS(getpid),         SCMP_SYS(gettid),
	SCMP_SYS(sched_yield),    SCMP_SYS(getrandom),
	SCMP_SYS(exit),           SCMP_SYS(exit_group),
};

/* Asked for by libraries that go on without: qsort() asks for the memory's size, stdio asks whether
 * it writes to a terminal. They get an error and live. */
static const int refused[] = {
	SCMP_SYS(open),       SCMP_SYS(openat),     SCMP_SYS(openat2), SCMP_SYS(creat),
	SCMP_SYS(socket),     SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
	SCMP_SYS(readlink),   SCMP_SYS(readlinkat), SCMP_SYS(sysinfo), SCMP_SYS(ioctl),
	SCMP_SYS(prlimit64),  SCMP_SYS(getrlimit),  SCMP_SYS(access),  SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(stat),       SCMP_SYS(lstat),   SCMP_SYS(statx),
	SCMP_SYS(getcwd),     SCMP_SYS(fcntl),      SCMP_SYS(getuid),  SCMP_SYS(sched_getaffinity),
};

/* Of a process that has the network, besides those: what names, connections, threads and the
 * system's files need. Its libraries open modules of their own, so memory may be run. */
static const int allowed_network[] = {
	SCMP_SYS(mmap),        SCMP_SYS(mprotect),
	SCMP_SYS(socket),      SCMP_SYS(socketpair),
	SCMP_SYS(connect),     SCMP_SYS(bind),
	SCMP_SYS(sendto),      SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),    SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),     SCMP_SYS(recvmmsg),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt),  SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),    SCMP_SYS(poll),
	SCMP_SYS(ppoll),       SCMP_SYS(select),
	SCMP_SYS(pselect6),    SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),   SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
	SCMP_SYS(pipe),        SCMP_SYS(pipe2),
	SCMP_SYS(dup),         SCMP_SYS(fcntl),
	SCMP_SYS(stat),        SCMP_SYS(lstat),
	SCMP_SYS(statx),       SCMP_SYS(access),
	SCMP_SYS(faccessat),   SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),    SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),  SCMP_SYS(getcwd),
	SCMP_SYS(fstatfs),     SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),   SCMP_SYS(fadvise64),
	SCMP_SYS(uname),       SCMP_SYS(sysinfo),
	SCMP_SYS(getrlimit),   SCMP_SYS(getrusage),
	SCMP_SYS(getuid),      SCMP_SYS(geteuid),
	SCMP_SYS(getgid),      SCMP_SYS(getegid),
	SCMP_SYS(getppid),     SCMP_SYS(sched_getaffinity),
	SCMP_SYS(nanosleep),   SCMP_SYS(clock_getres),
	SCMP_SYS(time),        SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),        SCMP_SYS(set_tid_address),
};

#define COUNT(array_) (sizeof(array_) / sizeof(*(array_)))

static bool set_limit(int resource, const char *what, uint64_t value, struct error *err)
{
	struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	/* CPU: SIGXCPU at the soft limit, SIGKILL a second later should it be ignored. */
	if (resource == RLIMIT_CPU)
		limit.rlim_max = value + 1;
	if (setrlimit(resource, &limit))
		return error_set_system(err, errno, "limit of %s", what);
	return true;
}

static bool set_limits(const struct sandbox_limits *limits, struct error *err)
{
	if (!HAS_SHADOW_MEMORY && !set_limit(RLIMIT_AS, "memory", limits->memory_bytes, err))
		return false;
	if (limits->open_files && !set_limit(RLIMIT_NOFILE, "open files", limits->open_files, err))
		return false;
	return set_limit(RLIMIT_CPU, "CPU time", limits->cpu_seconds, err) &&
	       set_limit(RLIMIT_FSIZE, "output", limits->output_bytes, err) &&
	       set_limit(RLIMIT_CORE, "core dumps", 0, err);
}

static bool become_group(gid_t id)
{
	return setresgid(id, id, id) == 0;
}

static bool become_user(uid_t id)
{
	return setresuid(id, id, id) == 0;
}

/* Whom nobody else is: equals may send each other signals. Where the id means nothing (EINVAL: a
 * user namespace without it) or this root may not change ids (EPERM: no CAP_SETUID), the filter
 * below is what protects. */
static bool drop_user(struct error *err)
{
	uid_t own = OWN_ID | (uid_t)(getpid() & OWN_ID_MASK);

	if (geteuid() != 0)
		return true;
	if (setgroups(0, NULL) && errno != EPERM)
		return error_set_system(err, errno, "drop supplementary groups");
	if (!become_group(own) && !become_group(NOBODY) && errno != EPERM && errno != EINVAL)
		return error_set_system(err, errno, "become gid %d", NOBODY);
	if (!become_user(own) && !become_user(NOBODY) && errno != EPERM && errno != EINVAL)
		return error_set_system(err, errno, "become uid %d", NOBODY);
	return true;
}

/* A service that is not root may have been given some, and this is a child of it. */
static bool drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capset, &header, none) == 0 ||
	       error_set_system(err, errno, "drop capabilities");
}

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* All that this kernel can refuse of what may be done with files. */
static uint64_t refused_accesses(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t first = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

	if (version < 1)
		return 0;
	return first | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
	       (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

/* Of the files that it may read by their permissions, a process with the network sees those of the
 * system alone: a server that is not root and its child have the same user, and so the same data.
 * Nothing is written or made. Kernels from 5.13 can do that; on others the filter below is all
 * there is. */
static bool hide_files(struct error *err)
{
	static const char *const seen[] = {"/etc", "/usr", "/lib", "/lib64", "/run", "/dev"};
	const struct landlock_ruleset_attr rules = {.handled_access_fs = refused_accesses()};
	int set = rules.handled_access_fs
			  ? (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0)
			  : -1;
	bool ok = true;

	if (set < 0)
		return true;
	for (size_t i = 0; ok && i < COUNT(seen); i++) {
		struct landlock_path_beneath_attr rule = {
			.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
					  LANDLOCK_ACCESS_FS_READ_DIR,
			.parent_fd = open(seen[i], O_PATH | O_CLOEXEC),
		};

		if (rule.parent_fd < 0)
			continue;
		ok = !syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
		close(rule.parent_fd);
	}
	ok = ok && !syscall(SYS_landlock_restrict_self, set, 0);
	if (!ok)
		error_set_system(err, errno, "hide files");
	close(set);
	return ok;
}

/* Memory, but never memory to run; abort(), but no signals to others. */
static int add_memory_rules(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return rc;
}

static int add_rules(scmp_filter_ctx filter, const struct sandbox_limits *limits)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < COUNT(allowed); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !rc && i < COUNT(refused); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	if (!rc && limits->has_socket)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0);
	if (!rc && limits->has_socket)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 0);
	return rc ? rc : add_memory_rules(filter);
}

/* Files are opened to be read and not made, limits only read, signals its own, and clones are
 * threads. clone3() has its flags in memory, where a filter cannot look: without it glibc uses
 * clone(). */
static int add_network_rules(scmp_filter_ctx filter)
{
	enum { CHANGES = O_ACCMODE | O_CREAT | O_TRUNC };
	static const scmp_datum_t ioctls[] = {FIONBIO, FIONREAD, TCGETS};
	const uint32_t allow = SCMP_ACT_ALLOW;
	int rc = 0;

	for (size_t i = 0; !rc && i < COUNT(allowed); i++)
		rc = seccomp_rule_add(filter, allow, allowed[i], 0);
	for (size_t i = 0; !rc && i < COUNT(allowed_network); i++)
		rc = seccomp_rule_add(filter, allow, allowed_network[i], 0);
	for (size_t i = 0; !rc && i < COUNT(ioctls); i++)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(ioctl), 1,
				      SCMP_A1(SCMP_CMP_EQ, ioctls[i]));
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(openat), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, CHANGES, 0));
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(open), 1,
				      SCMP_A1(SCMP_CMP_MASKED_EQ, CHANGES, 0));
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(prlimit64), 2,
				      SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(prctl), 1,
				      SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_rule_add(filter, allow, SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	return rc;
}

static bool load_filter(const struct sandbox_limits *limits, struct error *err)
{
	scmp_filter_ctx filter = seccomp_init(limits->has_network ? SCMP_ACT_ERRNO(EPERM)
								  : SCMP_ACT_KILL_PROCESS);
	int rc = -ENOMEM;

	if (filter)
		rc = limits->has_network ? add_network_rules(filter) : add_rules(filter, limits);

	if (!rc)
		rc = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return !rc || error_set_system(err, -rc, "system call filter");
}

bool sandbox_enter(const struct sandbox_limits *limits, struct error *err)
{
	int parent_death = 0;

	prctl(PR_GET_PDEATHSIG, &parent_death);
	if (!drop_user(err) || !drop_capabilities(err))
		return false;
	/* Its memory is nobody else's to look at or change. */
	if (prctl(PR_SET_DUMPABLE, 0))
		return error_set_system(err, errno, "not dumpable");
	/* Forgotten by the kernel with the change of ids. */
	prctl(PR_SET_PDEATHSIG, parent_death);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return error_set_system(err, errno, "no_new_privs");
	/* Before the filter, which no longer lets limits be changed; libseccomp needs memory, so a
	 * limit that is too small shows up here as an error and not as a crash. */
	return set_limits(limits, err) && (!limits->has_network || hide_files(err)) &&
	       load_filter(limits, err);
}

/* --- one thread --- */

/* What sockets to a process of ours, reading files, locks, clocks and logs need. */
static const int allowed_to_thread[] = {
	SCMP_SYS(read),         SCMP_SYS(readv),
	SCMP_SYS(pread64),      SCMP_SYS(write),
	SCMP_SYS(writev),       SCMP_SYS(lseek),
	SCMP_SYS(fstat),        SCMP_SYS(newfstatat),
	SCMP_SYS(stat),         SCMP_SYS(lstat),
	SCMP_SYS(statx),        SCMP_SYS(access),
	SCMP_SYS(faccessat),    SCMP_SYS(faccessat2),
	SCMP_SYS(close),        SCMP_SYS(fcntl),
	SCMP_SYS(munmap),       SCMP_SYS(mremap),
	SCMP_SYS(brk),          SCMP_SYS(madvise),
	SCMP_SYS(futex),        SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),  SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),    SCMP_SYS(restart_syscall),
	SCMP_SYS(getpid),       SCMP_SYS(gettid),
	SCMP_SYS(getuid),       SCMP_SYS(geteuid),
	SCMP_SYS(getgid),       SCMP_SYS(getegid),
	SCMP_SYS(uname),        SCMP_SYS(sched_yield),
	SCMP_SYS(getrandom),    SCMP_SYS(poll),
	SCMP_SYS(ppoll),        SCMP_SYS(socketpair),
	SCMP_SYS(setsockopt),   SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),      SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),      SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* What files that are made need besides. */
static const int allowed_to_writer[] = {
	SCMP_SYS(pwritev), SCMP_SYS(preadv),    SCMP_SYS(statfs),    SCMP_SYS(openat),
	SCMP_SYS(open),    SCMP_SYS(pwrite64),  SCMP_SYS(unlinkat),  SCMP_SYS(unlink),
	SCMP_SYS(rename),  SCMP_SYS(renameat),  SCMP_SYS(renameat2), SCMP_SYS(ftruncate),
	SCMP_SYS(fsync),   SCMP_SYS(fdatasync), SCMP_SYS(fallocate), SCMP_SYS(flock),
	SCMP_SYS(fstatfs), SCMP_SYS(fadvise64),
};

#define LANDLOCK_ALL      (((uint64_t)LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) /* since 5.13 */
#define LANDLOCK_CUT      ((uint64_t)1 << 14) /* ACCESS_FS_TRUNCATE, since 6.2 */
#define LANDLOCK_CUT_FROM 3                   /* version of the interface */

static bool show_below(int set, const char *path, uint64_t access, struct error *err)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = access,
		.parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC),
	};
	bool ok;

	if (rule.parent_fd < 0)
		return errno == ENOENT || error_set_system(err, errno, "show '%s'", path);
	ok = !syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ||
	     error_set_system(err, errno, "show '%s'", path);
	close(rule.parent_fd);
	return ok;
}

static bool show_folder_of(int set, const char *file, uint64_t access, struct error *err)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(file, '/');
	int length = !slash ? 1 : slash == file ? 1 : (int)(slash - file);

	snprintf(folder, sizeof folder, "%.*s", length, slash ? file : ".");
	return show_below(set, folder, access, err);
}

/* Kernels from 5.13 can do that. */
static bool bind_thread_to_files(const struct sandbox_thread *may, struct error *err)
{
	/* Not /dev: the thread is still root, whose the disks are, and some act when opened. */
	static const char *const seen[] = {"/etc", "/usr", "/lib", "/lib64", "/run"};
	const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	const struct landlock_ruleset_attr rules = {
		.handled_access_fs = LANDLOCK_ALL |
				     (version >= LANDLOCK_CUT_FROM ? LANDLOCK_CUT : 0)};
	int set = version < 0 ? -1
			      : (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
	bool ok = true;

	if (set < 0)
		return true;
	for (size_t i = 0; ok && i < COUNT(seen); i++)
		ok = show_below(set, seen[i], reads, err);
	if (ok && may->reads)
		ok = show_folder_of(set, may->reads, reads, err);
	if (ok && may->writes_below)
		ok = show_below(set, may->writes_below,
				rules.handled_access_fs & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
				err);
	if (ok && syscall(SYS_landlock_restrict_self, set, 0))
		ok = error_set_system(err, errno, "bind to files");
	close(set);
	return ok;
}

static int add_thread_rules(scmp_filter_ctx filter, bool writes)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < COUNT(allowed_to_thread); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_to_thread[i], 0);
	for (size_t i = 0; !rc && writes && i < COUNT(allowed_to_writer); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_to_writer[i], 0);
	if (!rc && !writes)
		rc = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, 0));
	if (!rc && !writes)
		rc = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, 0));
	return rc ? rc : add_memory_rules(filter);
}

static bool load_thread_filter(bool writes, struct error *err)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* libseccomp promises nothing */
	scmp_filter_ctx filter;
	int rc = -ENOMEM;

	pthread_mutex_lock(&one);
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (filter)
		rc = add_thread_rules(filter, writes);
	if (!rc)
		rc = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	pthread_mutex_unlock(&one);
	return !rc || error_set_system(err, -rc, "system call filter");
}

bool sandbox_enter_thread(const struct sandbox_thread *may, struct error *err)
{
	bool ok;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return error_set_system(err, errno, "no_new_privs");
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Each for itself: what one cannot do is no reason to keep the rest. */
	ok = bind_thread_to_files(may, err);
	ok = drop_capabilities(ok ? err : NULL) && ok;
	return load_thread_filter(may->writes_below, ok ? err : NULL) && ok;
}
