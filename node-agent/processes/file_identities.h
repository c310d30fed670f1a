/* SPDX-License-Identifier: Apache-2.0 */
/* Which executable a file is. One that was seen before is known again by its stat(2) fields; of any
 * other the reader is asked, which has nothing to lose, and the answer comes later: no byte of a
 * stranger's file is read here, and none is waited for: it is opened by kernel/stranger_reader.h.
 */
#ifndef NODE_AGENT_PROCESSES_FILE_IDENTITIES_H
#define NODE_AGENT_PROCESSES_FILE_IDENTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/file_content.h"
#include "node-agent/processes/executables.h"

struct file_identities;

/* limit: most files that are remembered. executables: borrowed. */
struct file_identities *file_identities_new(size_t limit, struct executables *executables,
					    struct error *err);
void file_identities_free(struct file_identities *identities);

/* Who reads files. Without one they are read at once, here: for tests, and tools of our own. */
void file_identities_set_reader(struct file_identities *identities,
				const struct file_reader *reader);

enum file_found {
	FILE_FOUND,
	FILE_NOT_CODE, /* a file that is not an ELF and may change: a JIT's memfd */
	FILE_OTHER,    /* another build-id than expected */
	FILE_FAILED,   /* not a regular file, unreadable, or no room */
	FILE_ASKED,    /* not known yet */
};

/* path_fd may be an O_PATH descriptor and stays the caller's; the file is opened for reading only
 * when its content is not known yet. expected: the build-id it must have, or NULL or length 0. A
 * file that is not an ELF but has a name (a .NET or PE image) is an executable whose addresses are
 * file offsets and whose fd is −1. is_private: nobody who runs it is known to be allowed to read
 * it. ASKED: *asked names the question; 0: not even asked, too much is already. */
enum file_found file_identities_find(struct file_identities *identities, int path_fd,
				     const char *path, bool is_private,
				     const struct build_id *expected, struct executable_ref *found,
				     uint32_t *asked);

/* The same of a file that is known by those stat(2) fields, and open; false: it has to be looked at
 * by file_identities_find(). */
bool file_identities_find_open(struct file_identities *identities, const struct stat *st,
			       const struct build_id *expected, struct executable_ref *found);

/* What became of a question. FAILED: also when that was long ago. */
enum file_found file_identities_outcome(const struct file_identities *identities, uint32_t asked,
					const struct build_id *expected,
					struct executable_ref *found);

/* The reader's answer. content NULL: it was not to be read; is_hung: because that took too long. */
void file_identities_answer(struct file_identities *identities, uint32_t asked,
			    const struct file_content *content, bool is_hung);
/* How many answers there were. */
uint32_t file_identities_answered(const struct file_identities *identities);

/* Opens an executable's file again when the descriptor was closed and the mapping that it was last
 * seen by, or its path in our own root, still has that very file. False: there is none, or that was
 * so seconds ago. */
bool file_identities_reopen(struct file_identities *identities, const char *proc_root,
			    uint32_t index);

struct file_identities_counters {
	uint64_t opened; /* files read and hashed */
	uint64_t failed;
	uint64_t hung; /* of these: their file system did not answer */
};
const struct file_identities_counters *
file_identities_counters(const struct file_identities *identities);

#endif
