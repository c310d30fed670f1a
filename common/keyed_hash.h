/* SPDX-License-Identifier: Apache-2.0 */
/* A hash for tables of keys that a stranger chooses: SipHash-2-4 under a secret of this process, so
 * nobody can choose keys that fall together. hash_bytes() has such keys for every seed. Another one
 * in every process: not for what is stored or sent. Thread-safe. */
#ifndef COMMON_KEYED_HASH_H
#define COMMON_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

/* before: a number that is hashed in front of the bytes; the hash so far, where there are several
 * parts. */
uint64_t keyed_hash(const void *bytes, size_t length, uint64_t before);

/* The same under a key that is known. */
uint64_t keyed_hash_of(const uint64_t key[2], const void *bytes, size_t length, uint64_t before);

#endif
