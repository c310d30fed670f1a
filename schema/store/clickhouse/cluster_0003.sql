-- SPDX-License-Identifier: Apache-2.0
-- samples_0003.sql for a cluster, as cluster_0001.sql has it.

CREATE TABLE IF NOT EXISTS $database.lifetimes_local ON CLUSTER $cluster (
	day UInt32,
	tenant UInt32,
	lifetime String,
	context String
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/$database/lifetimes', '{replica}') PARTITION BY day ORDER BY (tenant, lifetime);

CREATE TABLE IF NOT EXISTS $database.lifetimes ON CLUSTER $cluster AS $database.lifetimes_local
	ENGINE = Distributed($cluster, $database, lifetimes_local, sipHash64(lifetime));
