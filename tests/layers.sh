#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/layers.sh [BUILD]: nobody includes what is not theirs. Two tables below: which room may include
# which, and which file is the one door to an external library. Checked on the #include lines of the
# sources and, with BUILD, on the compiler's dependency files, which also show what came in through
# somebody else's header. A third table orders the headers of bpf/, each of which has to stand alone. Afterwards violations are planted in a copy and have to be found. Prints TAP.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-${BUILD:-}}

# Room: what it may include besides itself. The first row that fits the including file counts.
rooms='
bpf/                        bpf/
common/                     common/ schema/wire/
node-agent/kernel/          bpf/ common/ node-agent/kernel/
node-agent/stacks/          bpf/*.h common/ node-agent/kernel/ node-agent/aggregate/ node-agent/capture/capture.h node-agent/contexts/requests.h node-agent/processes/ node-agent/report/modules.h node-agent/runtimes/ node-agent/file_parser/file_parser.h node-agent/unwind/
node-agent/unwind/          bpf/*.h common/ node-agent/kernel/ node-agent/file_parser/row_builder.h
node-agent/runtimes/        bpf/*.h common/ node-agent/kernel/ node-agent/file_parser/jit/jit_chunk.h node-agent/processes/ node-agent/stacks/code_pages.h node-agent/file_parser/runtime_symbols.h
node-agent/waits/           bpf/*.h common/ node-agent/kernel/ node-agent/capture/capture.h node-agent/stacks/samples.h
node-agent/contexts/        bpf/*.h common/ node-agent/kernel/ node-agent/aggregate/ node-agent/processes/ node-agent/stacks/code_pages.h
node-agent/allocations/     bpf/*.h common/ node-agent/kernel/ node-agent/capture/capture.h node-agent/processes/memory_map.h node-agent/processes/process_files.h node-agent/processes/process_key.h node-agent/processes/processes.h node-agent/ship/ship.h node-agent/network/back_off.h node-agent/stacks/ node-agent/file_parser/memory_places.h node-agent/file_parser/malloc_names.h
node-agent/ship/            bpf/*.h common/ node-agent/kernel/ node-agent/network/network.h node-agent/network/network_client.h node-agent/network/http_answer.h node-agent/network/back_off.h
node-agent/report/          bpf/*.h common/ node-agent/kernel/ node-agent/aggregate/ node-agent/allocations/ node-agent/capture/capture.h node-agent/contexts/requests.h node-agent/processes/ node-agent/runtimes/jit_files.h node-agent/runtimes/runtimes.h node-agent/ship/ship.h node-agent/stacks/ node-agent/status/ node-agent/waits/ node-agent/agent_options.h node-agent/own_process.h
node-agent/*/               bpf/*.h common/ node-agent/kernel/
node-agent/                 bpf/*.h common/ node-agent/aggregate/ node-agent/allocations/ node-agent/capture/ node-agent/contexts/ node-agent/kernel/ node-agent/network/network.h node-agent/network/url.h node-agent/processes/ node-agent/report/ node-agent/runtimes/ node-agent/ship/ node-agent/stacks/ node-agent/status/ node-agent/file_parser/file_parser.h node-agent/waits/ node-agent/agent.h node-agent/agent_options.h node-agent/own_process.h
symbol-server/main.c        common/ symbol-server/
symbol-server/api/          common/ schema/wire/ symbol-server/embedded.h symbol-server/flamegraph/ symbol-server/formats/ symbol-server/http/ symbol-server/ingest/ symbol-server/naming/ symbol-server/query/ symbol-server/store/*.h symbol-server/symbolize/*.h symbol-server/symbolize/sources/symbol_sources.h symbol-server/symbolize/sources/symbol_directories.h
symbol-server/naming/       common/ symbol-server/flamegraph/ symbol-server/query/ symbol-server/store/sample_batch.h symbol-server/store/samples_query.h symbol-server/store/sample_context.h symbol-server/symbolize/symbolizer.h symbol-server/symbolize/symbol_table.h
symbol-server/ingest/       common/ symbol-server/store/sample_batch.h symbol-server/store/sample_context.h symbol-server/store/attribute_labels.h
symbol-server/query/        common/ symbol-server/store/sample_batch.h symbol-server/store/samples_query.h symbol-server/store/sample_context.h symbol-server/store/attribute_labels.h
symbol-server/symbolize/    common/ symbol-server/store/symbols.h symbol-server/net/
symbol-server/store/rules/  common/ symbol-server/store/*.h
symbol-server/store/sqlite/cells/  common/ symbol-server/store/*.h symbol-server/store/rules/
symbol-server/store/sqlite/dictionary/  common/ symbol-server/store/*.h symbol-server/store/rules/
symbol-server/store/sqlite/journal/  common/ symbol-server/store/*.h symbol-server/store/rules/ symbol-server/store/sqlite/cells/ symbol-server/store/sqlite/dictionary/
symbol-server/store/sqlite/ common/ symbol-server/store/*.h symbol-server/store/rules/ symbol-server/embedded.h
symbol-server/store/clickhouse/  common/ symbol-server/store/*.h symbol-server/store/rules/ symbol-server/net/ symbol-server/embedded.h
symbol-server/store/        common/ symbol-server/store/
symbol-server/flamegraph/   common/
symbol-server/formats/      common/ symbol-server/flamegraph/
symbol-server/*/            common/
symbol-server/              common/ symbol-server/embedded.h symbol-server/server_options.h symbol-server/life.h symbol-server/directories.h
'
# Library header (below /usr/include): the files that may include it.
doors='
bpf/libbpf.h bpf/bpf.h bpf/btf.h bpf/libbpf_*  node-agent/kernel/
curl/                                      symbol-server/net/http_client
zlib.h zconf.h                             common/gzip
libdeflate.h                               symbol-server/symbolize/dwarf/section_inflate symbol-server/http/body_inflate
protobuf-c/                                common/otlp symbol-server/api/ schema/wire/
microhttpd.h                               symbol-server/http/
sqlite3.h                                  symbol-server/store/
libelf.h gelf.h nlist.h elfutils/elf-knowledge.h elfutils/version.h  common/elf_image symbol-server/symbolize/convert/debug_ node-agent/kernel/
lzma.h lzma/                               symbol-server/symbolize/convert/gnu_debugdata
cjson/                                     symbol-server/api/
zstd.h zstd_errors.h                       symbol-server/symbolize/symbol_table symbol-server/symbolize/dwarf/section_inflate
libiberty/ demangle.h ansidecl.h           symbol-server/naming/demangle
re2/                                       symbol-server/query/pattern
seccomp.h seccomp-syscalls.h                                common/sandbox
nettle/                                    common/file_hash
openssl/                                   node-agent/network/tls
'

# bpf/ goes in one direction: a header may include those that stand before it, records (read by both sides),
# then what reads bytes, the frame, the walk, the sample; programs (*.bpf.c) come last.
bpf_order='
unwind_rows.h events.h frames.h runtime_frames.h hotspot_frames.h counters.h results.h alloc.h alloc_batch.h off_cpu.h thread_context.h
kernel_types.h sample_ring.bpf.h context_read.bpf.h python_walk.bpf.h runtime_copy.bpf.h hotspot_code.bpf.h stack_window.bpf.h process_map.bpf.h rule_cache.bpf.h unwind_rows.bpf.h
stack_frame.bpf.h sample_scratch.bpf.h stack_read.bpf.h stack_registers.bpf.h
stack_guess.bpf.h hotspot_blob.bpf.h hotspot_interpreted.bpf.h hotspot_walk.bpf.h stack_walk.bpf.h stack_copy.bpf.h
thread_context.bpf.h hotspot_frames.bpf.h runtime_frames.bpf.h runtime_codes.bpf.h sample_stack.bpf.h
stack_rate.bpf.h switch_rate.bpf.h alloc_cost.bpf.h alloc_batch.bpf.h
'

# ROOT: one line per violation of that order.
check_bpf_order() {
	(cd "$1" && grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"bpf/' bpf/*.h) | awk -v order="$bpf_order" '
	BEGIN {
		count = split(order, name, /[ \n]+/)
		for (i = 1; i <= count; i++)
			place["bpf/" name[i]] = i
	}
	{
		split($0, part, ":")
		split($0, quoted, "\"")
		if (!(part[1] in place))
			print part[1] " is not in the order of headers"
		else if (!(place[quoted[2]] && place[quoted[2]] < place[part[1]]))
			print part[1] ":" part[2] ": " part[1] " may not include " quoted[2]
	}'
}

# ROOT: headers that lean on what stood before them. What a source says of itself is made up.
check_bpf_alone() {
	triplet=$(cc -print-multiarch 2>/dev/null)
	(cd "$1" && for header in bpf/*.h; do
		clang -target bpf -mcpu=v2 -D__TARGET_ARCH_x86 -fsyntax-only -Wall -Werror -Wno-unused-function -iquote . \
			${triplet:+-idirafter "/usr/include/$triplet"} -DSAMPLE_SCRATCH_SLOTS=1 -DSAMPLE_COPY_BYTES=4096 \
			-DSAMPLE_RING_FULL=0 '-DSAMPLE_SOURCE(event)=0' -x c -include "$header" - </dev/null 2>&1 |
			sed -n "s|^|$header: |; /error/p"
	done)
}

# ROOT: one line per violation.
check_sources() {
	(cd "$1" && grep -rnE --include='*.c' --include='*.h' --include='*.cc' '^[[:space:]]*#[[:space:]]*include' \
		bpf common node-agent symbol-server) | awk -v rooms="$rooms" -v doors="$doors" '
	'"$match_functions"'
	{
		split($0, part, ":")
		file = part[1]
		where = file ":" part[2]
		if (!match($0, /include[[:space:]]*["<][^">]+[">]/))
			next
		text = substr($0, RSTART, RLENGTH)
		quoted = text ~ /"/
		sub(/include[[:space:]]*["<]/, "", text)
		header = substr(text, 1, length(text) - 1)
		if (quoted)
			check_room(file, where, header)
		else
			check_door(file, where, header)
	}'
}

# BUILD: objects whose dependencies hold a library header although their source is not its door. Headers
# of the C library, the compiler and the kernel are free for all.
check_dependencies() {
	system=$build/layers-system-headers
	dpkg -L libc6-dev linux-libc-dev libcrypt-dev $(dpkg-query -W -f '${Package}\n' 'libgcc-*-dev' \
		'libstdc++-*-dev' 2>/dev/null) 2>/dev/null | grep /usr/include >"$system"
	find "$1/common" "$1/node-agent" "$1/symbol-server" -name '*.d' 2>/dev/null | while read -r list; do
		source=${list#"$1"/}
		[ -e "${source%.d}.c" ] || [ -e "${source%.d}.cc" ] || [ "$1" = "${copy:-}" ] || continue # of an earlier tree
		tr -s ' \\\n' '\n' <"$list" | sed 's/:$//' | awk -v list="${list#"$1"/}" '
			/^\/usr\/include\// { print list ":" $0 }'
	done | sort -u | awk -v rooms="$rooms" -v doors="$doors" -v system_list="$system" '
	'"$match_functions"'
	BEGIN { while ((getline line < system_list) > 0) free[line] = 1 }
	{
		split($0, part, ":")
		path = part[2]
		if (path in free)
			next
		file = part[1]
		sub(/\.d$/, "", file)
		header = path
		sub(/^\/usr\/include\//, "", header)
		sub(/^[a-z0-9_]+-linux-gnu\//, "", header)
		if (!header_is_known(header))
			print file ": " header " is of a library that has no door"
		else
			check_door(file, file, header)
	}'
}

match_functions='
	function is_like(text, pattern,   at, expression) { # a folder, a file with or without its ending, *
		expression = pattern
		gsub(/[.+]/, "\\\\&", expression)
		gsub(/\*/, "[^/]*", expression)
		return match(text, "^" expression) == 1
	}
	function room_of(file,   at) {
		for (at = 1; at <= room_count; at++)
			if (is_like(file, room_name[at]))
				return at
		return 0
	}
	function check_room(file, where, header,   at, count, allowed, own) {
		if (!room_count)
			read_tables()
		at = room_of(file)
		own = room_name[at]
		if (own ~ /\*/) {
			split(file, own_part, "/")
			own = own_part[1] "/" own_part[2] "/"
		}
		if (own ~ /\/$/ && own != "node-agent/" && own != "symbol-server/" && index(header, own) == 1)
			return
		if (header !~ /\//) {
			print where ": \"" header "\" is not written from the root"
			return
		}
		if (header ~ /\.skel\.h$/ && file !~ /^node-agent\/kernel\//) {
			print where ": " header " belongs to node-agent/kernel/"
			return
		}
		if (header ~ /\.pb-c\.h$/)
			check_door(file, where, "protobuf-c/" header)
		count = split(room_allows[at], allowed, " ")
		for (at = 1; at <= count; at++)
			if (is_like(header, allowed[at]))
				return
		print where ": " file " may not include " header
	}
	function header_is_known(header,   at, i, count, list) {
		if (!room_count)
			read_tables()
		for (at = 1; at <= door_count; at++) {
			count = split(door_headers[at], list, " ")
			for (i = 1; i <= count; i++)
				if (is_like(header, list[i]))
					return at
		}
		return 0
	}
	function check_door(file, where, header,   at, i, count, list) {
		at = header_is_known(header)
		if (!at || file ~ /^bpf\//)
			return
		count = split(door_files[at], list, " ")
		for (i = 1; i <= count; i++)
			if (is_like(file, list[i]))
				return
		print where ": <" header "> only through " door_files[at]
	}
	function read_tables(   count, lines, i, j, words, part) {
		count = split(rooms, lines, "\n")
		for (i = 1; i <= count; i++) {
			if (split(lines[i], part, " ") < 2)
				continue
			room_name[++room_count] = part[1]
			room_allows[room_count] = substr(lines[i], length(part[1]) + 1)
		}
		count = split(doors, lines, "\n")
		for (i = 1; i <= count; i++) {
			words = split(lines[i], part, " ")
			if (words < 2)
				continue
			door_count++
			for (j = 1; j <= words; j++) # our own folders are the door, all else are headers
				if (part[j] ~ /^(common|node-agent|symbol-server|schema)\//)
					door_files[door_count] = door_files[door_count] " " part[j]
				else
					door_headers[door_count] = door_headers[door_count] " " part[j]
		}
	}
'

number=0 bad=0
result() { # VIOLATIONS DESCRIPTION: ok when there are none
	number=$((number + 1))
	if [ -z "$1" ]; then
		echo "ok $number - $2"
	else
		bad=$((bad + 1))
		echo "not ok $number - $2"
		printf '%s\n' "$1" | sed 's/^/# /'
	fi
}

# FILE INCLUDE-LINE: planted in a copy, the checker has to name the file.
expect_found() {
	mkdir -p "$copy/$(dirname "$1")"
	echo "$2" >"$copy/$1"
	found=$(check_sources "$copy" | grep -F "$1:1:")
	rm -f "$copy/$1"
	[ -n "$found" ] && result "" "finds $2 in $1" || result "not found" "finds $2 in $1"
}

expect_free() {
	mkdir -p "$copy/$(dirname "$1")"
	echo "$2" >"$copy/$1"
	found=$(check_sources "$copy" | grep -F "$1:1:")
	rm -f "$copy/$1"
	result "$found" "lets $1 have $2"
}

self_test() {
	copy=$(mktemp -d) || exit 1
	mkdir -p "$copy/bpf" "$copy/common" "$copy/node-agent" "$copy/symbol-server"
	expect_found common/planted.c '#include "node-agent/ship/ship.h"'
	expect_found bpf/planted.bpf.c '#include "common/error.h"'
	expect_found node-agent/ship/planted.c '#include "node-agent/capture/capture.h"'
	expect_found node-agent/ship/planted.c '#include "node-agent/network/tls.h"'
	expect_found node-agent/network/planted.c '#include "node-agent/ship/spool.h"'
	expect_found node-agent/ship/planted.c '#include "symbol-server/http/http_server.h"'
	expect_found node-agent/capture/planted.c '#include "bpf/sample_cpu.skel.h"'
	expect_found node-agent/processes/planted.c '#  include <bpf/libbpf.h>'
	expect_found symbol-server/formats/planted.c '#include "symbol-server/store/samples.h"'
	expect_found symbol-server/ingest/planted.c '#include "symbol-server/store/symbols.h"'
	expect_found symbol-server/query/planted.c '#include "symbol-server/api/routes.h"'
	expect_found symbol-server/api/planted.c '#include <sqlite3.h>'
	expect_found symbol-server/symbolize/planted.c '#include <curl/curl.h>'
	expect_found common/planted.c '#include <zstd.h>'
	expect_found symbol-server/main.c '#include "tests/check.h"'
	expect_found symbol-server/http/planted.c '#include "http_server.h"'
	expect_found symbol-server/ingest/planted.c '#include "schema/wire/profiles.pb-c.h"'
	expect_free node-agent/main.c '#include "node-agent/capture/capture.h"'
	expect_free node-agent/network/tls_planted.c '#include <openssl/ssl.h>'
	expect_found node-agent/ship/planted.c '#include <openssl/ssl.h>'
	expect_free node-agent/ship/planted.c '#include "node-agent/ship/ship.h"'
	expect_free node-agent/kernel/planted.c '#include "bpf/sample_cpu.skel.h"'
	expect_free symbol-server/store/sqlite/planted.c '#include <sqlite3.h>'
	expect_free symbol-server/query/pattern.cc '#include <re2/re2.h>'
	cp bpf/*.h "$copy/bpf"
	expect_bpf stack_frame.bpf.h stack_walk.bpf.h # upward
	expect_bpf events.h thread_context.h          # a circle
	expect_bpf events.h events.h
	expect_bpf planted.h events.h # what no place is known of
	rm -rf "$copy"
}

# HEADER INCLUDED: planted in a copy of bpf/, both checks that fit have to name it.
expect_bpf() {
	cp "$copy/bpf/$1" "$copy/kept" 2>/dev/null || : >"$copy/kept"
	echo "#include \"bpf/$2\"" | cat - "$copy/kept" >"$copy/bpf/$1"
	found=$(check_bpf_order "$copy" | grep -F "bpf/$1")
	if [ -s "$copy/kept" ]; then mv "$copy/kept" "$copy/bpf/$1"; else rm -f "$copy/bpf/$1" "$copy/kept"; fi
	[ -n "$found" ] && result "" "finds $2 in bpf/$1" || result "not found" "finds $2 in bpf/$1"
}

bpf_alone_self_test() {
	copy=$(mktemp -d) || exit 1
	mkdir -p "$copy/bpf"
	echo 'static inline int planted(struct sample_event *event) { return event->cpu; }' >"$copy/bpf/planted.h"
	[ -n "$(check_bpf_alone "$copy")" ] && result "" "finds a header that does not stand alone" ||
		result "not found" "finds a header that does not stand alone"
	rm -rf "$copy"
}

dependency_self_test() {
	copy=$(mktemp -d) || exit 1
	mkdir -p "$copy/symbol-server/query" "$copy/common" "$copy/node-agent"
	echo 'x.o: symbol-server/query/x.c /usr/include/stdio.h /usr/include/sqlite3.h' >"$copy/symbol-server/query/x.d"
	echo 'y.o: symbol-server/query/y.c \
 /usr/include/nobody-knows/this.h' >"$copy/symbol-server/query/y.d"
	found=$(check_dependencies "$copy")
	case $found in
	*query/x:*sqlite3.h*nobody-knows/this.h*) result "" "finds planted dependencies" ;;
	*) result "found only: $found" "finds planted dependencies" ;;
	esac
	case $found in
	*stdio.h*) result "stdio.h was called a violation" "leaves the C library alone" ;;
	*) result "" "leaves the C library alone" ;;
	esac
	rm -rf "$copy"
}

result "$(check_sources .)" "every #include is of a room the file may look into"
result "$(check_bpf_order .)" "headers of bpf/ include each other in one direction"
if command -v clang >/dev/null; then
	result "$(check_bpf_alone .)" "each header of bpf/ stands alone"
	bpf_alone_self_test
else
	number=$((number + 1))
	echo "ok $number # SKIP no clang"
fi
if [ -n "$build" ] && [ -n "$(find "$build/common" "$build/node-agent" "$build/symbol-server" -name '*.d' 2>/dev/null | head -n 1)" ]; then
	result "$(check_dependencies "$build")" "no object depends on a library behind its door's back"
	dependency_self_test
else
	number=$((number + 1))
	echo "ok $number # SKIP nothing is built in ${build:-BUILD}, there are no dependency files"
fi
self_test
echo "1..$number"
[ "$bad" -eq 0 ]
