/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent for a module, found and opened by a thread that has the agent's rights and never
 * reads what a server said: the thread that hands it on has neither the right to open it nor to
 * read the kernel's symbols. */
#ifndef NODE_AGENT_SHIP_UPLOAD_FILE_H
#define NODE_AGENT_SHIP_UPLOAD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "node-agent/ship/ship.h"

struct upload_file {
	int fd;             /* −1: it is bytes */
	bool is_debug_file; /* else the module's own */
	uint32_t refused;   /* files that their readers' rights kept here */
	struct buffer bytes;
	uint64_t length;
};

struct file_opener;

struct file_opener *file_opener_start(struct error *err);
/* A better debug file than the module's own, that one, or bytes made for it, within half a minute.
 * The module's descriptor stays its own. One thread's. False: there is nothing to send, or
 * ERROR_BUSY: it is interrupted, or a file system keeps the thread. upload_file_release() in both
 * cases. */
bool file_opener_open(struct file_opener *opener, const struct ship_module *module,
		      struct upload_file *file, struct error *err);
void upload_file_release(struct upload_file *file);

/* Who waits gets ERROR_BUSY, now and from now on. */
void file_opener_interrupt(struct file_opener *opener);
/* Nobody waits any more; NULL too. False: its thread goes on by itself, with what
 * makes a module's bytes. */
bool file_opener_stop(struct file_opener *opener);

#endif
