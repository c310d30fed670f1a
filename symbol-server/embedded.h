/* SPDX-License-Identifier: Apache-2.0 */
/* Files inside the program (embedded.S): the page, the contract, the migrations. */
#ifndef SYMBOL_SERVER_EMBEDDED_H
#define SYMBOL_SERVER_EMBEDDED_H

extern const char embedded_page_html_gz[], embedded_page_html_gz_end[];
/* SHA-256 of its script and its style in base64, NUL-terminated */
extern const char embedded_page_script_hash[], embedded_page_style_hash[];
extern const char embedded_openapi_yaml[], embedded_openapi_yaml_end[];
/* NUL-terminated; schema/store/sqlite */
extern const char embedded_samples_0001_sql[];
extern const char embedded_samples_0002_sql[];
extern const char embedded_samples_0003_sql[];
extern const char embedded_samples_0004_sql[];
extern const char embedded_symbols_0001_sql[];
extern const char embedded_symbols_0002_sql[];
extern const char embedded_agents_0001_sql[];
extern const char embedded_agents_0002_sql[];
extern const char embedded_agents_0003_sql[];
/* schema/store/clickhouse */
extern const char embedded_clickhouse_samples_0001_sql[];
extern const char embedded_clickhouse_cluster_0001_sql[];
extern const char embedded_clickhouse_codecs_0001_sql[];
extern const char embedded_clickhouse_samples_0002_sql[];
extern const char embedded_clickhouse_cluster_0002_sql[];
extern const char embedded_clickhouse_samples_0003_sql[];
extern const char embedded_clickhouse_cluster_0003_sql[];
extern const char embedded_clickhouse_samples_0004_sql[];
extern const char embedded_clickhouse_cluster_0004_sql[];

#endif
