/* SPDX-License-Identifier: Apache-2.0 */
/* The path under which the running program executes itself again. /proc/self/exe always works, but a
 * process started by it is called "exe" in every list of processes, our own profiles among them. */
#ifndef COMMON_SELF_PATH_H
#define COMMON_SELF_PATH_H

#include <stddef.h>

/* Fills path with the program's own path when that is still the same file (an upgrade may have
 * replaced it), else with "/proc/self/exe"; returns path. room: at least 16 bytes. */
const char *self_path(char *path, size_t room);

#endif
