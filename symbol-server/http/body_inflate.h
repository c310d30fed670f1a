/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies: gzip in one piece, which libdeflate inflates in half of zlib's time. */
#ifndef SYMBOL_SERVER_HTTP_BODY_INFLATE_H
#define SYMBOL_SERVER_HTTP_BODY_INFLATE_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/error.h"

/* Appends the inflated content of one or more gzip members; as gzip_inflate(), which also finds the
 * words for what is wrong. */
bool body_inflate(struct bytes body, struct buffer *out, struct error *err);

#endif
