-- SPDX-License-Identifier: Apache-2.0
-- samples_0004.sql for a cluster, as cluster_0001.sql has it.

CREATE TABLE IF NOT EXISTS $database.spans_local ON CLUSTER $cluster (
	tenant UInt32,
	type UInt8,
	hour DateTime,
	series UInt64,
	minute DateTime,
	id FixedString(16),
	links Array(FixedString(24)),
	stacks Array(UInt64),
	threads Array(String),
	link_samples Array(UInt64),
	link_values Array(UInt64)
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/spans', '{replica}') PARTITION BY toYYYYMMDD(minute) ORDER BY (tenant, type, hour, series, minute, id) SETTINGS index_granularity = 512;

CREATE TABLE IF NOT EXISTS $database.spans ON CLUSTER $cluster AS $database.spans_local
	ENGINE = Distributed($cluster, $database, spans_local, series);
