-- SPDX-License-Identifier: Apache-2.0
-- What versions since 20 can do better, each statement by itself, none needed: a refusal is only logged.

ALTER TABLE samples MODIFY COLUMN stacks Array(UInt64) CODEC(ZSTD(1));
ALTER TABLE samples MODIFY COLUMN threads Array(String) CODEC(ZSTD(1));
ALTER TABLE samples MODIFY COLUMN stack_samples Array(UInt64) CODEC(ZSTD(1));
ALTER TABLE samples MODIFY COLUMN stack_values Array(UInt64) CODEC(ZSTD(1));
ALTER TABLE samples MODIFY COLUMN id FixedString(16) CODEC(ZSTD(1));
ALTER TABLE samples MODIFY SETTING fsync_after_insert = 1;
ALTER TABLE reports MODIFY SETTING fsync_after_insert = 1;
ALTER TABLE stacks MODIFY SETTING fsync_after_insert = 1;
ALTER TABLE locations MODIFY SETTING fsync_after_insert = 1;
ALTER TABLE modules MODIFY SETTING fsync_after_insert = 1;
ALTER TABLE series MODIFY SETTING fsync_after_insert = 1;
