-- SPDX-License-Identifier: Apache-2.0
-- agents.db: what must be remembered from one report to the next.

-- 'folded_through': journal position up to which this file has everything.
CREATE TABLE facts (
  name  TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Cumulative counts of each start of an agent as last heard. lost: "reason count" lines.
CREATE TABLE agents (
  tenant    INTEGER NOT NULL,
  id        BLOB NOT NULL,
  host      TEXT NOT NULL,
  version   TEXT NOT NULL,
  kernel    TEXT NOT NULL,
  rate_hz   INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  taken     INTEGER NOT NULL,
  idle      INTEGER NOT NULL,
  lost      TEXT NOT NULL,
  last_seen INTEGER NOT NULL,
  lag_ms    INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Profile ids seen lately: first … first + count - 1 after a prefix of 12 bytes.
CREATE TABLE reports (
  number INTEGER NOT NULL PRIMARY KEY,
  tenant INTEGER NOT NULL,
  prefix BLOB NOT NULL,
  first  INTEGER NOT NULL,
  count  INTEGER NOT NULL
) STRICT;
