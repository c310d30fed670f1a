/* SPDX-License-Identifier: Apache-2.0 */
/* --store clickhouse=URL: http[s]://[user[:password]@]host[:port][/database][?cluster=NAME]
 * [&password-file=PATH]. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_ADDRESS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_ADDRESS_H

#include <stdbool.h>

#include "common/error.h"

enum { CLICKHOUSE_NAME_MAX = 64 };

struct clickhouse_address {
	char server[300];                   /* http://host:8123, for messages too */
	char user[128], password[256];      /* never in a message */
	char database[CLICKHOUSE_NAME_MAX]; /* "farflame" when the URL has none */
	char cluster[CLICKHOUSE_NAME_MAX];  /* "": none */
	char password_file[1024];           /* "": none; else its first line was read */
};

/* Reads the password's file. ERROR_OPTION; the sentence does not hold the URL. */
bool clickhouse_address_parse(const char *url, struct clickhouse_address *address,
			      struct error *err);

#endif
