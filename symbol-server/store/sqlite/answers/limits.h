/* SPDX-License-Identifier: Apache-2.0 */
/* What a query may take, said once for all kinds of questions. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_LIMITS_H
#define SYMBOL_SERVER_STORE_SQLITE_LIMITS_H

#include "symbol-server/store/samples.h"

int64_t limits_now_ms(void); /* does not jump */

/* Whether somebody waits for the answer and its limits allow so much; else ERROR_LIMIT, ERROR_BUSY.
 */
bool limits_allow(const struct samples_query *query, int64_t started_ms, uint64_t rows,
		  uint64_t bytes, struct error *err);

#endif
