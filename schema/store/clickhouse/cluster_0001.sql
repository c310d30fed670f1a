-- SPDX-License-Identifier: Apache-2.0
-- The same tables for a cluster of several shards and replicas: --store clickhouse=URL?cluster=NAME.
-- $cluster is that name, $database the database; {shard} and {replica} are macros of each ClickHouse server
-- (<macros> in its configuration). A row's shard follows from what its table is sorted by, so that equal rows
-- meet and are merged, and a series is on one shard. ON CLUSTER needs <distributed_ddl> and ZooKeeper or Keeper.
-- What the columns mean: samples_0001.sql.

CREATE TABLE IF NOT EXISTS $database.schema_migrations_local ON CLUSTER $cluster (
	version UInt32,
	applied DateTime DEFAULT now()
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/$database/schema_migrations', '{shard}-{replica}') ORDER BY version;

CREATE TABLE IF NOT EXISTS $database.schema_migrations ON CLUSTER $cluster AS $database.schema_migrations_local
	ENGINE = Distributed($cluster, $database, schema_migrations_local, version);

CREATE TABLE IF NOT EXISTS $database.modules_local ON CLUSTER $cluster (
	month UInt32,
	module UInt64,
	build_id String,
	htlhash String,
	go_id String,
	name String,
	base UInt8
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/modules', '{replica}') PARTITION BY month ORDER BY module;

CREATE TABLE IF NOT EXISTS $database.modules ON CLUSTER $cluster AS $database.modules_local
	ENGINE = Distributed($cluster, $database, modules_local, module);

CREATE TABLE IF NOT EXISTS $database.locations_local ON CLUSTER $cluster (
	month UInt32,
	location UInt64,
	kind UInt8,
	module UInt64,
	address UInt64,
	function String,
	file String,
	type String,
	line UInt32
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/locations', '{replica}') PARTITION BY month ORDER BY location;

CREATE TABLE IF NOT EXISTS $database.locations ON CLUSTER $cluster AS $database.locations_local
	ENGINE = Distributed($cluster, $database, locations_local, location);

CREATE TABLE IF NOT EXISTS $database.stacks_local ON CLUSTER $cluster (
	month UInt32,
	stack UInt64,
	locations Array(UInt64)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/stacks', '{replica}') PARTITION BY month ORDER BY stack SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS $database.stacks ON CLUSTER $cluster AS $database.stacks_local
	ENGINE = Distributed($cluster, $database, stacks_local, stack);

CREATE TABLE IF NOT EXISTS $database.series_local ON CLUSTER $cluster (
	month UInt32,
	tenant UInt32,
	series UInt64,
	label_names Array(String),
	label_values Array(String)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/series', '{replica}') PARTITION BY month ORDER BY (tenant, series);

CREATE TABLE IF NOT EXISTS $database.series ON CLUSTER $cluster AS $database.series_local
	ENGINE = Distributed($cluster, $database, series_local, series);

CREATE TABLE IF NOT EXISTS $database.samples_local ON CLUSTER $cluster (
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
	stack_values Array(UInt64),
	inserted DateTime DEFAULT now()
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/samples', '{replica}') PARTITION BY toYYYYMMDD(minute)
	ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS $database.samples ON CLUSTER $cluster AS $database.samples_local
	ENGINE = Distributed($cluster, $database, samples_local, series);

CREATE TABLE IF NOT EXISTS $database.duplicates_local ON CLUSTER $cluster (
	tenant UInt32,
	minute DateTime,
	id FixedString(16)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/duplicates', '{replica}') PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, minute, id);

CREATE TABLE IF NOT EXISTS $database.duplicates ON CLUSTER $cluster AS $database.duplicates_local
	ENGINE = Distributed($cluster, $database, duplicates_local, sipHash64(id));

CREATE TABLE IF NOT EXISTS $database.reports_local ON CLUSTER $cluster (
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/reports', '{replica}') PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, agent, minute, seq);

CREATE TABLE IF NOT EXISTS $database.reports ON CLUSTER $cluster AS $database.reports_local
	ENGINE = Distributed($cluster, $database, reports_local, sipHash64(agent));

CREATE TABLE IF NOT EXISTS $database.irregular_agents_local ON CLUSTER $cluster (
	tenant UInt32,
	agent FixedString(16)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/irregular_agents', '{replica}') ORDER BY (tenant, agent);

CREATE TABLE IF NOT EXISTS $database.irregular_agents ON CLUSTER $cluster AS $database.irregular_agents_local
	ENGINE = Distributed($cluster, $database, irregular_agents_local, sipHash64(agent));

CREATE TABLE IF NOT EXISTS $database.agents_local ON CLUSTER $cluster (
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
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/agents', '{replica}', seq) PARTITION BY month ORDER BY (tenant, agent);

CREATE TABLE IF NOT EXISTS $database.agents ON CLUSTER $cluster AS $database.agents_local
	ENGINE = Distributed($cluster, $database, agents_local, sipHash64(agent));

CREATE MATERIALIZED VIEW IF NOT EXISTS $database.agents_view ON CLUSTER $cluster TO $database.agents_local AS
SELECT toYYYYMM(minute) AS month, tenant, agent, seq, host, version, kernel, rate_hz, taken,
	lost_names, lost_counts, stack_names, stack_counts, end_ms, received_ms, sent_ms
FROM $database.reports_local;
