/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the tables that files of days and months have, for whoever writes rows: values are
 * bound in this order. What they hold: schema/store/sqlite/samples_*.sql. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_TABLES_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_TABLES_H

#define FACTS_COLUMNS       "name, value"
#define DEFINITIONS_COLUMNS "kind, first, count, data"
#define SAMPLES_COLUMNS     "tenant, type, bucket, series, fold, pairs, samples, value, data"
#define ACCOUNTS_COLUMNS    "tenant, type, bucket, fold, data"
#define MOMENTS_COLUMNS     "tenant, type, bucket, series, fold, count, data"
#define SPANS_COLUMNS       MOMENTS_COLUMNS ", filter"
#define ROLLUPS_COLUMNS \
	"level, tenant, type, bucket, series, fold, pairs, samples, value, hosts, data"
#define ROLLUP_ACCOUNTS_COLUMNS "level, " ACCOUNTS_COLUMNS
#define ROLLUP_MARKS_COLUMNS    "bucket, through, newest"

#define INTO_DEFINITIONS     "INTO definitions (" DEFINITIONS_COLUMNS ")"
#define INTO_SAMPLES         "INTO samples (" SAMPLES_COLUMNS ")"
#define INTO_ACCOUNTS        "INTO accounts (" ACCOUNTS_COLUMNS ")"
#define INTO_MOMENTS         "INTO moments (" MOMENTS_COLUMNS ")"
#define INTO_SPANS           "INTO spans (" SPANS_COLUMNS ")"
#define INTO_ROLLUPS         "INTO rollups (" ROLLUPS_COLUMNS ")"
#define INTO_ROLLUP_ACCOUNTS "INTO rollup_accounts (" ROLLUP_ACCOUNTS_COLUMNS ")"
#define INTO_ROLLUP_MARKS    "INTO rollup_marks (" ROLLUP_MARKS_COLUMNS ")"

/* All rows of the table of a file that is attached as old. */
#define COPY_OLD(table_, columns_) \
	"INSERT INTO " table_ " (" columns_ ") SELECT " columns_ " FROM old." table_ ";"
#define COPY_FACTS           COPY_OLD("facts", FACTS_COLUMNS)
#define COPY_DEFINITIONS     COPY_OLD("definitions", DEFINITIONS_COLUMNS)
#define COPY_SAMPLES         COPY_OLD("samples", SAMPLES_COLUMNS)
#define COPY_MOMENTS         COPY_OLD("moments", MOMENTS_COLUMNS)
#define COPY_SPANS           COPY_OLD("spans", SPANS_COLUMNS)
#define COPY_ROLLUPS         COPY_OLD("rollups", ROLLUPS_COLUMNS)
#define COPY_ROLLUP_ACCOUNTS COPY_OLD("rollup_accounts", ROLLUP_ACCOUNTS_COLUMNS)
#define COPY_ROLLUP_MARKS    COPY_OLD("rollup_marks", ROLLUP_MARKS_COLUMNS)

#endif
