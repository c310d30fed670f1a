#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/system/run.sh [BUILD] [NAME…]: the tests that need root, this kernel's eBPF, real programs, a
# real browser. NAME: only tests whose file name begins so.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
[ $# -eq 0 ] || shift
FARFLAME_BUILD=$build
BUILD=$build
PYTHONPATH=$PWD/tests/system
export FARFLAME_BUILD BUILD PYTHONPATH
tests=
for file in tests/system/*.py tests/system/*.sh tests/attacks/*_test.py tests/browser/*_test.py tests/browser/*_test.mjs; do
	case ${file##*/} in
	'*'* | run.sh | lib*.sh | harness.py) continue ;;
	esac
	if [ $# -eq 0 ]; then
		tests="$tests $file"
	else
		for name; do
			case ${file##*/} in "$name"*) tests="$tests $file" ;; esac
		done
	fi
done
# What AddressSanitizer cannot have, a limit on memory, is tested without it here; and what needs root.
if [ -z "$*" ]; then
	limits="$build/tests/unit/symbolize/worker_test $build/tests/unit/common/sandbox_test
		$build/tests/unit/file_parser/file_parser_test $build/tests/unit/unwind/row_pages_test"
	# shellcheck disable=SC2086
	make -s BUILD="$build" $limits >"$build/limits.log" 2>&1 || sed -n '/error/p' "$build/limits.log" >&2
	tests="$tests $limits"
fi
# Without what drives the browser its tests are skipped, and say so.
case $tests in *.mjs*) sh tests/web/packages.sh >&2 ;; esac
# Those that sample this host, or watch how long something takes, run one after the other; what only talks to a
# server of its own, or mostly waits, does not mind company: one more than there are CPUs.
alone= together=
for file in $tests; do
	case $file in
	tests/attacks/server_*) together="$together $file" && continue ;;
	esac
	case ${file##*/} in
	server_page_*) alone="$alone $file" ;;
	*_test.mjs) together="$together $file" ;;
	agent_status_* | alerts_* | backup_* | bad_input_* | bad_servers_* | buildid_* | clickhouse_* | contract_* | debuginfod_faults_* | faults_* | fleet_* | formats_* | function_heat_* | go_names_* | \
		hard_cases_* | numbers_* | processes_* | queries_* | recursion_* | reload_* | seconds_* | senders_* | shipping_* | spool_* | store_faults_* | stores_* | \
		symbol_* | starts_* | symbolicate_* | symbols_agree.sh | traces_* | unmount_* | upload_symbols_* | delete_* | unwind_rows_*) together="$together $file" ;;
	*) alone="$alone $file" ;;
	esac
done
# The longest first, so that nothing is left to wait for alone.
for file in tests/system/symbols_agree.sh tests/system/unmount_test.py; do
	case $together in
	*$file*) together="$file $(echo "$together" | sed "s|$file||")" ;;
	esac
done
status=0
# shellcheck disable=SC2086
[ -z "$together" ] || TAP_JOBS=$(($(nproc) + 1)) sh tests/tools/run_tap.sh "$build" $together || status=1
# shellcheck disable=SC2086
[ -z "$alone" ] || sh tests/tools/run_tap.sh "$build" $alone || status=1
exit $status
