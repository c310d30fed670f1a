#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh deploy/recorded/record.sh: makes the recorded profile anew that quickstart shows where eBPF is not
# permitted. Our agent profiles programs of ours for 15 s, on the CPU and waiting; kept are the OTLP bytes it
# writes, the programs themselves (they are their debug files), and of the symbols of the kernel and of libraries
# those that occur (libc6-dbg has the names of the functions that libc does not export).
set -eu
cd "$(dirname "$0")/../.."
here=deploy/recorded
build=${BUILD:-build}
make -j"$(nproc)" BUILD="$build" "$build/farflame-agent" >/dev/null
sh tests/programs/build.sh "$build/programs" farflame-demo shapes_cc syscall_loop
rm -rf "$here/debug" "$here/kallsyms" "$here/profile.otlp.gz" "$here/time"
mkdir -p "$here/debug"
for name in farflame-demo shapes_cc syscall_loop; do
	cp "$build/programs/$name" "$here/debug/"
done

# From a folder of no meaning: the paths of the programs are part of the profile.
folder=$(mktemp -d /tmp/farflame-XXXXXX)
cp "$here"/debug/* "$folder/"
pids=
"$folder/farflame-demo" 18 &
pids="$pids $!"
"$folder/shapes_cc" 18 &
pids="$pids $!"
"$folder/syscall_loop" /usr/bin 18 &
pids="$pids $!"
only=
for pid in $pids; do
	only="$only --pid $pid"
done
from=$(date +%s)
# shellcheck disable=SC2086
"$build/farflame-agent" --output "$build/recorded.otlp" --duration 15s --frequency 99 --profile on-cpu,off-cpu,run-queue --off-cpu-budget 1% --timestamps --host recorded --upload never $only
echo "$from $(date +%s)" >"$here/time"
wait
rm -rf "$folder"

gzip -9 -n -c "$build/recorded.otlp" >"$here/profile.otlp.gz"
/usr/bin/python3 -B "$here/library_symbols.py" "$build" "$build/recorded.otlp" "$here/debug"
/usr/bin/python3 -B "$here/used_kallsyms.py" "$build" "$build/recorded.otlp" "$here/kallsyms"
du -sh "$here"
