/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of one file; data_verify() is data_directory.h's. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_UPKEEP_VERIFY_H
#define SYMBOL_SERVER_STORE_SQLITE_UPKEEP_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

/* A database or a segment of the journal, by its name; damage: a sentence, the first there is. */
bool verify_is_damaged(const char *path, char *damage, size_t room);

#endif
