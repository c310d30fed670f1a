#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/bench/run.sh [BUILD]: what agent and server cost on this machine, as a table beside the budgets and
# beside perf record in the same run. As root; about three minutes; other load on the machine falsifies it.
set -eu
cd "$(dirname "$0")/../.."
FARFLAME_BUILD=${1:-build}
PYTHONPATH=tests/system
export FARFLAME_BUILD PYTHONPATH
exec /usr/bin/python3 -B tests/bench/bench.py
