/* SPDX-License-Identifier: Apache-2.0 */
/* --import: a file of OTLP bytes, gzip or not, into the store. */
#ifndef SYMBOL_SERVER_API_IMPORT_H
#define SYMBOL_SERVER_API_IMPORT_H

#include <stdbool.h>

#include "symbol-server/api/api.h"

/* Logs one line about what came in. Returns when it is on disk. ERROR_SYSTEM, ERROR_FORMAT,
 * ERROR_LIMIT (256 MiB). */
bool api_import(struct api *api, const char *path, struct error *err);

#endif
