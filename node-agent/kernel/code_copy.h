/* SPDX-License-Identifier: Apache-2.0 */
/* A code object of CPython's, copied from outside as the kernel side copies new ones
 * (bpf/runtime_copy.bpf.h). Waits for the process' memory as long as that is not served: for the
 * reader of strangers (stranger_reader.h) alone. */
#ifndef NODE_AGENT_KERNEL_CODE_COPY_H
#define NODE_AGENT_KERNEL_CODE_COPY_H

#include <stdbool.h>

#include "bpf/runtime_frames.h"

/* memory: /proc/PID/mem. Fills what told says of told->address, and what is there; the rest is
 * 0. False: it is not there, or has changed meanwhile. */
bool code_copy(int memory, const struct runtime_layout *layout, struct runtime_code_event *told);

#endif
