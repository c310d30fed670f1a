/* SPDX-License-Identifier: Apache-2.0 */
	.section .rodata
	.macro embed name, path
	.global embedded_\name
	.global embedded_\name\()_end
	.balign 16
embedded_\name:
	.incbin "\path"
embedded_\name\()_end:
	.byte 0
	.endm

	embed page_html_gz, "page.html.gz"
	embed page_script_hash, "page.js.hash"
	embed page_style_hash, "page.css.hash"
	embed openapi_yaml, "openapi.yaml"
	embed samples_0001_sql, "samples_0001.sql"
	embed samples_0002_sql, "samples_0002.sql"
	embed samples_0003_sql, "samples_0003.sql"
	embed samples_0004_sql, "samples_0004.sql"
	embed symbols_0001_sql, "symbols_0001.sql"
	embed symbols_0002_sql, "symbols_0002.sql"
	embed agents_0001_sql, "agents_0001.sql"
	embed agents_0002_sql, "agents_0002.sql"
	embed agents_0003_sql, "agents_0003.sql"
	embed clickhouse_samples_0001_sql, "clickhouse_samples_0001.sql"
	embed clickhouse_cluster_0001_sql, "clickhouse_cluster_0001.sql"
	embed clickhouse_codecs_0001_sql, "clickhouse_codecs_0001.sql"
	embed clickhouse_samples_0002_sql, "clickhouse_samples_0002.sql"
	embed clickhouse_cluster_0002_sql, "clickhouse_cluster_0002.sql"
	embed clickhouse_samples_0003_sql, "clickhouse_samples_0003.sql"
	embed clickhouse_cluster_0003_sql, "clickhouse_cluster_0003.sql"
	embed clickhouse_samples_0004_sql, "clickhouse_samples_0004.sql"
	embed clickhouse_cluster_0004_sql, "clickhouse_cluster_0004.sql"

	.section .note.GNU-stack, "", @progbits
