/* SPDX-License-Identifier: Apache-2.0 */
/* Executables that samples came from, handed to ship once each, with what the server may ask for:
 * the file itself, or for the kernel and its modules their symbols as text. */
#ifndef NODE_AGENT_REPORT_MODULES_H
#define NODE_AGENT_REPORT_MODULES_H

#include <stdbool.h>

#include "common/error.h"
#include "node-agent/processes/process_table.h"

struct module_announcer;
struct ship;

/* The table is borrowed. with_content false: build-ids are announced, nothing can be sent. */
struct module_announcer *module_announcer_new(struct process_table *table, bool with_content,
					      struct error *err);

/* A sample has a frame in that executable. Cheap for those that were handed over. */
void module_announcer_saw(struct module_announcer *announcer, const struct executable *executable);

/* Hands over what was seen since the last time and never before; again and again a file that may
 * not be sent yet. */
void module_announcer_run(struct module_announcer *announcer, struct ship *ship);

void module_announcer_free(struct module_announcer *announcer);

#endif
