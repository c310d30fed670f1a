/* SPDX-License-Identifier: Apache-2.0 */
/* uid → name, as /etc/passwd of the agent's own root has it: no directory service is asked, which
 * might not answer. For the main thread. */
#ifndef NODE_AGENT_PROCESSES_USER_NAMES_H
#define NODE_AGENT_PROCESSES_USER_NAMES_H

#include <sys/types.h>

enum { USER_NAME_ROOM = 33 };

/* The number where there is no name. */
void user_name_of(uid_t uid, char out[USER_NAME_ROOM]);

#endif
