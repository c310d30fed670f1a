-- SPDX-License-Identifier: Apache-2.0
-- When single samples were taken, of senders that say it (farflame-agent --timestamps): heat maps. They are in
-- samples too; these rows go when raw samples go. data: symbol-server/store/sqlite/cells/moments.h; its times count from ten
-- minutes before the bucket.
CREATE TABLE moments (
  tenant INTEGER NOT NULL,
  type   INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  series INTEGER NOT NULL,
  fold   INTEGER NOT NULL,
  count  INTEGER NOT NULL,
  data   BLOB NOT NULL,
  PRIMARY KEY (tenant, type, bucket, series, fold)
) STRICT, WITHOUT ROWID;
