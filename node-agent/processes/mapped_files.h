/* SPDX-License-Identifier: Apache-2.0 */
/* Files as mappings name them (device, inode, build-id, path), one number each, and the way from
 * there to an executable. */
#ifndef NODE_AGENT_PROCESSES_MAPPED_FILES_H
#define NODE_AGENT_PROCESSES_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/executables.h"
#include "node-agent/processes/file_identities.h"
#include "node-agent/processes/mapping_set.h"

struct mapped_files;
struct process_directory;

/* What names a file; inode 0 or build_id length 0: not known. path is borrowed. */
struct mapped_file_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	struct build_id build_id;
	const char *path;
};

/* limit: most files that nobody maps any more but that are remembered. The others are borrowed. */
struct mapped_files *mapped_files_new(size_t limit, struct executables *executables,
				      struct file_identities *identities,
				      struct process_directory *directory, struct error *err);
void mapped_files_free(struct mapped_files *files);

#define MAPPED_FILE_NONE UINT32_MAX

/* The key's number, with one reference for the caller. MAPPED_FILE_NONE: no memory. */
uint32_t mapped_files_add(struct mapped_files *files, const struct mapped_file_key *key);
void mapped_files_keep(struct mapped_files *files, uint32_t file);
void mapped_files_drop(struct mapped_files *files, uint32_t file);

/* True: a content is known for the file, nothing needs to be opened in a hurry. */
bool mapped_files_is_known(struct mapped_files *files, uint32_t file);
/* And its executable's descriptor is there, if it is to have one. */
bool mapped_files_is_open(const struct mapped_files *files, uint32_t file);

/* Finds the executable of a MAPPING_FILE row. tgid and start_time_ns: a process that has it mapped;
 * start_time_ns 0: not known, then inode or build-id must agree. In this order: the process' own
 * file; what was found for the same inode before, or of root's files for the same build-id; the
 * path in our own root when inode and device or the build-id agree. Never a guess. Fills
 * executable, or makes the row MAPPING_ANONYMOUS when it is no file of code: FOUND. ASKED: it is
 * being read. Else it is not to be had, counted. */
enum file_found mapped_files_resolve(struct mapped_files *files, struct mapping *row, uint32_t tgid,
				     uint64_t start_time_ns);

uint64_t mapped_files_failed(const struct mapped_files *files);

#endif
