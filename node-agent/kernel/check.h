/* SPDX-License-Identifier: Apache-2.0 */
/* --check: one screen that says what this kernel and these privileges allow, and what to do about
 * the rest. */
#ifndef NODE_AGENT_CHECK_CHECK_H
#define NODE_AGENT_CHECK_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "node-agent/kernel/features.h"

/* Tries everything and prints. True: on-cpu profiling works here. */
bool check_run(FILE *out);

/* The printing alone. */
void check_print(const struct kernel_features *features, FILE *out);

#endif
