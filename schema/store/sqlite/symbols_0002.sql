-- SPDX-License-Identifier: Apache-2.0
-- What each source answered for a module, what its table was made from and by, and when it was last used.

ALTER TABLE modules ADD COLUMN flags         INTEGER NOT NULL DEFAULT 0; -- what the table could not have
ALTER TABLE modules ADD COLUMN converter     INTEGER NOT NULL DEFAULT 0; -- version that made the table or failed
ALTER TABLE modules ADD COLUMN files         INTEGER NOT NULL DEFAULT 0; -- fingerprint of the files converted
ALTER TABLE modules ADD COLUMN file_bytes    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE modules ADD COLUMN fetch_ms      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE modules ADD COLUMN conversion_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE modules ADD COLUMN last_used     INTEGER NOT NULL DEFAULT 0; -- of its table; written hourly at most
ALTER TABLE modules ADD COLUMN is_dropped    INTEGER NOT NULL DEFAULT 0; -- the table made room for others
ALTER TABLE modules ADD COLUMN is_gnu        INTEGER NOT NULL DEFAULT 0; -- met as a GNU build-id

-- The last round's answers; side 0: files that are here, 1: servers that were asked, 2: for its dwz file.
CREATE TABLE candidates (
  tenant INTEGER NOT NULL DEFAULT 1,
  id     BLOB NOT NULL,
  side   INTEGER NOT NULL,
  number INTEGER NOT NULL,
  source TEXT NOT NULL,
  answer TEXT NOT NULL,
  detail TEXT NOT NULL,
  bytes  INTEGER NOT NULL,
  ms     INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (tenant, id, side, number)
) STRICT, WITHOUT ROWID;
