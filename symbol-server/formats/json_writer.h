/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, written straight into a buffer: integers keep all their 64 bits, texts come out as valid
 * UTF-8 whatever goes in. Commas come by themselves. */
#ifndef SYMBOL_SERVER_FORMATS_JSON_WRITER_H
#define SYMBOL_SERVER_FORMATS_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"

struct json {
	struct buffer *out;
	bool needs_comma;
	bool is_ascii; /* texts go out without bytes above 0x7f: for headers */
};

static inline struct json json_start(struct buffer *out)
{
	return (struct json){.out = out};
}

/* '{' or '[', and their ends. */
void json_open(struct json *json, char bracket);
void json_close(struct json *json, char bracket);
/* "key": — the value comes next. key is ours and needs no escapes. */
void json_key(struct json *json, const char *key);

/* Quoted; control characters escaped, bytes that are no UTF-8 replaced by U+FFFD. */
void json_string(struct json *json, const char *text);
void json_uint(struct json *json, uint64_t number);
void json_int(struct json *json, int64_t number);
void json_share(struct json *json, double share); /* 0…1, six digits */

void json_key_string(struct json *json, const char *key, const char *text);
void json_key_uint(struct json *json, const char *key, uint64_t number);
void json_key_int(struct json *json, const char *key, int64_t number);
void json_key_flag(struct json *json, const char *key, bool flag);
/* Nine digits; what is not finite is null. */
void json_key_number(struct json *json, const char *key, double number);

#endif
