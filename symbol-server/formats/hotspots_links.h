/* SPDX-License-Identifier: Apache-2.0 */
/* The questions that show a change: paths of the API and of the page. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_HOTSPOTS_LINKS_H
#define SYMBOL_SERVER_FORMATS_HOTSPOTS_LINKS_H

#include "symbol-server/formats/hotspots_json.h"

struct hot_range { /* unix ms */
	int64_t from_ms, until_ms;
};

/* Of the process in that time. */
void hotspots_link_flamegraph(struct buffer *out, const struct hotspots_answer *answer,
			      uint32_t process, struct hot_range range);
void hotspots_link_page(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
			struct hot_range range);
/* Compared with another. */
void hotspots_link_diff(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
			struct hot_range range, struct hot_range base);

#endif
