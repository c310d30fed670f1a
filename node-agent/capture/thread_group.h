/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process still has a thread that runs on. */
#ifndef NODE_AGENT_CAPTURE_THREAD_GROUP_H
#define NODE_AGENT_CAPTURE_THREAD_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* false: the process is gone, or each of its threads has begun to exit: the kernel reports an exit
 * while the thread is still listed, and a traced one stays so until its tracer has waited. A
 * process with very many exiting threads counts as living; each of them reports again. */
bool thread_group_lives(uint32_t tgid);

#endif
