/* SPDX-License-Identifier: Apache-2.0 */
/* How many of the samples that come have a name for the function that ran, as far as it is known
 * when they come: what is fetched later names them too, but a fleet whose new builds have no
 * symbols anywhere shows here at once. */
#ifndef SYMBOL_SERVER_API_LEAF_NAMES_H
#define SYMBOL_SERVER_API_LEAF_NAMES_H

#include "symbol-server/api/api.h"

/* Counts the batch's samples into api->leaves_named and leaves_nameless. Thread-safe. */
void leaf_names_count(struct api *api, const struct sample_batch *batch);

#endif
