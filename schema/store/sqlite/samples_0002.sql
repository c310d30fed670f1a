-- SPDX-License-Identifier: Apache-2.0
-- Roll-ups: sums over a longer time than the minute of samples, so that long ranges are read quickly and
-- kept longer. level: 1 ten minutes, 2 ten minutes of series without the labels that name one instance,
-- 3 and 4 one hour likewise, 5 one day (accounts only). A file of a day has 1 and 2, and accounts of 1 and 3;
-- hours-YYYYMM.db, which has the same tables, has 3 and 4, and accounts of 3 and 5.
-- bucket: minute of the day (of the month) at which the sum starts; fold: position through which it goes.
-- data as in samples, all threads as one (thread 0); hosts: their strings' numbers in rising order, as
-- LEB128 differences.
CREATE TABLE rollups (
  level   INTEGER NOT NULL,
  tenant  INTEGER NOT NULL,
  type    INTEGER NOT NULL,
  bucket  INTEGER NOT NULL,
  series  INTEGER NOT NULL,
  fold    INTEGER NOT NULL,
  pairs   INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  value   INTEGER NOT NULL,
  hosts   BLOB NOT NULL,
  data    BLOB NOT NULL,
  PRIMARY KEY (level, tenant, type, bucket, series, fold)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_accounts (
  level  INTEGER NOT NULL,
  tenant INTEGER NOT NULL,
  type   INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  fold   INTEGER NOT NULL,
  data   BLOB NOT NULL,
  PRIMARY KEY (level, tenant, type, bucket, fold)
) STRICT, WITHOUT ROWID;

-- What roll-ups stand for: everything of the bucket (ten minutes; in a month's file a day) whose fold is
-- not after through. newest: the last fold that brought something; while it is after through, samples and
-- accounts with later folds count beside the roll-ups.
CREATE TABLE rollup_marks (
  bucket  INTEGER NOT NULL PRIMARY KEY,
  through INTEGER NOT NULL,
  newest  INTEGER NOT NULL
) STRICT;

-- Nothing is rolled up of what there is.
INSERT INTO rollup_marks
  WITH RECURSIVE bucket(n) AS (SELECT 0 UNION ALL SELECT n + 10 FROM bucket WHERE n < 1430)
  SELECT n, 0, value FROM bucket, facts WHERE name = 'folded_through';
