-- SPDX-License-Identifier: Apache-2.0
-- samples_0002.sql for a cluster, as cluster_0001.sql has it.

CREATE TABLE IF NOT EXISTS $database.rollups_10m_local ON CLUSTER $cluster (
	tenant UInt32,
	is_whole UInt8,
	type UInt8,
	hour DateTime,
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/rollups_10m', '{replica}') PARTITION BY toYYYYMMDD(bucket) ORDER BY (tenant, is_whole, type, hour, series, bucket, version) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS $database.rollups_10m ON CLUSTER $cluster AS $database.rollups_10m_local
	ENGINE = Distributed($cluster, $database, rollups_10m_local, series);

CREATE TABLE IF NOT EXISTS $database.rollups_1h_local ON CLUSTER $cluster (
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/rollups_1h', '{replica}') PARTITION BY toYYYYMM(bucket) ORDER BY (tenant, is_whole, type, series, bucket, version) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS $database.rollups_1h ON CLUSTER $cluster AS $database.rollups_1h_local
	ENGINE = Distributed($cluster, $database, rollups_1h_local, series);

CREATE TABLE IF NOT EXISTS $database.rollup_marks_local ON CLUSTER $cluster (
	level UInt8,
	bucket DateTime,
	version UInt64,
	covered UInt64,
	made DateTime DEFAULT now()
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/rollup_marks', '{replica}') PARTITION BY toYYYYMM(bucket) ORDER BY (level, bucket, version);

CREATE TABLE IF NOT EXISTS $database.rollup_marks ON CLUSTER $cluster AS $database.rollup_marks_local
	ENGINE = Distributed($cluster, $database, rollup_marks_local, sipHash64(bucket));

CREATE TABLE IF NOT EXISTS $database.late_buckets_local ON CLUSTER $cluster (
	bucket DateTime,
	token UInt64
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/late_buckets', '{replica}') PARTITION BY toYYYYMM(bucket) ORDER BY (bucket, token);

CREATE TABLE IF NOT EXISTS $database.late_buckets ON CLUSTER $cluster AS $database.late_buckets_local
	ENGINE = Distributed($cluster, $database, late_buckets_local, sipHash64(bucket));

CREATE TABLE IF NOT EXISTS $database.late_samples_local ON CLUSTER $cluster (
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/late_samples', '{replica}') PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, type, hour, series, minute, id);

CREATE TABLE IF NOT EXISTS $database.late_samples ON CLUSTER $cluster AS $database.late_samples_local
	ENGINE = Distributed($cluster, $database, late_samples_local, series);

CREATE TABLE IF NOT EXISTS $database.reports_kept_local ON CLUSTER $cluster (
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/reports_kept', '{replica}') PARTITION BY toYYYYMM(minute) ORDER BY (tenant, agent, minute, seq);

CREATE TABLE IF NOT EXISTS $database.reports_kept ON CLUSTER $cluster AS $database.reports_kept_local
	ENGINE = Distributed($cluster, $database, reports_kept_local, sipHash64(agent));

CREATE TABLE IF NOT EXISTS $database.rollup_servers_local ON CLUSTER $cluster (
	server UInt64,
	seen DateTime
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/rollup_servers', '{replica}', seen) ORDER BY server;

CREATE TABLE IF NOT EXISTS $database.rollup_servers ON CLUSTER $cluster AS $database.rollup_servers_local
	ENGINE = Distributed($cluster, $database, rollup_servers_local, server);

CREATE TABLE IF NOT EXISTS $database.moments_local ON CLUSTER $cluster (
	tenant UInt32,
	type UInt8,
	hour DateTime,
	series UInt64,
	minute DateTime,
	id FixedString(16),
	times Array(Int64),
	stacks Array(UInt64),
	threads Array(String),
	values Array(UInt64)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/moments', '{replica}') PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS $database.moments ON CLUSTER $cluster AS $database.moments_local
	ENGINE = Distributed($cluster, $database, moments_local, series);
