/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SYMBOL_SERVER_FORMATS_ACCOUNTING_JSON_H
#define SYMBOL_SERVER_FORMATS_ACCOUNTING_JSON_H

#include "symbol-server/flamegraph/accounting.h"
#include "symbol-server/formats/json_writer.h"

enum accounting_detail { ACCOUNTING_WHOLE, ACCOUNTING_WITHOUT_MODULES, ACCOUNTING_WITHOUT_REASONS };

/* {"value":…,…} */
void accounting_json(struct json *json, const struct accounting *accounting,
		     enum accounting_detail detail);

#endif
