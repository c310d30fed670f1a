/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/program_name.h"

#include <string.h>

#include "node-agent/processes/command_line.h"
#include "node-agent/processes/interpreters.h"
#include "node-agent/processes/printed_text.h"

enum { NESTED_MAX = 4 }; /* ld.so python3 bundle exec … */

struct word {
	const char *at;
	size_t length;
};

/* Arguments that were not read yet; of a title its words. */
struct words {
	const char *at, *end;
	char separator;
};

static bool next(struct words *words, struct word *word)
{
	const char *stop;

	while (words->separator == ' ' && words->at < words->end && *words->at == ' ')
		words->at++;
	if (words->at >= words->end)
		return false;
	stop = memchr(words->at, words->separator, (size_t)(words->end - words->at));
	word->at = words->at;
	word->length = (size_t)((stop ? stop : words->end) - words->at);
	words->at += word->length + 1;
	return true;
}

static bool is(struct word word, const char *text)
{
	return word.length == strlen(text) && !memcmp(word.at, text, word.length);
}

static struct word base_of(struct word path)
{
	const char *slash;

	while (path.length > 1 && path.at[path.length - 1] == '/')
		path.length--;
	slash = memrchr(path.at, '/', path.length);
	if (slash)
		path = (struct word){slash + 1, path.length - (size_t)(slash + 1 - path.at)};
	return path;
}

/* --- what is written --- */

static void put(struct printed_text *name, struct word word)
{
	printed_text_put(name, word.at, word.length);
}

static bool put_word(struct printed_text *name, struct word word)
{
	if (!word.length || is(word, ".") || is(word, ".."))
		return false;
	if (name->length)
		put(name, (struct word){" ", 1});
	put(name, word);
	return true;
}

/* Instead of what was begun. */
static bool put_alone(struct printed_text *name, struct word word)
{
	name->length = 0, name->is_cut = false;
	return put_word(name, word);
}

static struct word text_word(const char *text)
{
	return (struct word){text, strlen(text)};
}

/* A module, a class, a command: neither a URL nor an assignment. */
static bool put_symbol(struct printed_text *name, struct word word)
{
	return !memchr(word.at, '=', word.length) && !memmem(word.at, word.length, "://", 3) &&
	       put_word(name, word);
}

/* python3 of python3.11 */
static struct word without_minor(struct word name)
{
	const char *dot = memchr(name.at, '.', name.length);

	if (dot && dot > name.at && dot[-1] >= '0' && dot[-1] <= '9')
		name.length = (size_t)(dot - name.at);
	return name;
}

/* bash /dev/fd/63: a pipe, or what has no name */
static bool is_descriptor(struct word path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/", "/dev/std"};

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (path.length > strlen(folders[i]) &&
		    !memcmp(path.at, folders[i], strlen(folders[i])))
			return true;
	return false;
}

/* Of a URL neither who asks nor what for; an assignment may set anything. */
static bool put_file(struct printed_text *name, struct word file)
{
	const char *scheme = memmem(file.at, file.length, "://", 3);

	if (scheme) {
		const char *stop;

		file.length -= (size_t)(scheme + 3 - file.at);
		file.at = scheme + 3;
		if (!memchr(file.at, '/', file.length))
			return false;
		for (stop = file.at; stop < file.at + file.length; stop++)
			if (*stop == '?' || *stop == '#')
				file.length = (size_t)(stop - file.at);
	}
	if (is_descriptor(file))
		return false;
	file = base_of(file);
	return !memchr(file.at, '=', file.length) && put_word(name, file);
}

/* --- what is read --- */

struct run { /* one interpreter and what it is told */
	const struct interpreter *of;
	struct word shown; /* what it is called where it runs code */
	struct words words;
	unsigned depth;
};

static bool put_run(struct printed_text *name, struct run *run);

/* A script that reads arguments as an interpreter does. */
static bool put_script(struct printed_text *name, struct run *run, struct word script)
{
	const struct word base = base_of(script);
	const struct interpreter *of = interpreter_find(base.at, base.length);
	struct run inner = {of, base, run->words, run->depth + 1};

	if (!of || !of->is_script || inner.depth >= NESTED_MAX)
		return put_file(name, script);
	inner.shown = (struct word){of->names, strcspn(of->names, " ")};
	return put_run(name, &inner) || put_alone(name, inner.shown);
}

/* A program as if it had been executed. */
static bool put_program(struct printed_text *name, struct run *run, struct word program)
{
	const struct word base = base_of(program);
	struct run inner = {interpreter_find(base.at, base.length), base, run->words,
			    run->depth + 1};

	if (!inner.of || inner.depth >= NESTED_MAX)
		return put_file(name, program);
	if (put_run(name, &inner))
		return true;
	name->length = 0, name->is_cut = false;
	return put_file(name, program);
}

static bool has_ending(struct word word)
{
	static const char *const endings[] = {".js",  ".ts",  ".mjs", ".cjs", ".jsx",
					      ".tsx", ".mts", ".cts", ".dll", ".exe",
					      ".rb",  ".jar", ".war", ".java"};

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		const size_t length = strlen(endings[i]);

		if (word.length > length &&
		    !memcmp(word.at + word.length - length, endings[i], length))
			return true;
	}
	return false;
}

static bool is_file(struct word word)
{
	return has_ending(word) || memchr(word.at, '/', word.length);
}

/* com.acme.Main, module/com.acme.Main; of a jar or a source the file's name. */
static bool put_class(struct printed_text *name, struct word word)
{
	if (!word.length || has_ending(word) || *word.at == '/' || *word.at == '.')
		return put_file(name, word);
	return put_symbol(name, word);
}

/* The first argument that is no option; what an option before it says is said by *follow, with its
 * value in *word where it has one. False: nothing of that sort. */
static bool next_told(struct run *run, enum option_follow *follow, struct word *word, char *letter)
{
	bool is_unknown = false;

	while (next(&run->words, word)) {
		const bool may_be_option =
			word->length > 1 &&
			(*word->at == '-' ||
			 (*word->at == '+' && run->of->kind == INTERPRETER_SHELL));
		const char *value;

		*follow = FOLLOW_NOTHING;
		if (is(*word, "--"))
			return next(&run->words, word);
		if (*word->at == '@' && run->of->kind == INTERPRETER_JAVA) {
			is_unknown = true; /* what that file says of options */
			continue;
		}
		if (!may_be_option)
			return !is(*word, "-") && word->length &&
			       (!is_unknown || memchr(word->at, '.', word->length));
		*follow = interpreter_option(run->of, word->at, word->length, &value, letter);
		if (*follow == FOLLOW_CODE)
			return true;
		if (*follow == FOLLOW_END)
			return false;
		if (*follow == FOLLOW_PROGRAM && value)
			return word->length -= (size_t)(value - word->at), word->at = value, true;
		if (*follow == FOLLOW_PROGRAM)
			return next(&run->words, word);
		if ((*follow == FOLLOW_VALUE || (!memchr(word->at, '=', word->length) &&
						 command_line_is_secret(word->at, word->length))) &&
		    !next(&run->words, word))
			return false;
	}
	return false;
}

/* sh -c, python3 -c */
static bool put_code(struct printed_text *name, const struct run *run, struct word option,
		     char letter)
{
	const char letters[2] = {'-', letter};
	const char *equals = memchr(option.at, '=', option.length);

	put_word(name, without_minor(run->shown));
	if (letter)
		return put_word(name, (struct word){letters, 2});
	if (equals)
		option.length = (size_t)(equals - option.at);
	return put_word(name, option);
}

/* dotnet app.dll → app.dll; deno run a.ts → a.ts; npm run start, whole; bundle exec puma → puma */
static bool put_command(struct printed_text *name, struct run *run, struct word word)
{
	const enum option_follow follow = interpreter_word(run->of, word.at, word.length);
	const struct word first = word;
	enum option_follow unused;
	char letter;

	if (is_file(word))
		return put_file(name, word);
	if (!put_word(name, run->shown))
		return false;
	if (follow == FOLLOW_NOTHING || !next_told(run, &unused, &word, &letter) ||
	    unused == FOLLOW_CODE)
		return put_symbol(name, first);
	if (is_file(word) || follow == FOLLOW_PROGRAM) {
		name->length = 0, name->is_cut = false;
		return put_script(name, run, word);
	}
	put_word(name, first);
	put_symbol(name, word); /* or it stays npm run */
	return true;
}

/* The node's name before its host, else the module that -s starts. Elixir starts all by one. */
static bool put_beam(struct printed_text *name, struct run *run)
{
	struct word option, node = {"", 0}, started = {"", 0}, progname = {"", 0}, extra = {"", 0};
	const char *host;

	while (next(&run->words, &option)) {
		struct word *to = is(option, "-sname") || is(option, "-name") ? &node
				  : is(option, "-s") && !started.length       ? &started
				  : is(option, "-progname")                   ? &progname
				  : is(option, "-extra")                      ? &extra
									      : NULL;

		if (to && !next(&run->words, to))
			break;
	}
	host = memchr(node.at, '@', node.length);
	if (host)
		node.length = (size_t)(host - node.at);
	if (node.length)
		return put_symbol(name, node);
	if (started.length && !is(started, "elixir"))
		return put_symbol(name, started);
	if (extra.length && *extra.at != '-')
		return put_file(name, extra);
	progname = base_of(progname);
	return !is(progname, "erl") && put_symbol(name, progname);
}

/* "php-fpm: pool www" */
static bool put_pool(struct printed_text *name, const struct run *run)
{
	static const char mark[] = ": pool ";
	const struct word shown = text_word(run->of->names);
	const char *at = run->words.at;
	const size_t length = (size_t)(run->words.end - at);

	put_word(name, shown);
	if (length > shown.length + sizeof mark - 1 &&
	    !memcmp(at + shown.length, mark, sizeof mark - 1)) {
		struct word pool = {at + shown.length,
				    strnlen(at + shown.length, length - shown.length)};

		while (pool.at[pool.length - 1] == ' ')
			pool.length--;
		if (!memmem(pool.at, pool.length, "://", 3))
			put(name, pool);
	}
	return true;
}

/* What follows its own name. */
static bool put_run(struct printed_text *name, struct run *run)
{
	enum option_follow follow = FOLLOW_NOTHING;
	struct word word;
	char letter = '\0';

	if (run->of->kind == INTERPRETER_BEAM)
		return put_beam(name, run);
	if (run->of->kind == INTERPRETER_NAMED)
		return put_word(name, text_word("uwsgi"));
	if (run->of->kind == INTERPRETER_APPLETS || run->of->kind == INTERPRETER_POOL ||
	    !next_told(run, &follow, &word, &letter))
		return false;
	if (follow == FOLLOW_CODE)
		return put_code(name, run, word, letter);
	switch (run->of->kind) {
	case INTERPRETER_LOADER:
		return put_program(name, run, word);
	case INTERPRETER_JAVA:
		return put_class(name, word);
	case INTERPRETER_COMMAND:
		return put_command(name, run, word);
	default:
		return put_script(name, run, word);
	}
}

/* --- titles --- */

/* What a process called itself, over its arguments: "gunicorn: worker [app]", "npm run start",
 * "[celeryd: celery@host]", "node app.js". */
static bool put_title(struct printed_text *name, struct run *run, struct word title)
{
	struct words words = {title.at, title.at + title.length, ' '};
	const struct interpreter *of;
	struct word word;

	if (!next(&words, &word))
		return false;
	of = interpreter_find(base_of(word).at, base_of(word).length);
	run->words = words;
	if (of == run->of)
		return put_run(name, run);
	if (of && of->is_script)
		return put_script(name, run, word);
	while (word.length && strchr("[(", *word.at))
		word.at++, word.length--;
	while (word.length && strchr(":])", word.at[word.length - 1]))
		word.length--;
	return put_file(name, word);
}

/* Under the name of what it is to do; or that comes first. */
static bool put_applet(struct printed_text *name, struct run *run, struct word called)
{
	struct word applet = base_of(called);
	const struct interpreter *of = interpreter_find(applet.at, applet.length);

	if (of == run->of && (!next(&run->words, &applet) || *applet.at == '-'))
		return false;
	return put_program(name, run, applet);
}

static bool put_interpreter(struct printed_text *name, struct run *run)
{
	struct word called, base;

	if (run->of->kind == INTERPRETER_POOL)
		return put_pool(name, run);
	if (!next(&run->words, &called))
		return run->of->kind == INTERPRETER_NAMED && put_run(name, run);
	if (called.length > 1 && *called.at == '-') /* a login shell */
		called.at++, called.length--;
	if (run->of->kind == INTERPRETER_APPLETS)
		return put_applet(name, run, called);
	base = base_of(called);
	if (run->of->kind == INTERPRETER_SHELL)
		run->shown = base;
	if (interpreter_find(base.at, base.length) != run->of &&
	    (memchr(called.at, ' ', called.length) || run->words.at >= run->words.end) &&
	    run->of->kind != INTERPRETER_NAMED)
		return put_title(name, run, called);
	return put_run(name, run);
}

void program_name_write(const char *executable, const char *bytes, size_t length,
			char out[PROGRAM_NAME_ROOM])
{
	struct run run = {.shown = base_of(text_word(executable))};
	struct printed_text name = {.to = out, .room = PROGRAM_NAME_ROOM};

	while (length && !bytes[length - 1])
		length--;
	run.words = (struct words){bytes, bytes + length, '\0'};
	if (!run.shown.length)
		run.shown = base_of((struct word){bytes, strnlen(bytes, length)});
	run.of = interpreter_find(run.shown.at, run.shown.length);
	if (!run.of || !put_interpreter(&name, &run))
		put_alone(&name, base_of(*executable ? text_word(executable) : run.shown));
	printed_text_end(&name);
}
