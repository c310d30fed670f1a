/* SPDX-License-Identifier: Apache-2.0 */
/* One table → command line, `key = value` file, --help, --print-config and the man page's options. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

enum option_type {
	OPTION_FLAG,	 /* bool; in a file: true or false */
	OPTION_UINT,	 /* uint32_t between minimum and maximum */
	OPTION_TEXT,	 /* const char *; the last one wins */
	OPTION_LIST,	 /* struct option_list; may be given again and again */
	OPTION_DURATION, /* int64_t milliseconds; <int>(ms|s|m|h|d), a bare number is refused */
	OPTION_SIZE,	 /* uint64_t bytes; <int>(K|M|G|T) in powers of 1024, or plain bytes */
	OPTION_CHOICE,	 /* uint32_t index into choices, written "a|b|c" */
	OPTION_LATER,	 /* named in the design, no function in this version: refused with a sentence */
};

struct option_list {
	const char **texts; /* borrowed from argv or kept by the options */
	size_t count;
};

struct option_row {
	const char *name; /* without the dashes; the key in a file */
	char letter;	  /* short form, or 0 */
	enum option_type type;
	size_t offset;	      /* offsetof in the program's options struct; unused for OPTION_LATER */
	uint64_t minimum, maximum; /* UINT, DURATION (ms), SIZE */
	const char *fallback; /* default as text, or NULL: false, none, empty */
	const char *argument; /* "HZ", "FILE", "auto|bpf|perf"; NULL for flags */
	const char *help;     /* one line; for OPTION_LATER the sentence that refuses it */
	bool command_line_only; /* --help, --check …: not in files, not in --print-config */
};

/* Rows end with a row whose name is NULL. --config FILE, --help, --version and --print-config are
 * added by this module. */
struct option_program {
	const char *name;    /* "farflame-agent" */
	const char *summary; /* one line under the usage */
	const char *version;
	const struct option_row *rows;
};

enum options_action { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_FAILED };

/* Fills values (the program's struct, zeroed by the caller): defaults, then --config FILE, then the
 * command line. OPTIONS_DONE: --help, --version or --print-config was answered on stdout, exit 0.
 * OPTIONS_FAILED: err holds a sentence that names the option, exit 2. Memory for file texts is kept
 * for the life of the process. */
enum options_action options_read(const struct option_program *program, int argc, char **argv,
				 void *values, struct error *err);

void options_help(const struct option_program *program, FILE *out);
void options_print_config(const struct option_program *program, const void *values, FILE *out);
/* The OPTIONS section of a man page (mdoc(7)), used by `farflame-* --help-man`, a hidden option. */
void options_man(const struct option_program *program, FILE *out);

/* "10s" → 10000. The rule of every duration in the product; a bare number is refused. */
bool duration_parse(const char *text, int64_t *ms, struct error *err);
/* "20G" → bytes. */
bool size_parse(const char *text, uint64_t *bytes, struct error *err);

#endif
