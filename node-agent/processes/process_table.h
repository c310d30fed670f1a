/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs what: pid → identity, mappings, names; an address in a process → an address in a file.
 */
#ifndef NODE_AGENT_PROCESSES_PROCESS_TABLE_H
#define NODE_AGENT_PROCESSES_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bpf/unwind_rows.h"
#include "common/build_id.h"
#include "common/error.h"
#include "common/file_content.h"
#include "common/profile.h"
#include "node-agent/kernel/mapping_event.h"
#include "node-agent/processes/process_key.h"

/* A file that code runs from: the executable, a library, the vDSO, the kernel, a kernel module.
 * One per content; shared by all processes that map it. A mapped file that is not an ELF (a .NET or
 * PE image) is one too: no build-id but the htlhash, fd −1, addresses are file offsets. */
struct executable {
	uint32_t index; /* never reused while the agent runs; 0 is none */
	struct build_id gnu, htlhash;
	char go_id[128];
	const char *name; /* base name */
	const char *path; /* as the first process seen had it */
	enum address_base base;
	uint64_t start, limit; /* ELF addresses of its first executable segment */
	uint64_t file_offset;  /* of that segment */
	uint64_t entry;        /* ELF address of the entry point; 0 = none */
	/* Open for reading from first sight; −1: not an ELF, the kernel, or closed since no sample
	 * used it for a while or many others were: process_table_reopen(). */
	int fd;
	struct stat st;     /* stranger_file_stat() of what was open last */
	uint64_t sampled_s; /* of the events' clock: its last use by a sample, or its opening */
	/* Who had it mapped and where, when it was last looked for; tgid 0: not known. */
	uint32_t tgid;
	uint64_t mapping_start, mapping_end;
	bool has_go;     /* functions of Go's */
	bool is_raw;     /* not an ELF: addresses are file offsets, and there is no unwind table */
	bool is_private; /* nobody who runs it is known to be allowed to read it: it is not sent */
	bool is_announced; /* process_table_announced() was told so */
};

enum frame_place {
	PLACE_FILE,
	PLACE_ANONYMOUS, /* code that no file names: JIT memory; in the kernel BPF programs */
	PLACE_JAVA,      /* a frame of HotSpot's, by its word (bpf/frames.h): not looked up */
	PLACE_UPROBE,    /* the kernel's page by which return probes come */
	PLACE_NOT_CODE,  /* no executable mapping has the address */
	PLACE_UNKNOWN,   /* mappings unreadable, or the mapping's file was not to be had */
	PLACE_ASKED, /* the mapping's file is being read; process_table_files() counts answers */
};

struct located_frame {
	enum frame_place place;
	/* The generation (process_table_generation()) with which its mapping came where another one
	 * may have been; 0: it was always there. */
	uint32_t since;
	/* PLACE_FILE; borrowed: an executable that no sample used for a minute may be forgotten to
	 * make room. Keep its index, not the pointer. */
	const struct executable *executable;
	uint64_t address; /* ELF address, or relative to executable->base; ANONYMOUS: as it runs;
			     JAVA: which of the sample's user words it begins with */
};

/* Who reads strangers' files, where there is nothing to lose. */
#define FILE_READER_NUMBERS 0x80000000u
struct file_reader {
	/* What that file is, answered by process_table_file() with the number, 1 to
	 * FILE_READER_NUMBERS − 1. fd is borrowed. False: not now. */
	bool (*ask)(void *context, uint32_t number, int fd);
	void *context;
};

/* One program in one process, under a name of its own: whoever has the name knows the rest. */
struct process_lifetime {
	const char
		*id; /* PID.HASH of the rest but the parent, and of when it started on which boot */
	const char *command, *unit, *cgroup, *user, *parent; /* "" when unknown; a pid */
	const char *started;                                 /* UTC, as ISO 8601 has it */
	const char *program; /* what it runs; "": its executable's base name says it */
	uint32_t told;       /* the caller's: when it was told with a sample; 0: never */
};

struct process_info {                /* borrowed until the process is forgotten */
	const char *executable_path; /* "" when unknown */
	const char *container_id;    /* "" when none */
	const char *service; /* OTEL_SERVICE_NAME, else the systemd unit's name; "" when none */
	const char *pod, *namespace_; /* "" when none; the pod's uid, paths have no names */
	const char *name; /* the whole of a name that the kernel cuts; "" when it does not */
	struct process_lifetime *lifetime; /* NULL: nothing is known of it */
};

/* 0: the default. */
struct process_table_limits {
	size_t processes;   /* 32768; least recently sampled go first */
	size_t mappings;    /* 262144, over all processes */
	size_t executables; /* 4096; also the most descriptors kept open */
	uint32_t numbers;   /* 2^32 − 2, for executables while the agent runs */
};

/* Counters of this stage, in the order they are listed in process_table.c. */
struct process_table_counters {
	uint64_t maps_read, maps_failed, maps_backed_off;
	uint64_t files_opened, files_failed;
	uint64_t files_hung;       /* of these: their file system did not answer in time */
	uint64_t files_unnumbered; /* not known since all numbers are used up */
	uint64_t lost_limit;       /* mappings or processes refused by a limit */
};

struct process_table;

/* proc_root: "/proc", another directory in tests. */
struct process_table *process_table_new(const struct process_table_limits *limits,
					const char *proc_root, struct error *err);

/* The registry that it rests on, for other rooms; borrowed. */
struct processes *process_table_processes(struct process_table *table);

/* enum command_lines; until then they are read whole. */
void process_table_set_command_lines(struct process_table *table, unsigned what);
/* Until then files are read by the table itself: for tests. */
void process_table_set_reader(struct process_table *table, const struct file_reader *reader);
/* The reader's answer. content NULL: the file was not to be read; is_hung: because that took too
 * long. */
void process_table_file(struct process_table *table, uint32_t number,
			const struct file_content *content, bool is_hung);
/* How many answers there were: what was PLACE_ASKED may be another place since. */
uint32_t process_table_files(const struct process_table *table);

/* Events, as capture gives them, in time order. */
void process_table_exec(struct process_table *table, uint32_t tgid, uint64_t time_ns);
void process_table_fork(struct process_table *table, uint32_t tgid, uint32_t parent,
			uint64_t time_ns);
void process_table_exit(struct process_table *table, uint32_t tgid, uint64_t time_ns);
/* path and build_id may be empty. */
void process_table_mapping(struct process_table *table, const struct mapping_event *mapping);

/* Locates the frames of one sample's user part. words: as bpf/frames.h has them, leaf first; all
 * but the first are return addresses, the result is already one less for them, as OTLP senders do.
 * When is_interrupted_leaf is false the first is a return address too. Reads /proc/PID/maps when
 * the process is new or an address misses, with back-off. An entry of out is filled for each of
 * their frames, stack_frame_count() of them. Returns how many leading frames
 * lie in executable mappings; the caller cuts there. out[result].place says why: PLACE_NOT_CODE, or
 * PLACE_UNKNOWN when the mappings (or all of them) could not be read. Among the leading frames
 * PLACE_UNKNOWN is code of a file that was not to be had. */
size_t process_table_locate(struct process_table *table, const struct process_key *key,
			    uint64_t time_ns, const uint64_t *words, size_t count,
			    bool is_interrupted_leaf, struct located_frame *out);

/* The program's executable mappings, sorted, with their files' indices, as the kernel side walks by
 * them. Files that were not looked at yet are (at most 64 a call; EXECUTABLE_NONE for the rest and
 * for what is not to be had); what has no ELF addresses is EXECUTABLE_ANONYMOUS. Returns how many
 * of out there are; 0: nothing is known of the program, or it has ended. *generation: changes
 * whenever the answer would; 0: nothing is known. */
size_t process_table_mappings(struct process_table *table, const struct process_key *key,
			      uint64_t time_ns, struct process_mapping *out, size_t room,
			      uint32_t *generation);
/* The same of what the pid runs now, as events have told, before any sample of it: nothing is read
 * of /proc. */
size_t process_table_current_mappings(struct process_table *table, uint32_t tgid, uint64_t time_ns,
				      struct process_mapping *out, size_t room);
/* The same generation alone; 0: nothing is known. */
uint32_t process_table_generation(struct process_table *table, const struct process_key *key,
				  uint64_t time_ns);

/* Bytes of code at a run-time address, from its file. False: no file's mapping that is known has
 * all of them. */
bool process_table_read_code(struct process_table *table, const struct process_key *key,
			     uint64_t address, void *to, size_t length);

/* The kernel part: kernel image and modules by build-id, addresses relative to _text or .text.
 * PLACE_UNKNOWN where the kernel hides its addresses. Returns count: all of it is code. */
size_t process_table_locate_kernel(struct process_table *table, const uint64_t *addresses,
				   size_t count, bool is_interrupted_leaf,
				   struct located_frame *out);

/* Of the program a sample of that time belongs to. Never NULL; everything is "" for a process that
 * nothing is known of. */
const struct process_info *process_table_info(struct process_table *table,
					      const struct process_key *key, uint64_t time_ns);

/* By index, from 1; NULL: forgotten meanwhile, or none yet. */
const struct executable *process_table_executable(struct process_table *table, uint32_t index);
/* The index of an executable that was forgotten, each once; 0: no more. */
uint32_t process_table_take_forgotten(struct process_table *table);
/* Tries to have its fd open again; false: it is not. */
bool process_table_reopen(struct process_table *table, uint32_t index);
void process_table_announced(struct process_table *table, uint32_t index);

/* Forgets processes that are gone for a while; call about once a second. */
void process_table_sweep(struct process_table *table, uint64_t time_ns);

void process_table_counters(const struct process_table *table, struct process_table_counters *out);
void process_table_free(struct process_table *table);

/* The kernel image's code symbols as relative text: the header line "farflame-kallsyms 1", then
 * "<hex offset from _text> <type> <name>" per line, in kallsyms' order. Data, absolute and per-CPU
 * symbols, and what lies outside _text to _etext, are left out. out's limit bounds it.
 * ERROR_UNSUPPORTED where kptr_restrict hides addresses. May be called on any thread. */
struct buffer;
bool kernel_symbols_text(const char *proc_root, struct buffer *out, struct error *err);

/* The same for one module (without ".ko"): after the header a line "module <name>", then offsets
 * from its .text. */
bool kernel_module_symbols_text(const char *proc_root, const char *module, struct buffer *out,
				struct error *err);

#endif
