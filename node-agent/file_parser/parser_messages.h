/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent and its parser of strangers' files say to each other, over a socket of whole
 * messages (SOCK_SEQPACKET). Same program on both sides, so the memory layout is the format; the
 * agent trusts none of it. Questions are answered in their order. */
#ifndef NODE_AGENT_FILE_PARSER_PARSER_MESSAGES_H
#define NODE_AGENT_FILE_PARSER_PARSER_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/file_content.h"
#include "common/tls_symbol.h"
#include "node-agent/file_parser/jit/jit_chunk.h"
#include "node-agent/file_parser/memory_places.h"
#include "node-agent/file_parser/row_builder.h"
#include "node-agent/file_parser/runtime_symbols.h"

#define FILE_PARSER_NAME "farflame-parser" /* argv[0] of the child; also what ps shows */

enum {
	FILE_PARSER_SOCKET = 3, /* the child's descriptor */
	ROW_FAREWELL_MAX = 200,
};

enum row_message {
	PARSER_MESSAGE_PAGE, /* the rows of one page */
	PARSER_MESSAGE_FILE, /* what a file is: executable is the question's number, page 0 */
	PARSER_MESSAGE_TLS,  /* where a file has its thread's context: executable, page 0 */
	PARSER_MESSAGE_FAREWELL,
	PARSER_MESSAGE_MEMORY,  /* where it takes memory; as FILE */
	PARSER_MESSAGE_RUNTIME, /* whether it is a language's runtime; as TLS */
	PARSER_MESSAGE_JIT,     /* what it says of code: as FILE; page: enum jit_format */
	PARSER_MESSAGE_COUNT,
};

/* The file's descriptor comes with it, each time. */
struct row_question {
	uint32_t kind, executable, page;
	struct memory_functions functions; /* MEMORY: to be looked for as well */
	uint64_t offset, limit;            /* JIT: from where to where */
};

/* PAGE: followed by count rows and the rules. FILE: unless unreadable, by a struct row_file and
 * count segments. FAREWELL: by count bytes of text; the child ends, and this is why (none: it has
 * worked enough). MEMORY: by a struct row_memory and count places; failure 1: the file was not to
 * be read. TLS: by a struct tls_symbol. RUNTIME: by a struct runtime_symbols. JIT, unless failure
 * is 1: by a struct jit_head, count entries, rule_count lines and page bytes of text. */
struct row_answer {
	uint32_t kind, executable, page;
	uint8_t state, failure; /* FILE: enum row_file_state, 0 */
	uint16_t cpu_ms;        /* the child's, since it started */
	uint32_t count, rule_count;
};

enum row_file_state { ROW_FILE_UNREADABLE, ROW_FILE_RAW, ROW_FILE_ELF, ROW_FILE_STATES };

struct row_file {
	uint64_t entry;
	uint8_t has_go; /* functions of Go's */
	uint8_t gnu_length, gnu[BUILD_ID_MAX];
	uint8_t htlhash[FILE_HASH_BYTES];
	char go_id[ELF_IMAGE_GO_ID];
};

struct row_memory {
	uint32_t refused;
	uint8_t id_length, id[BUILD_ID_MAX];
};

struct row_segment {
	uint64_t offset, file_size, address, memory_size, is_executable;
};

enum row_sent {
	ROW_SENT,
	ROW_SENT_LATER, /* there is no room now */
	ROW_SENT_NEVER, /* the other side is gone */
};

/* --- the agent's side: never waits --- */

enum row_sent row_question_send(int socket, const struct row_question *question, int fd);

enum row_received {
	ROW_RECEIVED_NOTHING,
	ROW_RECEIVED_ANSWER,   /* checked: it can be put into maps and searched */
	ROW_RECEIVED_FILE,     /* checked */
	ROW_RECEIVED_MEMORY,   /* checked */
	ROW_RECEIVED_TLS,      /* checked */
	ROW_RECEIVED_RUNTIME,  /* checked */
	ROW_RECEIVED_JIT,      /* checked */
	ROW_RECEIVED_FAREWELL, /* with text in farewell */
	ROW_RECEIVED_WRONG,    /* not what a sound child sends */
	ROW_RECEIVED_END,
};

struct row_reply {
	uint16_t cpu_ms;
	union {
		struct page_rows rows; /* ANSWER */
		struct jit_chunk jit;  /* JIT, when readable */
	};
	uint32_t file; /* FILE, MEMORY, JIT: the question's number; TLS, RUNTIME: the
			* executable */
	bool is_readable;
	struct file_content content; /* FILE, when readable */
	struct memory_places places; /* MEMORY, the same */
	struct tls_symbol tls;       /* TLS */
	struct runtime_symbols runtime;
	char farewell[ROW_FAREWELL_MAX];
};

enum row_received row_reply_receive(int socket, struct row_reply *reply);

/* --- the child's side: waits --- */

/* False: the end, or, with errno EAGAIN, nothing came for as long as the socket's time limit says.
 * *fd is −1 when none came. */
bool row_question_receive(int socket, struct row_question *question, int *fd);
bool row_answer_send(int socket, const struct page_rows *rows, uint16_t cpu_ms);
/* content NULL: unreadable. */
bool row_file_send(int socket, uint32_t file, const struct file_content *content, uint16_t cpu_ms);
/* places NULL: unreadable. */
bool row_memory_send(int socket, uint32_t file, const struct memory_places *places,
		     uint16_t cpu_ms);
bool row_tls_send(int socket, uint32_t executable, const struct tls_symbol *tls, uint16_t cpu_ms);
bool row_runtime_send(int socket, uint32_t executable, const struct runtime_symbols *runtime,
		      uint16_t cpu_ms);
/* chunk NULL: unreadable. */
bool row_jit_send(int socket, uint32_t file, const struct jit_chunk *chunk, uint16_t cpu_ms);
void row_farewell_send(int socket, const char *text);

#endif
