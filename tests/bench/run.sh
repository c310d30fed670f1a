#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/bench/run.sh [BUILD [PART…]]: what agent and server cost on this machine, as a table beside the budgets.
# Other load on the machine falsifies it. At the end the ratios to peers of the same run: a missed one, or a part that
# breaks off, makes the exit status 1. As root; default all parts, about 87 minutes on two cores.
#
#   part          min  what
#   steady          3  agent: memory, maps, CPU, bytes; clang and BPF are needed for this and the next six. With
#                      OTEL_PROFILER=PROGRAM the OpenTelemetry eBPF profiler in the same run on the same load
#   fresh           4  agent: what is new, deep, short
#   types          10  agent: what each type of --profile costs beside on-cpu, and all together, in CPU, memory and maps;
#                      page faults while programs do nothing else. BENCH_TYPE_SECONDS=20 BENCH_TYPE_ROUNDS=2
#   switches        2  agent: each context switch with --profile off-cpu, at 20 000 and 100 000 a second, beside perf sched
#                      record. BENCH_SWITCH_SECONDS=6 BENCH_SWITCH_ROUNDS=2
#   python          9  agent: frames of Python's, 20 processes of the CPythons here, beside itself without them and, where
#                      OTEL_PROFILER= and PY_SPY=PROGRAM are there, those: memory, maps, CPU, BPF and bytes a sample, names; from exec
#                      to the first name; what a program gets slower. BENCH_PYTHON_SECONDS=20 BENCH_PYTHON_ROUNDS=3
#   perf            1  perf record beside it
#   server          1  recorded reports, memory, a new program's way to its name (the reports are those of steady)
#   symbols         1  BLAZECLI=PROGRAM for blazesym, too; BENCH_SYMBOLS=FILE… instead of what is below /usr/lib/debug
#   small           1  idle connections, the agent's spool
#   malloc          3  agent: the allocation library and a sample of it, beside gperftools' and jemalloc's sampling
#   days            2  reports beside work on days' files, and a late one of a day with a large dictionary: BENCH_DAY_MIB=500
#   windows        10  agent: probes in allocators at --mem-budget 1 % of a program of 10 million mallocs a second and of a calmer
#                      one, beside gperftools' and jemalloc's sampling; how far sites are off after a minute, by the programs'
#                      own tallies. BENCH_WINDOW_SECONDS=20 BENCH_WINDOW_ROUNDS=3 BENCH_WINDOW_SITES=60 (0: without)
#   peers           4  the same hour into SQLite, ClickHouse and a real Pyroscope: CPU, disk, memory, questions.
#                      BENCH_PYROSCOPE=PROGRAM (pyroscope.py says how to build it), BENCH_PEER_REPORTS=36 of each of 100
#                      agents, BENCH_PEER_SETTLE=30 s
#   query           4  questions about a fleet's day, new process and warm, and while BENCH_QUERY_AGENTS=1000 report
#   month           4  the same of BENCH_MONTH_DAYS=30 days of BENCH_MONTH_PAIRS=150 stacks an hour of each series
#   start           2  start on BENCH_START_GB=1,3,10 GB; makes the month by itself where that part was not asked for
#   ingest         13  10 000 agents, each on its connection, open loop, beside folds and queries; on a slower disk; over
#                      ClickHouse: BENCH_AGENTS=10000 BENCH_INGEST_SECONDS=120 (the budget's is 600) BENCH_SLOW_SECONDS=90
#                      BENCH_SLOW_MS=15 BENCH_CLICKHOUSE_AGENTS=1000; BENCH_IDS_AGENTS=1000 with threads' ids, requests and processes of
#                      samples; 0 leaves one out
#   fleet-growth    8  BENCH_GROWTH=100,1000,10000 agents of BENCH_GROWTH_SECONDS=120 each, and what 100 000 and
#                      1 000 000 need on paper; BENCH_DENSITY_REPORTS=360 of an agent for the disk of an hour
#   page            3  the web page in Chromium: the overview of 50 services; 20 000 and a million frames: first paint, zoom, search, memory, beside
#                      speedscope and d3-flame-graph from npm. BENCH_PAGE_NODES=20000,1000000
set -eu
case ${1:-} in
-h | --help) exec sed -n '3,/^set/s/^# \{0,1\}//p' "$0" ;;
esac
cd "$(dirname "$0")/../.."
FARFLAME_BUILD=${1:-build}
[ $# -eq 0 ] || shift
PYTHONPATH=tests/system:tests/tools
export FARFLAME_BUILD PYTHONPATH
exec /usr/bin/python3 -B tests/bench/bench.py "$@"
