/* SPDX-License-Identifier: Apache-2.0 */
/* The files a module's table can be made from, wherever they come from, and what is in each. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_FILES_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_FILES_H

#include "symbol-server/symbolize/symbolizer_state.h"

enum {
	FILES_MAX = 16, /* of one module that are looked at */
	EXTRAS_MAX = 1000,
};

/* One file of the module and what is in it. */
struct candidate {
	int fd;
	const char *source; /* "upload", "directory", a server's URL */
	bool is_elf, has_debug_info, has_symtab, has_pclntab, has_dynsym, is_split;
	bool has_code; /* its bytes: what names stubs of the PLT */
	uint64_t bytes;
	char link[256]; /* .gnu_debuglink's name and checksum; "": none */
	uint32_t link_crc;
	enum candidate_answer answer;
	char detail[300];
};

struct module_files {
	struct candidate files[FILES_MAX];
	size_t count;
	uint64_t fingerprint; /* changes when other files come */
	uint32_t upload_ms, directory_ms;
};

/* What the debug information of one candidate needs besides itself. */
struct extra_files {
	int fds[EXTRAS_MAX];
	size_t count;
	struct build_id alt; /* a dwz file that is not here; length 0: none is missing */
	uint64_t fingerprint;
};

/* Uploads and directories; downloaded (−1: none) with its url is taken over. */
void files_find(struct symbolizer *symbolizer, const struct build_id *id, int downloaded,
		const char *url, struct module_files *files);
void files_close(struct module_files *files);

/* The count-th best candidate for debug information, or for names besides it; NULL: no more. */
struct candidate *files_debug(struct module_files *files, size_t number);
struct candidate *files_names(struct module_files *files, size_t number);
/* The first one with the code itself, or NULL. */
struct candidate *files_code(struct module_files *files);
/* A kallsyms text, or NULL. */
struct candidate *files_text(struct module_files *files);

/* Asks the worker what the candidate needs and opens what is here of it; alt_downloaded (−1: none)
 * is what a server had. False: the worker could not read it, or the server stops. */
bool files_find_extras(struct symbolizer *symbolizer, const struct build_id *id,
		       struct module_files *files, const struct candidate *candidate,
		       int alt_downloaded, struct extra_files *extras, struct error *err);
void files_close_extras(struct extra_files *extras);

/* Stores what the sources on this machine had. */
void files_report(struct symbolizer *symbolizer, const struct build_id *id,
		  const struct module_files *files);

#endif
