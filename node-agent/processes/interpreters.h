/* SPDX-License-Identifier: Apache-2.0 */
/* How programs that run others read their arguments. Pure: one table. */
#ifndef NODE_AGENT_PROCESSES_INTERPRETERS_H
#define NODE_AGENT_PROCESSES_INTERPRETERS_H

#include <stdbool.h>
#include <stddef.h>

enum interpreter_kind {
	INTERPRETER_SCRIPT,  /* options, then a script's file */
	INTERPRETER_SHELL,   /* likewise, under several names */
	INTERPRETER_JAVA,    /* options, then a class */
	INTERPRETER_COMMAND, /* options, then a file or a word: dotnet app.dll, npm run start */
	INTERPRETER_BEAM,    /* Erlang's: options alone */
	INTERPRETER_POOL,    /* its title has a pool's name */
	INTERPRETER_APPLETS, /* it is what it is called */
	INTERPRETER_LOADER,  /* options, then a program */
	INTERPRETER_NAMED,   /* it has a name without its file's ending */
};

struct interpreter {
	enum interpreter_kind kind;
	/* Texts of words with spaces between: names of files, without a version. The first is
	 * shown where it is not the executable's. */
	const char *names;
	/* Options that do not stand alone, with what follows them. ':' a value; '?' a value that
	 * is attached to the letter, or none; '#' likewise, of digits; '!' code; '@' what is run;
	 * '.' nothing that names it. */
	const char *options;
	/* COMMAND: words that another one follows. ':' it belongs to the name; '@' it is what is
	 * run. */
	const char *words;
	bool joins_letters; /* -uc is -u -c */
	bool is_script;     /* other interpreters run it by that name */
};

/* NULL: it is none. */
const struct interpreter *interpreter_find(const char *name, size_t length);

enum option_follow {
	FOLLOW_NOTHING,
	FOLLOW_VALUE,   /* the next argument */
	FOLLOW_CODE,    /* likewise */
	FOLLOW_PROGRAM, /* likewise; attached: *value is not NULL */
	FOLLOW_END,     /* what comes names nothing */
};

/* What an argument that is an option has behind it. *letter: of several letters the one that
 * decides; else 0. */
enum option_follow interpreter_option(const struct interpreter *interpreter, const char *at,
				      size_t length, const char **value, char *letter);
/* Of a COMMAND's word: VALUE, PROGRAM or NOTHING. */
enum option_follow interpreter_word(const struct interpreter *interpreter, const char *at,
				    size_t length);

#endif
