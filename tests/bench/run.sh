#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/bench/run.sh [BUILD [PART…]]: what agent and server cost on this machine, as a table beside the budgets. With
# OTEL_PROFILER=PROGRAM the OpenTelemetry eBPF profiler is measured in the same run on the same load. Parts: steady
# (memory, maps, CPU, bytes), fresh (what is new, deep, short), perf, server, ingest (a made-up fleet:
# BENCH_AGENTS=100,1000,10000 BENCH_INGEST_SECONDS=120), query (a fleet's day), symbols (BLAZECLI=PROGRAM for blazesym, too;
# BENCH_SYMBOLS=FILE… instead of what is below /usr/lib/debug); default all. As root, with clang; about
# eight minutes; other load on the machine falsifies it.
set -eu
cd "$(dirname "$0")/../.."
FARFLAME_BUILD=${1:-build}
[ $# -eq 0 ] || shift
PYTHONPATH=tests/system
export FARFLAME_BUILD PYTHONPATH
exec /usr/bin/python3 -B tests/bench/bench.py "$@"
