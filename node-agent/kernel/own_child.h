/* SPDX-License-Identifier: Apache-2.0 */
/* Children that are this program again, with one socket to the agent: the parser of strangers'
 * files, the reader of their memory and the one that speaks to the network. */
#ifndef NODE_AGENT_KERNEL_OWN_CHILD_H
#define NODE_AGENT_KERNEL_OWN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

enum { OWN_CHILD_SOCKET = 3 }; /* the child's descriptor */

/* name: argv[0], by which main() knows the child. A group of its own, so that a terminal's signals
 * are the agent's alone; environment NULL: none; of our descriptors only the socket, which stays
 * the caller's. 0, or errno. */
int own_child_start(const char *name, int socket, char **environment, pid_t *child);

/* Where memory is short it is ended before the agent, which starts another (proc(5),
 * oom_score_adj). Done by own_child_start(). */
void own_child_goes_first(pid_t child);

/* One message with at most one descriptor, both ways. */
bool own_child_send(int socket, int fd);
/* 1: there was one; 0: its end; −1: errno. *fd: −1 without one. */
int own_child_receive(int socket, int *fd);

/* It neither runs nor waits for a CPU: it is held by something. */
bool own_child_sleeps(pid_t child);

#endif
