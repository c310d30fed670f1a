-- SPDX-License-Identifier: Apache-2.0
-- Samples in ClickHouse, one server or a group of replicas behind one address. Only what 18.16 and current
-- versions both accept: no CODEC, TTL, LowCardinality, DateTime64 here.
--
-- Everything may be inserted any number of times: a row is known by its sorting key, and ReplacingMergeTree
-- keeps one of equal ones. Names of frames are never stored, but for those that the sender resolved.

CREATE TABLE IF NOT EXISTS schema_migrations (
	version UInt32,
	applied DateTime DEFAULT now()
) ENGINE = MergeTree() ORDER BY version;

-- Dictionaries, by the month of the samples that refer to them. Ids are 64-bit hashes of the content, the
-- same on every farflame-server.
CREATE TABLE IF NOT EXISTS modules (
	month UInt32,                -- 202611
	module UInt64,
	build_id String,             -- bytes: GNU build-id, else htlhash, else of the Go id
	htlhash String,              -- bytes
	go_id String,
	name String,
	base UInt8                   -- what addresses count from: enum address_base
) ENGINE = ReplacingMergeTree() PARTITION BY month ORDER BY module;

CREATE TABLE IF NOT EXISTS locations (
	month UInt32,
	location UInt64,
	kind UInt8,                  -- enum location_kind
	module UInt64,               -- 0: none
	address UInt64,
	function String,
	file String,
	type String,
	line UInt32
) ENGINE = ReplacingMergeTree() PARTITION BY month ORDER BY location;

CREATE TABLE IF NOT EXISTS stacks (
	month UInt32,
	stack UInt64,
	locations Array(UInt64)      -- leaf first
) ENGINE = ReplacingMergeTree() PARTITION BY month ORDER BY stack SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS series (
	month UInt32,
	tenant UInt32,
	series UInt64,               -- upper 16 bits of its service: series of one service are neighbours
	label_names Array(String),   -- sorted
	label_values Array(String)
) ENGINE = ReplacingMergeTree() PARTITION BY month ORDER BY (tenant, series);

-- One row per profile. The arrays are of equal length, one element per (thread, stack). A deleted profile
-- keeps its row, so that it stays known, with its samples in deleted.
CREATE TABLE IF NOT EXISTS samples (
	tenant UInt32,
	type UInt8,                  -- position in PROFILE_TYPES
	hour DateTime,
	series UInt64,
	minute DateTime,
	id FixedString(16),          -- profile_id
	is_counted UInt8,            -- the agent counts what it takes: reports
	samples UInt64,
	value UInt64,
	deleted UInt64,
	refused UInt64,              -- samples of profiles of too many series; series then has the host only
	stacks Array(UInt64),
	threads Array(String),
	stack_samples Array(UInt64),
	stack_values Array(UInt64),
	inserted DateTime DEFAULT now()
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute)
	ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;

-- Profiles that two inserts brought: a query counts one of each until they are merged.
CREATE TABLE IF NOT EXISTS duplicates (
	tenant UInt32,
	minute DateTime,
	id FixedString(16)
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, minute, id);

-- What agents counted, cumulative since each one's start. Differences are made by queries.
CREATE TABLE IF NOT EXISTS reports (
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
	own_samples UInt64,          -- that came with this report
	lost_names Array(String),
	lost_counts Array(UInt64),
	stack_names Array(String),   -- by how the walk ended
	stack_counts Array(UInt64),
	end_ms Int64,
	received_ms Int64,
	sent_ms Int64                -- on the agent's clock; 0: it does not say
) ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, agent, minute, seq);

-- Agents whose reports do not follow each other in time: what they counted in a range takes all of them, one
-- after the other. The agents of this project are none.
CREATE TABLE IF NOT EXISTS irregular_agents (
	tenant UInt32,
	agent FixedString(16)
) ENGINE = ReplacingMergeTree() ORDER BY (tenant, agent);

-- The last report of each agent.
CREATE TABLE IF NOT EXISTS agents (
	month UInt32,
	tenant UInt32,
	agent FixedString(16),
	seq UInt64,
	host String,
	version String,
	kernel String,
	rate_hz UInt32,
	taken UInt64,
	lost_names Array(String),
	lost_counts Array(UInt64),
	stack_names Array(String),
	stack_counts Array(UInt64),
	end_ms Int64,
	received_ms Int64,
	sent_ms Int64
) ENGINE = ReplacingMergeTree(seq) PARTITION BY month ORDER BY (tenant, agent);

CREATE MATERIALIZED VIEW IF NOT EXISTS agents_view TO agents AS
SELECT toYYYYMM(minute) AS month, tenant, agent, seq, host, version, kernel, rate_hz, taken,
	lost_names, lost_counts, stack_names, stack_counts, end_ms, received_ms, sent_ms
FROM reports;
