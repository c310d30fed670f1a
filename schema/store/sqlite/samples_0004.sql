-- SPDX-License-Identifier: Apache-2.0
-- Samples that came with a trace and a span (OTLP Link), for --trace-retention. They are in samples too. Minutes
-- first: old ones go by range. filter, data: symbol-server/store/sqlite/cells/spans.h.
CREATE TABLE spans (
  bucket INTEGER NOT NULL,
  tenant INTEGER NOT NULL,
  type   INTEGER NOT NULL,
  series INTEGER NOT NULL,
  fold   INTEGER NOT NULL,
  count  INTEGER NOT NULL,
  filter BLOB NOT NULL,
  data   BLOB NOT NULL,
  PRIMARY KEY (bucket, tenant, type, series, fold)
) STRICT, WITHOUT ROWID;
