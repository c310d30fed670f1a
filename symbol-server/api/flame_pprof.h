/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a flame request → pprof: uncut, with addresses; groups become labels. */
#ifndef SYMBOL_SERVER_API_FLAME_PPROF_H
#define SYMBOL_SERVER_API_FLAME_PPROF_H

#include "symbol-server/api/flame_request.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/pprof.h"

/* answer as for other formats, without a tree; what its accounting points to is filled here, when
 * the stacks were walked. What comes is to be finished into the same out. NULL: ERROR_MEMORY,
 * ERROR_LIMIT. */
struct pprof *flame_pprof(struct flame_request *flame, const struct flame_answer *answer,
			  struct accounting *accounting, struct buffer *out, struct error *err);

#endif
