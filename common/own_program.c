/* SPDX-License-Identifier: Apache-2.0 */
#include "common/own_program.h"

#include <limits.h>
#include <signal.h>

#include "common/self_path.h"

int own_program_start(char *const *arguments, char *const *environment,
		      const posix_spawn_file_actions_t *actions, pid_t *child)
{
	char path[PATH_MAX];
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int failure;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	failure = posix_spawn(child, self_path(path, sizeof path), actions, &attributes, arguments,
			      environment);
	posix_spawnattr_destroy(&attributes);
	return failure;
}
