/* SPDX-License-Identifier: Apache-2.0 */
/* Files that code runs from, one entry per content and owner, with a descriptor from first sight
 * until no sample has used it for some seconds: it keeps the file system busy. The hash does not
 * cover all of a file: what one user's file says never serves another's, nor root's; only files
 * that root alone may write are one wherever they lie. */
#ifndef NODE_AGENT_PROCESSES_EXECUTABLES_H
#define NODE_AGENT_PROCESSES_EXECUTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/build_id.h"
#include "common/elf_image.h"
#include "common/error.h"
#include "node-agent/processes/process_table.h"

struct executables;

/* Which entry: its slot, and the index that tells a later guest of the same slot apart. index 0:
 * none. */
struct executable_ref {
	uint32_t slot, index;
};

/* limit: most entries. Descriptors are fewer when RLIMIT_NOFILE leaves fewer. */
struct executables *executables_new(size_t limit, struct error *err);
void executables_free(struct executables *executables);

/* The last number for a new entry, before all are used up; unnumbered: how many got none since. */
void executables_set_last_number(struct executables *executables, uint32_t last);
uint64_t executables_unnumbered(const struct executables *executables);

/* For "least used": seconds of the events' clock; entries handed out now count as used now. */
void executables_set_time(struct executables *executables, uint64_t time_ns);

uint32_t executables_time(const struct executables *executables); /* the seconds of that */

/* What a new entry is made of. */
struct executable_content {
	const char *name, *path;       /* name NULL: the path's last part */
	const struct elf_image *image; /* NULL: the kernel, or raw */
	struct build_id gnu, htlhash;
	enum address_base base;
	uint64_t owner;  /* executables_owner() */
	uint64_t limit;  /* without image */
	bool is_raw;     /* no ELF: addresses are file offsets, no descriptor is kept */
	bool is_private; /* nobody who runs it is known to be allowed to read it */
};
/* Who may have written a file with those stat(2) fields. */
uint64_t executables_owner(const struct stat *st);
/* The entry of that content, made when new. fd: taken, −1: none. False: no room, memory or number.
 */
bool executables_add(struct executables *executables, const struct executable_content *content,
		     int fd, struct executable_ref *found);
/* Closes what no sample used for EXECUTABLE_IDLE_S; about once a second. The vDSO stays open. */
enum { EXECUTABLE_IDLE_S = 10 };
void executables_close_idle(struct executables *executables);
/* Whether it may be tried again to open one; false within some seconds of the last time. */
bool executables_may_reopen(struct executables *executables, uint32_t index,
			    struct executable_ref *ref);
/* The same file again, for an entry whose descriptor was closed. Takes fd. */
void executables_keep_open(struct executables *executables, struct executable_ref ref, int fd);

/* The entry with that GNU build-id, of a file that root alone may write. False also when contents
 * with different segments carry the id. */
bool executables_find_gnu(struct executables *executables, const struct build_id *gnu,
			  struct executable_ref *found);

/* The kernel (name "vmlinux") or a module: found again by id, name and base. */
bool executables_add_kernel(struct executables *executables, const char *name,
			    const struct build_id *gnu, enum address_base base, uint64_t limit,
			    struct executable_ref *found);

/* The vDSO of this very process, as all others of its class have it. false: there is none. */
bool executables_add_vdso(struct executables *executables, struct executable_ref *found);

/* NULL when it was forgotten. Counts as a use. */
struct executable *executables_get(struct executables *executables, struct executable_ref ref);
struct executable *executables_by_index(struct executables *executables, uint32_t index);
/* Of a file that root alone may write. */
bool executables_is_trusted(struct executables *executables, struct executable_ref ref);
/* The index of one that was forgotten, each once; 0: no more. */
uint32_t executables_take_forgotten(struct executables *executables);
/* It is handed over; executable.is_announced says so from now on. */
void executables_announced(struct executables *executables, uint32_t index);

/* File offset → address in the entry's own terms. False: no segment has it. */
bool executables_address(struct executables *executables, struct executable_ref ref,
			 uint64_t file_offset, uint64_t *address);

/* What to add to file offsets of a mapping of that part of the file: for its executable segment,
 * else for any. False: none lies there, executable ones that differ, or addresses are file offsets.
 */
bool executables_shift(struct executables *executables, struct executable_ref ref,
		       uint64_t file_offset, uint64_t length, uint64_t *shift);

/* Entries that found no room. */
uint64_t executables_refused(const struct executables *executables);

#endif
