/* SPDX-License-Identifier: Apache-2.0 */
/* When reports are not taken, and what their senders are told: ERROR_BUSY is a matter of waiting.
 */
#ifndef SYMBOL_SERVER_STORE_RULES_OVERLOAD_H
#define SYMBOL_SERVER_STORE_RULES_OVERLOAD_H

#include "symbol-server/store/samples.h"

struct store_load { /* 0 or NULL: the engine has nothing like it */
	bool is_closing;
	const struct error *refused;    /* nothing can be written, and why; kind 0: it can */
	uint64_t waiting, most_waiting; /* bytes of the open group */
	const char *waiting_for;
	/* Of --max-disk: what is left, UINT64_MAX where older can go; what is stored. */
	uint64_t max_disk, disk_left, disk;
	uint64_t unfolded, most_unfolded; /* bytes in memory */
	const struct error *fold_error;   /* why they stay there; kind 0: they do not */
};

bool store_is_overloaded(const struct store_load *load, struct error *err);

#endif
