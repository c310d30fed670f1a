/* SPDX-License-Identifier: Apache-2.0 */
/* Executable and cmdline → what the process runs. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/processes/program_name.h"

/* Arguments end with a NUL each, as the kernel has them. */
#define ARGS(text_) text_, sizeof(text_)

struct row {
	const char *executable, *bytes;
	size_t length;
	const char *want;
};

/* Of a copy without a byte behind it, so that a sanitizer sees who reads there. */
static void name_of(const struct row *row, size_t length, char out[PROGRAM_NAME_ROOM])
{
	char *copy = malloc(length ? length : 1);

	if (length)
		memcpy(copy, row->bytes, length);
	program_name_write(row->executable, copy, length, out);
	free(copy);
}

static void check_rows(const struct row *rows, size_t count)
{
	char out[PROGRAM_NAME_ROOM];

	for (size_t i = 0; i < count; i++) {
		name_of(&rows[i], rows[i].length, out);
		CHECK_TEXT(out, rows[i].want);
		for (size_t cut = 0; cut < rows[i].length; cut++) {
			memset(out, 'x', sizeof out);
			name_of(&rows[i], cut, out);
			if (!memchr(out, '\0', sizeof out))
				CHECK(!"a cut one has its end");
		}
	}
}

#define CHECK_ROWS(rows_) check_rows(rows_, sizeof(rows_) / sizeof *(rows_))

static void test_native(void)
{
	static const struct row rows[] = {
		{"/usr/sbin/nginx", ARGS("nginx: worker process"), "nginx"},
		{"/usr/lib/postgresql/15/bin/postgres", ARGS("postgres: writer   "), "postgres"},
		{"/opt/my app/server",
		 ARGS("/opt/my app/server\0--port\0"
		      "80"),
		 "server"},
		{"/usr/bin/node_exporter", ARGS("node_exporter"), "node_exporter"},
		{"/usr/bin/perl2exe", ARGS("perl2exe\0x.pl"), "perl2exe"},
		{"/usr/bin/python3.11", "", 0, "python3.11"},
		{"/usr/bin/python3.11", "\0\0", 2, "python3.11"},
		{"", "", 0, ""},
		{"/", "", 0, ""},
		{"", ARGS("/usr/bin/python3\0/srv/app.py"), "app.py"},
		{"", ARGS("/sbin/init\0splash"), "init"},
		{"/usr/bin/uwsgi-core", ARGS("/usr/bin/uwsgi\0--ini\0/etc/app.ini"), "uwsgi"},
		{"/usr/bin/uwsgi-core", "", 0, "uwsgi"},
	};

	CHECK_ROWS(rows);
}

#define PYTHON "/usr/bin/python3.11"

static void test_python(void)
{
	static const struct row rows[] = {
		{PYTHON, ARGS("python3"), "python3.11"},
		{PYTHON, ARGS("python3\0app.py"), "app.py"},
		{PYTHON,
		 ARGS("python3\0/srv/x/app.py\0--port\0"
		      "80"),
		 "app.py"},
		{PYTHON, ARGS("/venv/bin/python\0/srv/pkg/\0x"), "pkg"},
		{PYTHON,
		 ARGS("python3\0-m\0http.server\0"
		      "8000"),
		 "http.server"},
		{PYTHON, ARGS("python3\0-mhttp.server"), "http.server"},
		{PYTHON, ARGS("python3\0-um\0pkg.mod"), "pkg.mod"},
		{PYTHON, ARGS("python3\0-c\0print('x')\0app.py"), "python3 -c"},
		{PYTHON, ARGS("python\0-uc\0x"), "python3 -c"},
		{PYTHON, ARGS("python3\0-u\0-O\0-X\0dev\0-W\0ignore\0-I\0-E\0-s\0-S\0-B\0app.py"),
		 "app.py"},
		{PYTHON, ARGS("python3\0-Xdev\0-Wignore\0-IBW\0error\0app.py"), "app.py"},
		{PYTHON, ARGS("python3\0-X\0importtime\0--check-hash-based-pycs\0never\0a.py"),
		 "a.py"},
		{PYTHON, ARGS("python3\0--check-hash-based-pycs=never\0a.py"), "a.py"},
		{PYTHON, ARGS("python3\0--\0-odd.py"), "-odd.py"},
		{PYTHON, ARGS("python3\0-\0x"), "python3.11"},
		{PYTHON, ARGS("python3\0-i"), "python3.11"},
		{PYTHON, ARGS("python3\0-m"), "python3.11"},
		{PYTHON, ARGS("python3\0.\0x"), "python3.11"},
		{PYTHON, ARGS("/usr/bin/python3\0/usr/local/bin/gunicorn\0app:app"), "gunicorn"},
		{PYTHON, ARGS("/usr/bin/python3\0-sP\0/usr/bin/celery\0-A\0proj\0worker"),
		 "celery"},
		{PYTHON, ARGS("gunicorn: worker [app:app]\0\0\0"), "gunicorn"},
		{PYTHON, ARGS("[celeryd: celery@host:MainProcess] -active- (worker)"), "celeryd"},
		{PYTHON, ARGS("myworker"), "myworker"},
		{PYTHON, ARGS("renamed\0/srv/app.py"), "app.py"},
		{"/opt/a b/python3.12", ARGS("/opt/a b/python3\0x.py"), "x.py"},
		{"/usr/bin/python3.13t", ARGS("python3.13t\0x.py"), "x.py"},
		{"/usr/bin/python3.11-dbg",
		 ARGS("python3-dbg\0-c\0"
		      "1"),
		 "python3 -c"},
		{"/usr/bin/pypy3.10-c", ARGS("pypy3\0x.py"), "x.py"},
		{"/usr/bin/python2.7", ARGS("python\0x.py"), "x.py"},
		/* what may be a secret, and what it may be set by */
		{PYTHON, ARGS("python3\0--token\0hunter2\0x.py"), "x.py"},
		{PYTHON, ARGS("python3\0PASSWORD=hunter2"), "python3.11"},
	};

	CHECK_ROWS(rows);
}

#define NODE "/usr/bin/node"

static void test_node(void)
{
	static const struct row rows[] = {
		{NODE, ARGS("node\0server.js"), "server.js"},
		{NODE,
		 ARGS("node\0--require\0./x.js\0--max-old-space-size=4096\0--inspect\0/s/a.js"),
		 "a.js"},
		{NODE, ARGS("node\0-r\0x\0--enable-source-maps\0--import=y\0main.mjs"), "main.mjs"},
		{NODE, ARGS("node\0-e\0code\0x"), "node -e"},
		{NODE, ARGS("node\0--eval=code"), "node --eval"},
		{NODE,
		 ARGS("node\0-pe\0"
		      "1+1"),
		 "node -pe"},
		{NODE, ARGS("node"), "node"},
		{NODE, ARGS("node\0."), "node"},
		{NODE, ARGS("node\0--test\0x.test.js"), "x.test.js"},
		{NODE, ARGS("node\0/usr/bin/npm\0run\0start"), "npm run start"},
		{NODE, ARGS("npm run start\0\0"), "npm run start"},
		{NODE, ARGS("npm start"), "npm start"},
		{NODE,
		 ARGS("node\0/usr/lib/node_modules/npm/bin/npm-cli.js\0--prefix\0/x\0run\0build"),
		 "npm run build"},
		{NODE, ARGS("npm run-script build --silent"), "npm run-script build"},
		{NODE, ARGS("node\0/usr/bin/npm\0--version"), "npm"},
		{NODE,
		 ARGS("node\0/usr/bin/npx\0-p\0pkg\0serve\0-l\0"
		      "80"),
		 "npx serve"},
		{NODE, ARGS("npm exec serve"), "npm exec serve"},
		{NODE, ARGS("node\0/usr/bin/yarn\0start"), "yarn start"},
		{NODE, ARGS("node\0/app/.yarn/releases/yarn-3.6.1.cjs\0run\0dev"), "yarn run dev"},
		{NODE, ARGS("node\0/usr/bin/ts-node\0-P\0tsconfig.json\0src/app.ts"), "app.ts"},
		{NODE,
		 ARGS("node\0--require\0/x/preflight.cjs\0--import\0file:///x/loader.mjs\0a.ts"),
		 "a.ts"},
		{NODE, ARGS("node /srv/web/app.js"), "app.js"},
		{NODE, ARGS("PM2 v5.3.0: God Daemon (/home/ann/.pm2)"), "PM2"},
		{NODE, ARGS("node\0/usr/bin/npm\0config\0set\0token=x"), "npm config"},
		{"/usr/bin/deno", ARGS("deno\0run\0-A\0--allow-net=x\0main.ts"), "main.ts"},
		{"/usr/bin/deno", ARGS("deno\0run\0https://me:pw@host/x/mod.ts?token=abc"),
		 "mod.ts"},
		{"/usr/bin/deno", ARGS("deno\0run\0https://me:pw@host"), "deno"},
		{"/usr/bin/deno", ARGS("deno\0task\0dev"), "deno task dev"},
		{"/usr/bin/deno", ARGS("deno\0eval\0code"), "deno eval"},
		{"/usr/bin/deno", ARGS("deno\0test"), "deno test"},
		{"/usr/bin/bun", ARGS("bun\0run\0index.ts"), "index.ts"},
		{"/usr/bin/bun", ARGS("bun\0run\0dev"), "bun run dev"},
		{"/usr/bin/bun", ARGS("bun\0index.ts"), "index.ts"},
		{"/usr/bin/bun", ARGS("bun\0install"), "bun install"},
	};

	CHECK_ROWS(rows);
}

#define JAVA "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"

static void test_java(void)
{
	static const struct row rows[] = {
		{JAVA, ARGS("java\0-jar\0app.jar\0x"), "app.jar"},
		{JAVA, ARGS("java\0-Xmx1g\0-jar\0/srv/target/app.jar"), "app.jar"},
		{JAVA, ARGS("java\0-cp\0x.jar:y\0com.acme.Main\0-jar\0z.jar"), "com.acme.Main"},
		{JAVA, ARGS("java\0-classpath\0x\0-XX:+UseG1GC\0-Da=b\0-ea\0Main"), "Main"},
		{JAVA, ARGS("java\0--class-path=x\0--add-opens\0a/b=ALL-UNNAMED\0c.M"), "c.M"},
		{JAVA, ARGS("java\0--module-path\0mods\0-m\0acme/com.acme.Main\0x"),
		 "acme/com.acme.Main"},
		{JAVA, ARGS("java\0-p\0mods\0--module=acme/com.acme.Main"), "acme/com.acme.Main"},
		{JAVA, ARGS("java\0--module="), "java"},
		{JAVA, ARGS("java\0-javaagent:/x.jar=y\0--add-modules\0ALL\0x.Main"), "x.Main"},
		{JAVA, ARGS("java\0/src/Hello.java\0x"), "Hello.java"},
		{JAVA,
		 ARGS("java\0--source\0"
		      "17\0Hello.java"),
		 "Hello.java"},
		{JAVA, ARGS("java\0@/tmp/options\0com.acme.Main"), "com.acme.Main"},
		{JAVA, ARGS("java\0@/tmp/options\0start"), "java"},
		{JAVA, ARGS("java\0@/tmp/options\0-jar\0a.jar"), "a.jar"},
		{JAVA, ARGS("java\0-version"), "java"},
		{JAVA, ARGS("java\0-Dserver.password=x\0-jar\0a.jar"), "a.jar"},
		{JAVA, ARGS("java\0-jar"), "java"},
	};

	CHECK_ROWS(rows);
}

static void test_scripts(void)
{
	static const struct row rows[] = {
		{"/usr/bin/ruby3.1", ARGS("ruby\0-r\0x\0-I\0y\0script.rb"), "script.rb"},
		{"/usr/bin/ruby3.1", ARGS("ruby\0-rx\0-Iy\0-W0\0-w\0script.rb"), "script.rb"},
		{"/usr/bin/ruby3.1", ARGS("ruby\0-ryaml\0-e\0puts"), "ruby3 -e"},
		{"/usr/bin/ruby3.1", ARGS("ruby\0/usr/bin/bundle\0exec\0puma\0-C\0x"), "puma"},
		{"/usr/bin/ruby3.1", ARGS("ruby\0/usr/bin/bundle\0install"), "bundle install"},
		{"/usr/bin/ruby3.1", ARGS("ruby\0bin/rails\0server"), "rails"},
		{"/usr/bin/ruby3.1", ARGS("puma 5.6.5 (tcp://0.0.0.0:9292) [app]"), "puma"},
		{"/usr/bin/ruby3.1", ARGS("puma: cluster worker 0: 123 [app]"), "puma"},
		{"/usr/bin/perl", ARGS("perl\0x.pl"), "x.pl"},
		{"/usr/bin/perl", ARGS("/usr/bin/perl\0-T\0-w\0/usr/sbin/spamd\0-d"), "spamd"},
		{"/usr/bin/perl", ARGS("perl\0-Mstrict\0-I\0lib\0-Ilib2\0-MA=b,c\0x.pl"), "x.pl"},
		{"/usr/bin/perl", ARGS("perl\0-lne\0print"), "perl -e"},
		{"/usr/bin/perl", ARGS("perl\0-we\0print"), "perl -e"},
		{"/usr/bin/perl", ARGS("amavisd (ch4-avail)    "), "amavisd"},
		{"/usr/bin/php8.2", ARGS("php\0x.php"), "x.php"},
		{"/usr/bin/php8.2", ARGS("php\0-d\0memory_limit=1\0-dx=y\0artisan\0queue:work"),
		 "artisan"},
		{"/usr/bin/php8.2", ARGS("php\0-f\0/x/y.php"), "y.php"},
		{"/usr/bin/php8.2", ARGS("php\0-r\0code"), "php8 -r"},
		{"/usr/bin/php8.2", ARGS("php\0-S\0[::]:80\0-t\0x"), "php8 -S"},
		{"/usr/sbin/php-fpm8.2", ARGS("php-fpm: pool www      \0\0"), "php-fpm: pool www"},
		{"/usr/sbin/php-fpm8.2", ARGS("php-fpm: master process (/etc/php.conf)"),
		 "php-fpm"},
		{"/usr/lib/R/bin/exec/R",
		 ARGS("/usr/lib/R/bin/exec/R\0--no-echo\0--no-restore\0--file=/x/s.R\0--args\0y"),
		 "s.R"},
		{"/usr/lib/R/bin/exec/R", ARGS("R\0--args\0x"), "R"},
		{"/usr/lib/R/bin/exec/R", ARGS("R\0-e\0code"), "R -e"},
		{"/usr/bin/Rscript", ARGS("Rscript\0--vanilla\0x.R"), "x.R"},
		{"/usr/bin/lua5.4", ARGS("lua\0-l\0m\0-e\0x=1\0s.lua"), "s.lua"},
		{"/usr/bin/luajit-2.1.0-beta3", ARGS("luajit\0-joff\0s.lua"), "s.lua"},
		{"/usr/bin/tclsh8.6", ARGS("tclsh\0x.tcl"), "x.tcl"},
		{"/usr/bin/guile-3.0", ARGS("guile\0-L\0x\0-s\0y.scm"), "y.scm"},
		{"/usr/bin/julia",
		 ARGS("julia\0-t4\0--project=.\0-p\0"
		      "2\0x.jl"),
		 "x.jl"},
	};

	CHECK_ROWS(rows);
}

static void test_shells(void)
{
	static const struct row rows[] = {
		{"/usr/bin/bash", ARGS("bash\0script.sh\0x"), "script.sh"},
		{"/usr/bin/bash", ARGS("/bin/bash\0-eu\0/etc/script"), "script"},
		{"/usr/bin/bash", ARGS("bash\0-eo\0pipefail\0x.sh"), "x.sh"},
		{"/usr/bin/bash", ARGS("bash\0+x\0-o\0errexit\0--rcfile\0r\0x.sh"), "x.sh"},
		{"/usr/bin/bash", ARGS("bash\0-lc\0a command"), "bash -c"},
		{"/usr/bin/bash", ARGS("-bash"), "bash"},
		{"/usr/bin/bash", ARGS("bash\0/dev/fd/63\0x"), "bash"},
		{"/usr/bin/bash", ARGS("bash\0/dev/stdin"), "bash"},
		{"/usr/bin/bash", ARGS("bash\0/dev/shm/x.sh"), "x.sh"},
		{"/usr/bin/bash", ARGS("bash\0-s\0x.sh"), "bash"},
		{"/usr/bin/bash", ARGS("bash\0--login\0-i"), "bash"},
		{"/usr/bin/dash", ARGS("sh\0-c\0make"), "sh -c"},
		{"/usr/bin/dash", ARGS("/bin/sh\0/etc/init.d/x\0start"), "x"},
		{"/usr/bin/dash", ARGS("sh\0-ec\0make"), "sh -c"},
		{"/usr/bin/busybox", ARGS("httpd\0-f"), "httpd"},
		{"/usr/bin/busybox", ARGS("/bin/busybox\0httpd\0-f"), "httpd"},
		{"/usr/bin/busybox", ARGS("busybox"), "busybox"},
		{"/usr/bin/busybox", ARGS("busybox\0--list"), "busybox"},
		{"/usr/bin/busybox", ARGS("sh\0/x/y.sh"), "y.sh"},
		{"/usr/bin/busybox", ARGS("busybox\0sh\0-c\0x"), "sh -c"},
		{"/usr/bin/busybox", ARGS("-sh"), "sh"},
	};

	CHECK_ROWS(rows);
}

static void test_others(void)
{
	static const char beam[] = "/usr/lib/erlang/erts-13.1.5/bin/beam.smp";
	static const char loader[] = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
	const struct row rows[] = {
		{"/usr/share/dotnet/dotnet", ARGS("dotnet\0/srv/app.dll\0x"), "app.dll"},
		{"/usr/share/dotnet/dotnet", ARGS("dotnet\0exec\0--depsfile\0x\0app.dll"),
		 "app.dll"},
		{"/usr/share/dotnet/dotnet", ARGS("dotnet\0--roll-forward\0Major\0a.dll"), "a.dll"},
		{"/usr/share/dotnet/dotnet", ARGS("dotnet\0run\0--project\0x"), "dotnet run"},
		{"/usr/bin/mono-sgen", ARGS("/usr/bin/mono\0--debug\0x.exe"), "x.exe"},
		{beam,
		 ARGS("beam.smp\0-W\0w\0--\0-root\0/x\0-progname\0erl\0--\0-home\0/root\0--\0"
		      "-noshell\0-s\0shop\0start"),
		 "shop"},
		{beam,
		 ARGS("beam.smp\0--\0-progname\0erl\0--\0-sname\0rabbit@host\0-setcookie\0c\0"
		      "-s\0rabbit\0boot"),
		 "rabbit"},
		{beam,
		 ARGS("beam.smp\0--\0-progname\0erl\0-elixir_root\0/x\0-s\0elixir\0start_cli\0--\0"
		      "-extra\0/usr/bin/mix\0phx.server"),
		 "mix"},
		{beam,
		 ARGS("beam.smp\0--\0-progname\0/app/bin/myapp\0-s\0elixir\0start_cli\0-extra\0"
		      "--no-halt"),
		 "myapp"},
		{beam, ARGS("beam.smp\0--\0-progname\0erl\0-eval\0code"), "beam.smp"},
		{beam, ARGS("beam.smp\0-sname"), "beam.smp"},
		{loader, ARGS("/lib64/ld-linux-x86-64.so.2\0--library-path\0/x\0/srv/app\0y"),
		 "app"},
		{loader, ARGS("ld.so\0--preload=x\0/usr/bin/python3.11\0-u\0a.py"), "a.py"},
		{loader, ARGS("ld.so\0/usr/bin/python3\0-i"), "python3"},
		{loader, ARGS("ld.so"), "ld-linux-x86-64.so.2"},
		{"/lib/ld-musl-x86_64.so.1", ARGS("ld\0/lib/ld.so\0ld.so\0ld.so\0ld.so\0ld.so\0x"),
		 "ld.so"},
	};

	CHECK_ROWS(rows);
}

/* Longer than there is room for; between two characters; what cannot be printed. */
static void test_cut(void)
{
	char bytes[1024] = "python3", out[PROGRAM_NAME_ROOM];

	for (size_t length = 120; length < 140; length++) {
		for (size_t i = 0; i < length; i++)
			bytes[8 + i] = i % 2 ? '\xa4' : '\xc3'; /* ä */
		program_name_write(PYTHON, bytes, 8 + length / 2 * 2, out);
		CHECK_NUMBER(strlen(out) < PROGRAM_NAME_ROOM, true);
		CHECK_NUMBER(strlen(out) % 2 == 0 || !strcmp(out + strlen(out) - 3, "\xe2\x80\xa6"),
			     true);
		CHECK_NUMBER(!strcmp(out + strlen(out) - 3, "\xe2\x80\xa6"),
			     length / 2 * 2 >= PROGRAM_NAME_ROOM);
	}
	program_name_write(PYTHON, ARGS("python3\0a\n\x7f.py"), out);
	CHECK_TEXT(out, "a??.py");
}

int main(void)
{
	test_native();
	test_python();
	test_node();
	test_java();
	test_scripts();
	test_shells();
	test_others();
	test_cut();
	return checks_done();
}
