-- SPDX-License-Identifier: Apache-2.0
-- samples-YYYYMMDD.db: one UTC day. Deleting the file deletes the day.
-- What the packed columns hold: symbol-server/store/sqlite/cells/packed.h, catalog_codec.c.

-- 'day': days since 1970; 'folded_through': journal position up to which this file has everything.
CREATE TABLE facts (
  name  TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The day's dictionary. kind: 0 strings, 1 modules, 2 locations, 3 stacks, 4 series; a row defines the
-- numbers first … first + count - 1. Content without an owner: it is found through series, which have a
-- tenant each.
CREATE TABLE definitions (
  kind  INTEGER NOT NULL,
  first INTEGER NOT NULL,
  count INTEGER NOT NULL,
  data  BLOB NOT NULL,
  PRIMARY KEY (kind, first)
) STRICT, WITHOUT ROWID;

-- Counted stacks. type: position in PROFILE_TYPES (store/samples.h); bucket: minute of the day; fold: the
-- position the fold went through, so that one bucket can be folded in parts. samples and value are sums
-- over data.
CREATE TABLE samples (
  tenant  INTEGER NOT NULL,
  type    INTEGER NOT NULL,
  bucket  INTEGER NOT NULL,
  series  INTEGER NOT NULL,
  fold    INTEGER NOT NULL,
  pairs   INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  value   INTEGER NOT NULL,
  data    BLOB NOT NULL,
  PRIMARY KEY (tenant, type, bucket, series, fold)
) STRICT, WITHOUT ROWID;

-- What the hosts took, stored and lost in that minute.
CREATE TABLE accounts (
  tenant INTEGER NOT NULL,
  type   INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  fold   INTEGER NOT NULL,
  data   BLOB NOT NULL,
  PRIMARY KEY (tenant, type, bucket, fold)
) STRICT, WITHOUT ROWID;
