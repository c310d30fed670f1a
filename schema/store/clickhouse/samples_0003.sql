-- SPDX-License-Identifier: Apache-2.0
-- What processes are: contexts of samples name a lifetime, one of each lifetime and hour tells of it.

CREATE TABLE IF NOT EXISTS lifetimes (
	day UInt32,                  -- 20261121
	tenant UInt32,
	lifetime String,
	context String               -- with what is told of the process
) ENGINE = ReplacingMergeTree() PARTITION BY day ORDER BY (tenant, lifetime);
