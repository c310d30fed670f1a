/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/interpreters.h"

#include <ctype.h>
#include <string.h>

/* From the manuals of Python 3.13, Node.js 22, OpenJDK 25, Ruby 3.3, Perl 5.38, PHP 8.3, bash 5.2,
 * R 4.3, Julia 1.10, Lua 5.4, Guile 3.0, Tcl 8.6, .NET 9, Mono 6.12, Deno 2, Bun 1.1, npm 10 and
 * glibc 2.41. */
static const struct interpreter interpreters[] = {
	{.kind = INTERPRETER_SCRIPT,
	 .names = "python pypy graalpy micropython",
	 .options = "-c! -m@ -W: -X: --check-hash-based-pycs:",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "node nodejs iojs",
	 .options = "-e! -p! -pe! --eval! --print! --run! -r: --require: --import: --loader: "
		    "--experimental-loader: -C: --conditions: --env-file: --env-file-if-exists: "
		    "--icu-data-dir: --inspect-port: --debug-port: --input-type: "
		    "--redirect-warnings: --report-dir: --report-directory: --report-filename: "
		    "--report-signal: --title: --trace-event-categories: "
		    "--trace-event-file-pattern: --diagnostic-dir: --cpu-prof-dir: "
		    "--cpu-prof-name: --cpu-prof-interval: --heap-prof-dir: --heap-prof-name: "
		    "--heap-prof-interval: --heapsnapshot-signal: "
		    "--heapsnapshot-near-heap-limit: --openssl-config: --tls-cipher-list: "
		    "--tls-keylog: --unhandled-rejections: --dns-result-order: "
		    "--max-http-header-size: --secure-heap: --secure-heap-min: "
		    "--test-name-pattern: --test-skip-pattern: --test-reporter: "
		    "--test-reporter-destination: --test-concurrency: --test-timeout: "
		    "--watch-path: --disable-warning: --experimental-default-type: "
		    "--localstorage-file: --v8-pool-size: --build-snapshot-config: "
		    "--experimental-sea-config:"},
	{.kind = INTERPRETER_JAVA,
	 .names = "java javaw",
	 .options = "-jar@ -m@ --module@ -cp: -classpath: --class-path: -p: --module-path: "
		    "--upgrade-module-path: --add-modules: --limit-modules: --add-reads: "
		    "--add-exports: --add-opens: --patch-module: --enable-native-access: "
		    "--illegal-native-access: --source: --describe-module: -d: --finalization:"},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "ruby jruby truffleruby",
	 .options = "-e! -r: -I: -C: -E: -F? -K? -T# -W# -x? -0# -i? --encoding: "
		    "--external-encoding: --internal-encoding: --enable: --disable: "
		    "--backtrace-limit:",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "perl",
	 .options = "-e! -E! -I: -M? -m? -i? -l# -0# -F? -x? -C# -d? -D? -V?",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "php php-cgi",
	 .options = "-r! -B! -R! -E! -S! -f@ -F@ --file@ --process-file@ --run! "
		    "--process-begin! --process-code! --process-end! --server! -c: -d: -t: -z: "
		    "--php-ini: --define: --docroot: --zend-extension: --rf: --rc: --re: --rz: "
		    "--ri:"},
	{.kind = INTERPRETER_POOL, .names = "php-fpm"},
	{.kind = INTERPRETER_SHELL,
	 .names = "bash dash sh zsh ksh ksh93 mksh ash hush yash fish",
	 .options = "-c! -s. -o: -O: +o: +O: --rcfile: --init-file: --emulate: -C: --command! "
		    "--init-command:",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "R",
	 .options = "-e! --file@ -f@ --args. -g: --gui: --encoding: -d: --debugger:"},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "Rscript littler",
	 .options = "-e!",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "julia",
	 .options = "-e! -E! --eval! --print! -m@ --module@ -L: --load: -t: --threads: -p: "
		    "--procs: --machine-file: -C: --cpu-target: -J: --sysimage: -H: --home:",
	 .joins_letters = true},
	{.kind = INTERPRETER_SCRIPT, .names = "lua luajit", .options = "-e: -l: -j? -O?"},
	{.kind = INTERPRETER_SCRIPT, .names = "guile", .options = "-c! -s@ -l: -e: -L: -C: -x:"},
	{.kind = INTERPRETER_SCRIPT, .names = "tclsh wish expect", .options = "-encoding: -c!"},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "mono mono-sgen mono-boehm",
	 .options = "--config: --assembly-loader: --attach: --llvm-path:"},
	{.kind = INTERPRETER_COMMAND,
	 .names = "dotnet",
	 .options = "--additionalprobingpath: --additional-deps: --depsfile: --runtimeconfig: "
		    "--fx-version: --roll-forward: --roll-forward-on-no-candidate-fx:",
	 .words = "exec@"},
	{.kind = INTERPRETER_COMMAND,
	 .names = "deno",
	 .options = "-c: --config: --import-map: --lock: --cert: --seed: -L: --log-level: --ext: "
		    "--location: --port: --host: --unstable-feature:",
	 .words = "run@ serve@ task:"},
	{.kind = INTERPRETER_COMMAND,
	 .names = "bun bunx",
	 .options = "-e! --eval! -p! --print! -c: --config: --cwd: -r: --preload: --env-file: -d: "
		    "--define: -l: --loader: --port: --tsconfig-override: --filter: -F:",
	 .words = "run: x:"},
	{.kind = INTERPRETER_COMMAND,
	 .names = "npm npm-cli.js",
	 .options = "--prefix: -C: -w: --workspace: --loglevel: --userconfig: --cache: "
		    "--registry: --script-shell:",
	 .words = "run: run-script: exec: x:",
	 .is_script = true},
	{.kind = INTERPRETER_COMMAND,
	 .names = "npx npx-cli.js",
	 .options = "-p: --package: -c! --call! -w: --workspace:",
	 .is_script = true},
	{.kind = INTERPRETER_COMMAND,
	 .names = "yarn yarn.js yarnpkg",
	 .options = "--cwd: --cache-folder: --registry:",
	 .words = "run: exec: workspace: dlx:",
	 .is_script = true},
	{.kind = INTERPRETER_COMMAND,
	 .names = "pnpm pnpm.cjs",
	 .options = "-C: --dir: -F: --filter: --loglevel: --reporter:",
	 .words = "run: exec: dlx:",
	 .is_script = true},
	{.kind = INTERPRETER_COMMAND,
	 .names = "bundle bundler",
	 .options = "--gemfile: -r: --retry:",
	 .words = "exec@",
	 .is_script = true},
	{.kind = INTERPRETER_SCRIPT,
	 .names = "ts-node ts-node-esm ts-node-script ts-node-transpile-only tsx babel-node",
	 .options = "-e! --eval! -p! --print! -r: --require: --import: -P: --project: "
		    "--tsconfig: -O: --compiler-options: --compilerOptions: -C: --compiler: -I: "
		    "--ignore: --cwd: --scope-dir: --env-file: --extensions: --presets: "
		    "--plugins: -x: -b:",
	 .is_script = true},
	{.kind = INTERPRETER_BEAM, .names = "beam beam.smp"},
	{.kind = INTERPRETER_APPLETS, .names = "busybox toybox coreutils"},
	{.kind = INTERPRETER_LOADER,
	 .names = "ld.so",
	 .options = "--library-path: --preload: --argv0: --audit: --inhibit-rpath: "
		    "--glibc-hwcaps-prepend: --glibc-hwcaps-mask:"},
	{.kind = INTERPRETER_NAMED, .names = "uwsgi uwsgi-core"},
};

/* ld-linux-x86-64.so.2, ld-musl-x86_64.so.1, ld-2.31.so */
static bool is_loader(const char *name, size_t length)
{
	return length > 3 && !memcmp(name, "ld-", 3) && memmem(name, length, ".so", 3);
}

/* "3.11", "-3.0", "3.13t", "3-dbg", "-2.1.0-beta3"; not the "2c" of lua2c. */
static bool is_version(const char *at, size_t length)
{
	bool may_be_letter = false;

	if (length && *at == '-')
		at++, length--;
	if (!length || !isdigit((unsigned char)*at))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (isdigit((unsigned char)at[i]))
			may_be_letter = false;
		else if (at[i] == '.' || at[i] == '-' || at[i] == '_')
			may_be_letter = true;
		else if (!islower((unsigned char)at[i]) ||
			 (!may_be_letter && at[i] != 't' && at[i] != 'd' && at[i] != 'm'))
			return false;
	}
	return true;
}

static bool is_name(const char *names, const char *name, size_t length)
{
	while (*names) {
		const size_t size = strcspn(names, " ");

		if (length >= size && !memcmp(names, name, size) &&
		    (length == size || is_version(name + size, length - size)))
			return true;
		names += size + (names[size] == ' ');
	}
	return false;
}

const struct interpreter *interpreter_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++)
		if (is_name(interpreters[i].names, name, length) ||
		    (interpreters[i].kind == INTERPRETER_LOADER && is_loader(name, length)))
			return &interpreters[i];
	return NULL;
}

/* The mark behind that word; 0: it is not among them. */
static char mark_of(const char *words, const char *word, size_t length)
{
	while (words && *words) {
		const size_t size = strcspn(words, " ");

		if (size == length + 1 && !memcmp(words, word, length))
			return words[length];
		words += size + (words[size] == ' ');
	}
	return '\0';
}

static enum option_follow follow_of(char mark)
{
	switch (mark) {
	case ':':
		return FOLLOW_VALUE;
	case '!':
		return FOLLOW_CODE;
	case '@':
		return FOLLOW_PROGRAM;
	case '.':
		return FOLLOW_END;
	default:
		return FOLLOW_NOTHING;
	}
}

/* -Wignore, -uc CODE, -Imdir: the first letter with something behind it decides. */
static enum option_follow letters_follow(const struct interpreter *interpreter, const char *at,
					 size_t length, const char **value, char *letter)
{
	for (size_t i = 1; i < length; i++) {
		const char word[2] = {at[0], at[i]};
		const char mark = mark_of(interpreter->options, word, sizeof word);
		const bool is_attached = i + 1 < length;

		while (mark == '#' && i + 1 < length && isdigit((unsigned char)at[i + 1]))
			i++;
		if (!mark || mark == '#')
			continue;
		*letter = at[i];
		if (mark == '@' && is_attached)
			*value = at + i + 1;
		/* A shell's letters after one with a value are letters: its value comes next. */
		if (mark == ':' && is_attached && interpreter->kind == INTERPRETER_SHELL)
			return memchr(at + i, 'c', length - i) ? FOLLOW_END : FOLLOW_VALUE;
		return mark == ':' && is_attached ? FOLLOW_NOTHING : follow_of(mark);
	}
	return FOLLOW_NOTHING;
}

enum option_follow interpreter_option(const struct interpreter *interpreter, const char *at,
				      size_t length, const char **value, char *letter)
{
	const char *equals = memchr(at, '=', length);
	const size_t name = equals ? (size_t)(equals - at) : length;
	const char mark = mark_of(interpreter->options, at, name);

	*value = NULL;
	*letter = '\0';
	if (mark && equals) {
		if (mark == '@')
			*value = equals + 1;
		return mark == ':' ? FOLLOW_NOTHING : follow_of(mark);
	}
	if (mark)
		return follow_of(mark);
	if (interpreter->joins_letters && length > 1 && at[1] != '-')
		return letters_follow(interpreter, at, length, value, letter);
	return FOLLOW_NOTHING;
}

enum option_follow interpreter_word(const struct interpreter *interpreter, const char *at,
				    size_t length)
{
	return follow_of(mark_of(interpreter->words, at, length));
}
