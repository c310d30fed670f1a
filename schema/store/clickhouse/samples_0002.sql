-- SPDX-License-Identifier: Apache-2.0
-- Sums of 10 minutes and of an hour, and the times of single samples. schema/README.md says when a sum counts.

-- One row per series (is_whole 0), and one per series without the labels of instances (is_whole 1), whose id is
-- the hash of the labels that are left. The arrays are of equal length, one element per stack.
CREATE TABLE IF NOT EXISTS rollups_10m (
	tenant UInt32,
	is_whole UInt8,
	type UInt8,
	hour DateTime,
	series UInt64,
	bucket DateTime,
	version UInt64,              -- of one making: rollup_marks has those that count
	samples UInt64,
	value UInt64,
	taken UInt64,                -- of profiles whose senders do not count
	deleted UInt64,
	refused UInt64,
	stacks Array(UInt64),
	stack_samples Array(UInt64),
	stack_values Array(UInt64)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(bucket)
	ORDER BY (tenant, is_whole, type, hour, series, bucket, version) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS rollups_1h (
	tenant UInt32,
	is_whole UInt8,
	type UInt8,
	series UInt64,
	bucket DateTime,
	version UInt64,
	samples UInt64,
	value UInt64,
	taken UInt64,
	deleted UInt64,
	refused UInt64,
	stacks Array(UInt64),
	stack_samples Array(UInt64),
	stack_values Array(UInt64)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(bucket)
	ORDER BY (tenant, is_whole, type, series, bucket, version) SETTINGS index_granularity = 512;

-- Makings that are whole. One counts when covered is how many tokens its buckets have in late_buckets.
CREATE TABLE IF NOT EXISTS rollup_marks (
	level UInt8,                 -- 1: rollups_10m, 2: rollups_1h
	bucket DateTime,
	version UInt64,
	covered UInt64,
	made DateTime DEFAULT now()
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(bucket) ORDER BY (level, bucket, version);

-- 10 minutes that something changed in after they were over: one token each time, after the change, before
-- anybody is told that it is stored.
CREATE TABLE IF NOT EXISTS late_buckets (
	bucket DateTime,
	token UInt64
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(bucket) ORDER BY (bucket, token);

-- As samples, of times whose minutes have gone already: they count beside the sums, and go with them.
CREATE TABLE IF NOT EXISTS late_samples (
	tenant UInt32,
	type UInt8,
	hour DateTime,
	series UInt64,
	minute DateTime,
	id FixedString(16),
	is_counted UInt8,
	samples UInt64,
	value UInt64,
	deleted UInt64,
	refused UInt64,
	stacks Array(UInt64),
	threads Array(String),
	stack_samples Array(UInt64),
	stack_values Array(UInt64)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, type, hour, series, minute, id);

-- Of reports the first and the last one of each agent and 10 minutes, kept as long as the sums.
CREATE TABLE IF NOT EXISTS reports_kept (
	tenant UInt32,
	agent FixedString(16),
	minute DateTime,
	seq UInt64,
	host String,
	version String,
	kernel String,
	rate_hz UInt32,
	acknowledged UInt64,
	taken UInt64,
	idle UInt64,
	own_samples UInt64,
	lost_names Array(String),
	lost_counts Array(UInt64),
	stack_names Array(String),
	stack_counts Array(UInt64),
	end_ms Int64,
	received_ms Int64,
	sent_ms Int64
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(minute) ORDER BY (tenant, agent, minute, seq);

-- farflame-servers that could make sums; the least id of those seen within a minute does.
CREATE TABLE IF NOT EXISTS rollup_servers (
	server UInt64,
	seen DateTime
) ENGINE = ReplacingMergeTree(seen) ORDER BY server;

-- When single samples of a profile were taken: the arrays are of equal length, one element per sample.
CREATE TABLE IF NOT EXISTS moments (
	tenant UInt32,
	type UInt8,
	hour DateTime,
	series UInt64,
	minute DateTime,             -- of its profile
	id FixedString(16),
	times Array(Int64),          -- unix milliseconds
	stacks Array(UInt64),
	threads Array(String),
	values Array(UInt64)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute)
	ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;
