/* SPDX-License-Identifier: Apache-2.0 */
/* The shared object the kernel maps into every process; it has no file, so this process' own copy
 * is made one. */
#ifndef NODE_AGENT_PROCESSES_VDSO_H
#define NODE_AGENT_PROCESSES_VDSO_H

/* A memfd with the vDSO's bytes, the caller's to close; −1: this kernel gives none. */
int vdso_open(void);

#endif
