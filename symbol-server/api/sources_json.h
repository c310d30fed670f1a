/* SPDX-License-Identifier: Apache-2.0 */
/* Where files of modules are asked for, as members of an answer. */
#ifndef SYMBOL_SERVER_API_SOURCES_JSON_H
#define SYMBOL_SERVER_API_SOURCES_JSON_H

#include "symbol-server/formats/json_writer.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

/* "debuginfod": who is asked, in order, and who does not answer. */
void sources_json_servers(struct json *json, struct symbol_sources *sources);

#endif
