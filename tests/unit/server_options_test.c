/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/server_options.h"

#include <stdlib.h>

#include "tests/check.h"

static enum options_action read_words(const char *words, struct server_options *options,
				      struct error *err)
{
	static char copy[1000];
	static char name[] = "farflame-server";
	char *argv[32] = {name};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	*options = (struct server_options){0};
	*err = (struct error){0};
	return server_options_read(argc, argv, options, err);
}

static void test_defaults(void)
{
	struct server_options options;
	struct error err;

	CHECK(read_words("", &options, &err) == OPTIONS_RUN);
	CHECK_TEXT(options.listen, "127.0.0.1:7878");
	CHECK_NUMBER(options.retention_ms, INT64_C(7) * 86400000);
	CHECK_NUMBER(options.max_disk_bytes, 0);
	CHECK_NUMBER(options.debuginfod.count, 0);
	CHECK(read_words("--debuginfod http://a --debuginfod http://b --symbol-dir /x --retention "
			 "36500d "
			 "--max-disk 20G --import a --import b",
			 &options, &err) == OPTIONS_RUN);
	CHECK_NUMBER(options.debuginfod.count, 2);
	CHECK_TEXT(options.debuginfod.texts[1], "http://b");
	CHECK_NUMBER(options.retention_ms, INT64_C(36500) * 86400000);
	CHECK_NUMBER(options.max_disk_bytes, UINT64_C(20) << 30);
	CHECK_NUMBER(options.imports.count, 2);
	free(options.debuginfod.texts);
	free(options.symbol_dirs.texts);
	free(options.imports.texts);
}

static void test_refusals(void)
{
	static const struct {
		const char *words, *part;
	} rows[] = {
		{"--listen 0.0.0.0:7878", "--insecure"},
		{"--listen [::]:7878", "--insecure"},
		{"--listen 192.168.1.1:80", "--insecure"},
		{"--listen 7878", "is not an address and a port"},
		{"--listen 127.0.0.1:99999", "is not an address and a port"},
		{"--listen ::1:7878", "is not an address and a port"},
		{"--max-disk 0%", "a share is 1% to 95%"},
		{"--max-disk 50%x", "--max-disk"},
		{"--backup-base x", "--backup-base is for --backup"},
		{"--retention 7", "--retention"},
		{"--retention 7d,10m:3d", "10m:3d is shorter than that of minutes"},
		{"--retention 7d,10m:30d,1h:20d", "1h:20d is shorter than that of 10m"},
		{"--retention 0s,10m:30d", "shorter than that of minutes"},
		{"--retention 7d,30d", "write it as"},
		{"--retention 7d,1h:30d,10m:30d", "write it as"},
		{"--retention 7d,10m:30d,10m:40d", "write it as"},
		{"--retention 7d,10m:30", "--retention"},
		{"--store clickhouse", "--store"},
		{"--store mysql", "--store"},
		{"--tls-cert x", "--tls-cert"},
		{"--tls-key x", "--tls-key"},
		{"--tokens x", "--tokens"},
		{"--workers 1", "--workers"},
		{"--nothing", "--nothing"},
	};
	struct server_options options;
	struct error err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!CHECK(read_words(rows[i].words, &options, &err) == OPTIONS_FAILED &&
			   strstr(err.message, rows[i].part)))
			printf("# %s: %s\n", rows[i].words, err.message);
	CHECK(read_words("--listen 0.0.0.0:7878 --insecure", &options, &err) == OPTIONS_RUN);
	CHECK(read_words("--listen [::1]:0", &options, &err) == OPTIONS_RUN);
	CHECK(read_words("--max-disk 50%", &options, &err) == OPTIONS_RUN);
	CHECK_NUMBER(options.max_disk_percent, 50);
	CHECK_NUMBER(options.max_disk_bytes, 0);
	CHECK(read_words("--listen localhost:0", &options, &err) == OPTIONS_RUN);
}

static void test_retention(void)
{
	const int64_t day_ms = 86400000;
	struct server_options options;
	struct error err;

	CHECK(read_words("--retention 7d,10m:30d,1h:400d", &options, &err) == OPTIONS_RUN);
	CHECK_NUMBER(options.retention_ms, 7 * day_ms);
	CHECK_NUMBER(options.rollup_retention_ms[0], 30 * day_ms);
	CHECK_NUMBER(options.rollup_retention_ms[1], 400 * day_ms);
	CHECK(read_words("--retention 7d,1h:0s", &options, &err) == OPTIONS_RUN);
	CHECK_NUMBER(options.rollup_retention_ms[0], 0);
	CHECK_NUMBER(options.rollup_retention_ms[1], INT64_MAX);
}

/* The manual has the options as the table has them. */
static void test_manual(void)
{
	char *section = NULL, manual[32768] = "";
	size_t length = 0;
	FILE *out = open_memstream(&section, &length);
	FILE *file = fopen("deploy/man/farflame-server.8", "r");

	if (!file) {
		SKIP("run from the top of the tree to compare the manual");
		fclose(out);
		free(section);
		return;
	}
	options_man(&server_program, out);
	fclose(out);
	manual[fread(manual, 1, sizeof(manual) - 1, file)] = 0;
	fclose(file);
	CHECK(strstr(manual, section)); /* else: farflame-server --help-man gives the new section */
	free(section);
}

int main(void)
{
	test_defaults();
	test_refusals();
	test_retention();
	test_manual();
	return checks_done();
}
