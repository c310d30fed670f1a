/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the modules of a batch on to the symbolizer, each once: a report names hundreds, nearly
 * all of them known. Thread-safe. */
#ifndef SYMBOL_SERVER_API_KNOWN_MODULES_H
#define SYMBOL_SERVER_API_KNOWN_MODULES_H

#include "symbol-server/api/api.h"

enum { KNOWN_MODULES_MAX = 1 << 17 }; /* then forgotten all at once and learnt anew */

struct known_modules *known_modules_new(struct error *err);
void known_modules_free(struct known_modules *known);

void known_modules_meet(struct api *api, const struct sample_batch *batch);

#endif
