#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh deploy/quickstart.sh        installs what is needed, builds, starts server and agent, profiles this
#                                host for 15 seconds and shows where its CPU time went; both keep running
# sh deploy/quickstart.sh stop   ends exactly the two processes that it started
#
# Debian 12, as root. Listens on 127.0.0.1:7878 (FARFLAME_PORT=… for another port); everything it writes
# is under build/. Debug information comes from the network only if DEBUGINFOD_URLS is set, or a yes on the
# terminal. On an idle host, or with FARFLAME_DEMO=yes, a demonstration program of ours runs while it profiles.
set -u
cd "$(dirname "$0")/.." || exit 1
. deploy/packages.sh

port=${FARFLAME_PORT:-7878}
url=http://127.0.0.1:$port
state=build/quickstart
data=$state/data
page_range="#from=now-15m"
seconds=15
# With eBPF: where time goes, why it waits, who takes memory. Each within a tenth of a percent: stacks of the
# machine, probes of the program that takes memory (by default they may take 1 % of it, and miss fewer programs).
# Counting switches comes on top, by their number.
types=on-cpu,off-cpu,page-fault,mem-alloc
budgets="--off-cpu-budget 0.05% --page-fault-budget 0.05% --mem-budget 0.1%"

# --- saying what happens ---

fail() { # SENTENCE: what was started in this run ends again
	[ -z "${step_started:-}" ] || echo
	trap - INT TERM
	[ -z "${started_here:-}" ] || stop_both >/dev/null
	echo "quickstart: $1" >&2
	exit 1
}

step() {
	printf '%-52s' "$1 … "
	step_started=$(date +%s)
}

step_done() {
	printf '%s(%d s)\n' "${1:+$1 }" $(($(date +%s) - step_started))
	step_started=
}

last_sentence() { # LOG: its last line that says why, without level and event
	{ grep -E '^(error|farflame)' "$1" || cat "$1"; } 2>/dev/null | tail -n 1 | sed -E 's/^(error +|farflame-[a-z]+: +)//'
}

# --- processes: a pid counts only with its start time, so that nobody else's process is ever ended ---

start_time() { # PID
	sed -e 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '{ print $20 }'
}

is_running() { # NAME
	[ -e "$state/$1.pid" ] && read -r pid pid_start <"$state/$1.pid" || return 1
	[ -n "$pid_start" ] && [ "$(start_time "$pid")" = "$pid_start" ]
}

start() { # NAME PROGRAM ARGUMENT…: in a session of its own, log in NAME.log
	name=$1
	shift
	setsid "$@" </dev/null >"$state/$name.log" 2>&1 9>&- &
	echo "$! $(start_time $!)" >"$state/$name.pid"
	started_here=yes
}

stop_one() { # NAME
	if ! is_running "$1"; then
		rm -f "$state/$1.pid"
		echo "The $1 was not running."
		return
	fi
	kill -TERM "$pid" 2>/dev/null
	for _ in $(seq 30); do
		is_running "$1" || break
		sleep 0.5
	done
	if is_running "$1"; then
		kill -KILL "$pid" 2>/dev/null
		echo "The $1 (process $pid) did not end within 15 s and was killed."
	else
		echo "The $1 (process $pid) has ended."
	fi
	rm -f "$state/$1.pid"
}

stop_both() {
	stop_one agent
	stop_one server
}

# --- the steps ---

check_host() {
	[ "$(id -u)" -eq 0 ] || fail "Please run it as root: it installs packages and loads eBPF programs."
	command -v apt-get >/dev/null || fail "This needs Debian 12 or a relative of it: there is no apt-get here."
	mkdir -p "$state" 2>/dev/null && touch "$state/lock" 2>/dev/null ||
		fail "The folder $PWD/$state cannot be written to."
	free_kb=$(df -Pk "$state" | awk 'NR == 2 { print $4 }')
	[ "${free_kb:-0}" -ge 200000 ] ||
		fail "The disk of $PWD is full: $((free_kb / 1024)) MB are free, 200 MB are needed."
}

take_lock() {
	exec 9>"$state/lock"
	flock -n 9 || fail "Another quickstart is at work in this folder; wait until it has ended."
}

install() {
	step "Installing packages"
	missing=$(missing_packages $packages_quickstart)
	PACKAGES_LOG=$state/packages.log
	message=$(install_packages $packages_quickstart 2>&1) || fail "$message"
	[ -n "$missing" ] && step_done "$(echo "$missing" | wc -l) new" || step_done "all there"
}

build() {
	step "Building agent and server"
	before=$(ls -l --time-style=full-iso build/farflame-agent build/farflame-server 2>/dev/null)
	make -j"$(nproc)" BUILD=build >"$state/build.log" 2>&1 ||
		fail "The build failed: $(grep -m1 -E 'error: |undefined reference|No space|\*\*\*' "$state/build.log") (all of it: $state/build.log)"
	[ "$before" = "$(ls -l --time-style=full-iso build/farflame-agent build/farflame-server)" ] &&
		step_done "up to date" || step_done
}

port_is_taken() {
	hex=$(printf ':%04X' "$port")
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		awk -v port="$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'
}

distribution_debuginfod() { # its server; elfutils' asks those of all others
	id=$(. /etc/os-release 2>/dev/null && echo "${ID:-}")
	case $id in
	debian) echo https://debuginfod.debian.net ;;
	ubuntu) echo https://debuginfod.ubuntu.com ;;
	*) echo https://debuginfod.elfutils.org ;;
	esac
}

# Nothing is asked of the network that nobody said yes to.
choose_debuginfod() {
	[ -z "${DEBUGINFOD_URLS:-}" ] || return
	source=$(distribution_debuginfod)
	if [ -t 0 ] && [ -t 1 ]; then
		echo "Programs of packages have no names of functions here. $source has them, and would learn"
		printf 'by their build-ids which ones run on this host. Ask it? [y/N] '
		read -r answer
		case $answer in
		[Yy]*) DEBUGINFOD_URLS=$source ;;
		esac
	else
		echo "Names of packages' functions from the network: DEBUGINFOD_URLS=$source sh deploy/quickstart.sh"
	fi
}

start_server() { # further options
	step "Starting the server"
	port_is_taken && fail "Port $port is taken by another program; choose one with FARFLAME_PORT=… ."
	set -- "$@" --listen "127.0.0.1:$port" --data "$data"
	[ ! -d /usr/lib/debug ] || set -- "$@" --symbol-dir /usr/lib/debug
	for source in ${DEBUGINFOD_URLS:-}; do
		set -- "$@" --debuginfod "$source"
	done
	start server build/farflame-server "$@"
	tries=0
	until curl -fsS --max-time 2 -o /dev/null "$url/readyz" 2>/dev/null; do
		is_running server || fail "The server did not start: $(last_sentence "$state/server.log")"
		tries=$((tries + 1))
		[ $tries -lt 150 ] || fail "The server is not ready after 30 s; its log is $state/server.log."
		sleep 0.2
	done
	step_done "$url"
}

is_permitted() { # --capture …; by trying it
	build/farflame-agent --capture "$1" --output "$state/probe.otlp" --duration 100ms >"$state/probe.log" 2>&1
	[ $? -ne 3 ]
}

# 0: eBPF is permitted; 1: it is not, and $why says so.
ebpf_is_permitted() {
	is_permitted bpf && return 0
	why=$(last_sentence "$state/probe.log")
	pin=/sys/fs/bpf/farflame-quickstart-$$
	if bpftool prog load build/bpf/sample_cpu.bpf.o "$pin" type perf_event >/dev/null 2>&1; then
		rm -f "$pin"
		fail "The agent says that eBPF is not permitted here ($why), but bpftool can load its program: a fault of the agent."
	fi
	return 1
}

start_agent() {
	step "Starting the agent"
	# On loopback nothing has to be spared: files the server asks for go over at once.
	# shellcheck disable=SC2086 # options are words
	start agent build/farflame-agent --server "$url" --frequency 99 --report-interval 5s --upload-rate 1G \
		--profile "$types" $budgets
	sleep 1
	if ! is_running agent; then
		wait "$!"
		[ $? -ne 3 ] || return 3
		fail "The agent did not start: $(last_sentence "$state/agent.log")"
	fi
	step_done "$types"
}

busy_percent() { # over one second, of all CPUs
	{
		grep '^cpu ' /proc/stat
		sleep 1
		grep '^cpu ' /proc/stat
	} | awk '{ all = 0; for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6 }
		NR == 1 { all0 = all; idle0 = idle }
		END { printf "%d\n", (all > all0) ? 100 - 100 * (idle - idle0) / (all - all0) : 0 }'
}

profile() {
	busy=$(busy_percent)
	if [ "$busy" -lt 5 ] || [ -n "${FARFLAME_DEMO:-}" ]; then
		message=$(sh tests/programs/build.sh build/programs farflame-demo 2>&1) ||
			fail "The demonstration program could not be built: $message"
		echo "This host is $busy % busy: for these $seconds s a demonstration program of ours runs, \"farflame-demo\"."
		setsid build/programs/farflame-demo $((seconds + 1)) </dev/null >/dev/null 2>&1 9>&- &
	fi
	step "Profiling this host for $seconds s"
	sleep $((seconds + 2))
	step_done
}

# Waits while names arrive: until all modules that matter have theirs, or nothing has changed for 4 s.
wait_for_names() { # SHARE: of the last hour's samples that a module without names must have to matter
	step "Waiting for names"
	before= same=0 waited=0
	while [ $same -lt 4 ] && [ $waited -lt 20 ]; do
		open=$(curl -fsS --max-time 5 "$url/api/v1/modules" | jq -c '[.modules[]
			| select(.state != "ready" and .state != "failed" and (.unsymbolized_share // 0) >= '"$1"')
			| [.build_id, .state]]')
		[ "$open" != "[]" ] || break
		[ "$open" = "$before" ] && same=$((same + 1)) || same=0
		before=$open
		waited=$((waited + 1))
		sleep 1
	done
	if [ "$open" = "[]" ]; then
		step_done "all there"
	else
		step_done "$(echo "${open:-[]}" | jq length) modules have none, or only exported ones"
	fi
}

show() { # FROM UNTIL
	echo
	sh deploy/show.sh "$url" "$1" "$2" || fail "The result could not be shown."
	echo
	echo "The flame graph: $url/$page_range"
	if is_running agent && [ "$types" != on-cpu ]; then
		echo "Why it waits: $url/#page=graph&type=off-cpu&from=now-15m"
		echo "Who takes memory: $url/#page=graph&type=mem-alloc&from=now-15m"
	fi
	if is_running agent; then
		echo "Both keep running. To stop them: sh deploy/quickstart.sh stop"
	else
		echo "The server keeps running. To stop it: sh deploy/quickstart.sh stop"
	fi
}

show_recorded() {
	echo "eBPF is not permitted here: $why"
	echo "So this is a RECORDED profile, taken by the same agent on another host from programs of ours."
	data=$state/recorded
	start_server --import deploy/recorded/profile.otlp.gz --symbol-dir deploy/recorded/debug --retention 0s
	for file in deploy/recorded/kallsyms/*; do # the kernel's names came from the host of the recording
		curl -fsS --max-time 10 -o /dev/null -T "$file" "$url/api/v1/modules/${file##*/}"
	done
	read -r from until <deploy/recorded/time
	page_range="#from=${from}000&until=${until}000"
	wait_for_names 0 # what is recorded is older than an hour
	show "$from" "$until"
}

main() {
	check_host
	take_lock
	if is_running server; then
		install
		if is_running agent; then
			echo "farflame is running already; this is its last minute."
		else
			echo "farflame is running already, with a recorded profile (no agent)."
			read -r from until <deploy/recorded/time
			page_range="#from=${from}000&until=${until}000"
		fi
		show "${from:-now-1m}" "${until:-now}"
		return
	fi
	stop_one agent >/dev/null
	install
	build
	trap 'fail "interrupted."' INT TERM
	if ! ebpf_is_permitted; then
		if ! is_permitted auto; then
			show_recorded
			return
		fi
		echo "eBPF is not permitted here: $why"
		echo "So stacks are taken by perf events, which cut deep ones, and of the CPU only."
		types=on-cpu
	fi
	choose_debuginfod
	start_server
	start_agent || {
		why=$(last_sentence "$state/agent.log")
		fail "The agent may not sample although its own check said so: $why"
	}
	from=$(date +%s)
	profile
	wait_for_names 0.002
	show "$from" "$(date +%s)"
}

case ${1:-} in
'') main ;;
stop)
	mkdir -p "$state"
	stop_both
	;;
*)
	sed -n 's/^# \(sh deploy.*\)/\1/p' "$0" >&2
	exit 2
	;;
esac
