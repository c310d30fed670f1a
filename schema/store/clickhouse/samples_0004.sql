-- SPDX-License-Identifier: Apache-2.0
-- Samples of a profile that came with a trace and a span: the arrays are of equal length. They go with
-- --trace-retention, at the latest with their minutes.

CREATE TABLE IF NOT EXISTS spans (
	tenant UInt32,
	type UInt8,
	hour DateTime,
	series UInt64,
	minute DateTime,             -- of its profile
	id FixedString(16),
	links Array(FixedString(24)), -- trace id, span id
	stacks Array(UInt64),
	threads Array(String),
	link_samples Array(UInt64),
	link_values Array(UInt64)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute)
	ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;
