/* SPDX-License-Identifier: Apache-2.0 */
/* The one door through which the agent opens files whose path a stranger decides. The agent reads
 * as root what any user may have put there: a link into a folder of root's, a device that acts when
 * it is opened, a pipe, a folder that only another mount namespace has.
 *
 * - Nothing is opened before it is known what it is: O_PATH first, statx without asking a file
 *   system's server, regular files only, then the very same file for reading by /proc/self/fd.
 * - Paths are walked one name at a time, below the folder they are given for, no "..", no links:
 *   openat2, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS. Links are followed only
 *   below the host's folder of debug files, where they and everything on the way are root's own.
 * - Each folder on the way and the file are looked at as their reader would: by mode bits, those of
 *   the owner for the owner, else those of group and others, both. Neither capabilities nor groups
 *   nor access control lists let more be read; a list that shuts out a single user is not seen.
 *
 * - A file system that a user's process serves (FUSE) is opened only where root mounted it:
 * close(2) asks that process, too, and waits. Nothing that is mounted beside a running file is
 * looked into.
 *
 * Each of these may wait for the file system's server: the main thread has them done by
 * stranger_reader.h.
 *
 * What leaves the host has one rule more: a running file is sent only where whoever may execute it
 * may read it (stranger_file_may_send()). A program 4711 of root's stays here, one 0700 is sent:
 * only its owner can have run it, and the server is the operator's.
 *
 * Who decides each path that the agent opens, how it is opened, and as whom:
 *
 * - a mapping's file (stranger): map_files/, O_PATH, regular, reopened; the process had it open
 * - /proc/PID/exe (stranger): the same
 * - a mapping's path, process there (stranger): below /proc/PID/root, no links, for its real user
 * - a mapping's path, process gone (stranger): below /, no links; sent only if all may read it
 * - an executable, once more (stranger): its mapping or path, and it is the very file of before
 * - a probed file (stranger): as a mapping; the kernel gets the descriptor (/proc/self/fd/N)
 * - a debug file beside, or in .debug/ (stranger): below the running file's own folder, no links
 * - a debug file in /usr/lib/debug (root; a stranger the last names): follows_links, for anybody
 * - what is sent of a running file (stranger): the descriptor of before, or the same once more;
 *   stranger_file_may_send()
 * - texts of links in /proc/PID (stranger): compared and shown, never opened
 * - /tmp/perf-PID.map (stranger): below /proc/PID/root, no links, for its real user, that user's or
 *   root's, younger than the process
 * - jit-PID.dump (stranger): as a mapping; the same user's, as young
 * - files for the parser's child (stranger): descriptors from here; it can open nothing itself
 * - /proc/PID/maps, mem, stat, status, cgroup, cmdline, environ, comm, task/ (kernel): by number;
 *   no path comes of them
 * - /etc/passwd (root): for users' names
 * - /proc, /sys (kernel): constants, and modules' names as /proc/modules has them
 * - vDSO (agent): memfd
 * - configuration, token, CA, spool, output, metrics (operator): as the agent; what is written
 *   with O_NOFOLLOW
 *
 * Functions that return a descriptor return −1 and errno; stranger_file_why() has the sentence. */
#ifndef NODE_AGENT_KERNEL_STRANGER_FILE_H
#define NODE_AGENT_KERNEL_STRANGER_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#define READER_ANYBODY ((uid_t)-1) /* what every user of the host may read */
#define OWNER_ANYBODY  ((uid_t)-1)

struct file_search {
	uid_t reader; /* who has to be able to read it; 0: root, who may read all */
	uid_t owner; /* besides root, and the agent's own user, whose files and folders are taken */
	/* Links are followed. All on the way, and the file, is root's or the agent's own user's
	 * then and written by nobody else; a folder that others may write to is sticky (/tmp). */
	bool follows_links;
	bool one_mount; /* nothing mounted below the folder is looked into */
};

/* Device, inode, mode, owner, size and times, as far as they are known here: no file system's
 * server is waited for. The other fields are 0. Works on O_PATH descriptors. */
bool stranger_file_stat(int fd, struct stat *st);
/* The same by name below a folder; flags: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW. */
bool stranger_file_stat_at(int folder, const char *name, int flags, struct stat *st);

/* An O_PATH descriptor → one for reading, of the very same file; path_fd stays the caller's.
 * EINVAL: no regular file, which nothing was opened of; ENODEV: a user's process serves it. */
int stranger_file_reopen(int path_fd);

/* A regular file by its path below folder, as an O_PATH descriptor; a leading '/' is the folder.
 * ELOOP: by a link; EXDEV: by ".."; EACCES: the reader could not read it; EPERM: another's, or
 * others may write it; EINVAL: no regular file. */
int stranger_file_find(int folder, const char *path, const struct file_search *search);
/* stranger_file_find() and stranger_file_reopen(). */
int stranger_file_open(int folder, const char *path, const struct file_search *search);

/* The folder that an open file lies in, as an O_PATH descriptor; path: its path in this process'
 * mount namespace, in either case when not "". −1: it lies nowhere any more, or in another
 * namespace: what lies by that path here is another file. */
int stranger_file_folder(int fd, char path[PATH_MAX]);

/* Whose files beside a running one are taken for its own, and who has to be able to read them: the
 * running file's owner, or anybody where others could have written to the file or its folder.
 * False: the folder is a third user's. */
bool stranger_file_beside(const struct stat *running, const struct stat *folder,
			  struct file_search *search);

/* Whether the content of a file that somebody runs may leave the host: whoever may execute it may
 * read it. */
bool stranger_file_may_send(const struct stat *st);

/* errno of the above → a sentence's end. */
const char *stranger_file_why(int error);

#endif
