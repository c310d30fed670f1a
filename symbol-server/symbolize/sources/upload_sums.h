/* SPDX-License-Identifier: Apache-2.0 */
/* A checksum beside each uploaded file: FOLDER/KIND.sum with a line "CRC BYTES CHECK" per content,
 * CRC-32C of the file and of the line's start as 8 hex digits. It is written before the file takes
 * its name and keeps the line of the one it replaces, so that a crash between leaves a line that
 * fits. Files of earlier versions have none. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOAD_SUMS_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOAD_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

#define UPLOAD_SUM ".sum" /* ends the name of a file's checksums */

struct upload_sum {
	uint64_t bytes;
	uint32_t crc; /* CRC-32C of all of them */
};

enum upload_state {
	UPLOAD_INTACT,
	UPLOAD_UNKNOWN, /* nothing says what it should be */
	UPLOAD_DAMAGED,
};

/* On disk before it returns. name: the file's, below directory. */
bool upload_sum_write(int directory, const char *name, const struct upload_sum *sum,
		      struct error *err);
/* Reads all of fd, which is open as name. */
enum upload_state upload_sum_compare(int directory, const char *name, int fd);
void upload_sum_remove(int directory, const char *name);

struct uploads_report {
	unsigned files, damaged, unknown;
};
/* All of cache_directory/uploads, a line on out per damaged file and one for the rest. No uploads
 * are none. deletes: the damaged ones, their checksums too. False: it cannot be read. */
bool uploads_verify(const char *cache_directory, bool deletes, FILE *out,
		    struct uploads_report *report, struct error *err);

#endif
