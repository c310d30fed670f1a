/* SPDX-License-Identifier: Apache-2.0 */
/* No privileges, limits, few system calls: for a worker, or a thread, that reads strangers' bytes.
 * Door to libseccomp. */
#ifndef COMMON_SANDBOX_H
#define COMMON_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct sandbox_limits {
	uint64_t memory_bytes; /* RLIMIT_AS */
	uint32_t cpu_seconds;  /* RLIMIT_CPU; the kernel kills with SIGXCPU/SIGKILL */
	uint64_t output_bytes; /* RLIMIT_FSIZE */
	uint32_t open_files;   /* RLIMIT_NOFILE; 0: as it is */
	bool has_socket;       /* sendmsg and recvmsg, on what is open, are allowed too */
	bool has_network;      /* see below */
};

/* For the calling process, for good: rlimits, no core dumps, no_new_privs, when root a uid and gid
 * of its own that nobody else has (65534 in a user namespace that is too small), no capabilities,
 * its memory hidden from equals, then a filter that allows only what memory, read/write/pread on
 * open descriptors, clocks and exiting need; opening files and sockets answers EPERM, anything else
 * kills the process.
 * With has_network, for a process that asks strangers over the network, whose libraries look up
 * names and certificates in ways of their own, more is allowed: sockets that connect, threads and
 * reading the system's files (/etc, /usr, /run …; kernels before 5.13: all that it has the right
 * to); no other programs and processes, no signals, limits or priorities of others, nothing is
 * made, changed or removed in the file system, nobody is listened to. What is not allowed answers
 * EPERM. */
bool sandbox_enter(const struct sandbox_limits *limits, struct error *err);

struct sandbox_thread {
	const char *writes_below; /* the folder in which it makes files; NULL: none anywhere */
	const char *reads;        /* a file beside the system's that it reads, NULL: none */
};

/* For the calling thread alone, for good: no capabilities, no_new_privs, a filter that allows pairs
 * of sockets, memory, reading files and, in one folder, making them; the rest answers EPERM: the
 * network, other programs and processes, signals, BPF, namespaces, limits and priorities. From
 * Linux 5.13 on only the system's files (/etc, /usr, /lib, /run) and the folder of the one named
 * can be read, and only those of the one folder be written; before that, a thread with such a
 * folder can write what its user may write. What it does not do: the thread keeps its user and
 * shares its memory and descriptors with the process. A hijacked thread can still write over what
 * others will do; it cannot ask the kernel for it by itself. */
bool sandbox_enter_thread(const struct sandbox_thread *may, struct error *err);

#endif
