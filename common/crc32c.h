/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as iSCSI (RFC 3720 §12.1) and ext4 have it. */
#ifndef COMMON_CRC32C_H
#define COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Start with crc 0; the result of one run is the start of the next. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
