/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is this program again. */
#ifndef COMMON_OWN_PROGRAM_H
#define COMMON_OWN_PROGRAM_H

#include <spawn.h>
#include <sys/types.h>

/* arguments[0] is what lists of processes call it. A group of its own, so that a terminal's signals
 * are its parent's alone; no signal blocked or ignored; what becomes of descriptors is the caller's
 * (posix_spawn_file_actions_adddup2(3)). 0, or errno. */
int own_program_start(char *const *arguments, char *const *environment,
		      const posix_spawn_file_actions_t *actions, pid_t *child);

#endif
