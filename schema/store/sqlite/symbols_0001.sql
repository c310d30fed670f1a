-- SPDX-License-Identifier: Apache-2.0
-- symbols.db: every module ever met and its packed symbol table. Rebuildable except for uploads.
-- tenant 1 is the default tenant; symbols of other tenants are kept apart by the same column.

CREATE TABLE modules (
  tenant       INTEGER NOT NULL DEFAULT 1,
  id           BLOB NOT NULL,
  name         TEXT NOT NULL,
  state        TEXT NOT NULL,
  quality      INTEGER NOT NULL,
  reason       TEXT NOT NULL,
  source       TEXT NOT NULL,
  raw_bytes    INTEGER NOT NULL,
  packed_bytes INTEGER NOT NULL,
  functions    INTEGER NOT NULL,
  ranges       INTEGER NOT NULL,
  retry_at     INTEGER NOT NULL,
  first_seen   INTEGER NOT NULL,
  updated      INTEGER NOT NULL,
  failures     INTEGER NOT NULL,
  is_uploaded  INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- htlhash or Go id ↔ the id everything is kept under.
CREATE TABLE aliases (
  tenant INTEGER NOT NULL DEFAULT 1,
  alias  BLOB NOT NULL,
  id     BLOB NOT NULL,
  PRIMARY KEY (tenant, alias)
) STRICT, WITHOUT ROWID;

CREATE TABLE tables (
  tenant INTEGER NOT NULL DEFAULT 1,
  id     BLOB NOT NULL,
  format INTEGER NOT NULL,
  data   BLOB NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT;
