/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts both sides of a comparison have. */
#ifndef SYMBOL_SERVER_API_DIFF_HOSTS_H
#define SYMBOL_SERVER_API_DIFF_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/formats/diff_formats.h"
#include "symbol-server/store/samples.h"

struct diff_hosts {             /* of one side */
	struct diff_host *list; /* by name */
	uint32_t count, common;
	uint32_t *of_series; /* place in list; count: none */
};

/* Fills those of both sides. false: no memory. Release them in either case. */
bool diff_hosts_match(struct diff_hosts hosts[2], const struct samples_result *const results[2]);

/* Whether some, but not all are on both sides. */
bool diff_hosts_differ(const struct diff_hosts hosts[2]);

/* Of a series, which may have none: NULL. */
struct diff_host *diff_hosts_of(const struct diff_hosts *hosts, uint32_t series);

/* Those of one side alone first, the largest of them first. of_series holds no more. */
void diff_hosts_sort(struct diff_hosts *hosts);

void diff_hosts_release(struct diff_hosts *hosts);

#endif
