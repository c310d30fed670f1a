/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that tells the server which files this host runs and sends those it asks for, at a
 * limited rate, so that a long upload never holds back a report. */
#ifndef NODE_AGENT_SHIP_UPLOADER_H
#define NODE_AGENT_SHIP_UPLOADER_H

#include <stdbool.h>

#include "common/error.h"
#include "node-agent/network/network.h"
#include "node-agent/ship/ship.h"

struct uploader;

/* network is borrowed; from ship's options: token_file, upload_missing, rate. */
struct uploader *uploader_start(const struct ship_options *options, struct network *network,
				struct error *err);

/* Takes the module and its descriptor. */
void uploader_add(struct uploader *uploader, struct ship_module *module);

/* A report has arrived, after none had for a while or ever: nothing is announced before. */
void uploader_server_returned(struct uploader *uploader);

/* Adds the fields that are the uploader's. */
void uploader_counters(struct uploader *uploader, struct ship_counters *out);

/* After network_interrupt(), which ends what is under way; NULL too. False: a thread of it goes on
 * by itself. */
bool uploader_stop(struct uploader *uploader);

#endif
