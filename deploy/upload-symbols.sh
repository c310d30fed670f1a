#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh deploy/upload-symbols.sh [OPTION…] DIR|FILE… URL   sends the symbols of a build to a farflame-server
#
#   --all              sends every file, also those that the server has no use for
#   --token-file FILE  a line with a token, sent as "Authorization: Bearer …"
#   --retries N        how often a request that failed is tried again; 4
#   --quiet            no line per file
#
# Finds the ELF files with a build-id below DIR (symbolic links are not followed), asks the server which of
# them it lacks, and uploads those: of each build-id the file with debug information, the one with code where
# that is another, and a .dwp file that lies beside them. Run again, it goes on where it was ended. Exit status:
# 0 all is there, 1 something failed, 2 wrong usage. Needs curl and GNU readelf (or READELF=…).
set -u
umask 077

name=upload-symbols
retries=4 token_file='' send_all='' quiet=''
readelf=${READELF:-readelf}
tab=$(printf '\t')

usage() {
	echo "$name: $1" >&2
	sed -n 's/^# sh deploy\//usage: /p' "$0" >&2
	exit 2
}

say() {
	[ -n "$quiet" ] || printf '%s\n' "$1"
}

complain() {
	printf '%s: %s\n' "$name" "$1" >&2
}

# --- arguments ---

while [ $# -gt 0 ]; do
	case $1 in
	--all) send_all=yes ;;
	--quiet) quiet=yes ;;
	--token-file | --retries)
		[ $# -ge 2 ] || usage "$1 needs a value"
		[ "$1" = --retries ] && retries=$2 || token_file=$2
		shift
		;;
	--help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
	--) shift && break ;;
	-*) usage "there is no option $1" ;;
	*) break ;;
	esac
	shift
done
[ $# -ge 2 ] || usage "a directory and the server's URL are needed"
case $retries in '' | *[!0-9]*) usage "--retries is not a number: $retries" ;; esac
for url; do :; done # the last one
case $url in
http://?* | https://?*) url=${url%/} ;;
*) usage "the last argument is not the server's URL: $url" ;;
esac
for tool in curl "$readelf"; do
	command -v "$tool" >/dev/null 2>&1 || usage "$tool is not installed (readelf is in the package binutils)"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/$name.XXXXXX") || exit 1
curl_pid=''
end() { # STATUS
	[ -z "$curl_pid" ] || kill "$curl_pid" 2>/dev/null
	exit "$1"
}
trap 'rm -rf "$work"' EXIT
trap 'end 129' HUP
trap 'end 130' INT
trap 'end 143' TERM
if [ -n "$token_file" ]; then # in a file: arguments can be read by everybody
	IFS= read -r token <"$token_file" || [ -n "${token:-}" ] || usage "--token-file $token_file has no token in it"
	printf 'Authorization: Bearer %s\n' "$token" >"$work/headers"
else
	: >"$work/headers"
fi

# --- what there is ---

# Lines "build-id TAB flags TAB path"; flags: d debug information, c code. readelf says nothing about files
# that are not ELF. It is always given two names: for a single one it does not print which.
describe() {
	awk -v tab="$tab" '
		function finish() {
			if (id != "")
				print id tab (debug ? "d" : "") (code ? "c" : "") tab path
			id = ""
			debug = code = 0
		}
		/^File: / { finish(); path = substr($0, 7) }
		/^ *\[ *[0-9]+\] +\.z?debug_(info|line) / && !/ NOBITS / { debug = 1 }
		/ PROGBITS +[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ +[A-Za-z]*X/ { code = 1 }
		/ Build ID: [0-9a-f]+$/ { id = $NF }
		END { finish() }'
}

# DIR… URL. Names with a line break could not be told apart; whoever has them is told.
find_files() {
	left=$(($# - 1))
	while [ "$left" -gt 0 ]; do # the directories go behind the URL, which then goes
		[ -e "$1" ] || usage "there is no $1"
		case $1 in -*) set -- "$@" "./$1" ;; *) set -- "$@" "$1" ;; esac
		shift
		left=$((left - 1))
	done
	shift
	find -H "$@" -type f -size +0 ! -path '*
*' -exec env LC_ALL=C.UTF-8 "$readelf" -SnW /dev/null {} + 2>/dev/null | describe
	find -H "$@" -type f -path '*
*' -exec sh -c 'echo "$0: $# files with a line break in their paths are left out" >&2' "$name" {} +
}

find_files "$@" >"$work/found"
if [ ! -s "$work/found" ]; then
	complain "no ELF file with a build-id was found"
	exit 1
fi

# Of each build-id: the file with debug information and code, else the two apart; others are copies.
sort -t "$tab" -k 1,1 -k 2,2r "$work/found" | awk -F "$tab" -v debug="$work/debug" -v code="$work/executable" '
	function put(file, row) { print row >file }
	BEGIN { printf "" >debug; printf "" >code }
	length($1) < 8 || length($1) > 128 || length($1) % 2 || $2 == "" { next }
	$2 == "dc" && !($1 in has_d) { has_d[$1] = has_c[$1] = 1; put(debug, $0); next }
	$2 == "d" && !($1 in has_d) { has_d[$1] = 1; put(debug, $0); next }
	$2 == "c" && !($1 in has_c) { has_c[$1] = 1; put(code, $0); next }'

# --- the server ---

# CURL-ARGUMENT…: the answer in $work/answer, its status in $status. Tried again while nobody answers, or
# with 429 or a status from 500 on.
request() {
	try=0 pause=1
	while :; do
		rm -f "$work/answer"
		curl -sS -g -o "$work/answer" -w '%{http_code}' -H "@$work/headers" --connect-timeout 10 --speed-limit 1 \
			--speed-time 60 "$@" >"$work/status" 2>"$work/error" &
		curl_pid=$! # in the background: a signal is not kept waiting by an upload
		wait "$curl_pid"
		curl_pid=''
		status=$(cat "$work/status")
		case ${status:=000} in 000 | 429 | 5??) ;; *) return 0 ;; esac
		try=$((try + 1))
		[ "$try" -le "$retries" ] || return 1
		sleep "$pause"
		pause=$((pause * 2))
	done
}

# Why the last request failed, as the server or curl says it.
reason() {
	if [ "$status" = 000 ]; then
		sed -e 's/^curl: //' -e q "$work/error"
	else
		said=$(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' "$work/answer" 2>/dev/null)
		echo "status $status${said:+: $said}"
	fi
}

# KIND: leaves in $work/KIND those that the server lacks.
ask() {
	mkdir "$work/ask"
	awk -F "$tab" -v to="$work/ask/" '{ name = substr($0, length($1) + length($2) + 3); sub(/.*\//, "", name)
		print $1 " gnu " name >(to int((NR - 1) / 5000)) }' "$work/$1"
	: >"$work/wanted"
	for part in "$work"/ask/*; do
		[ -e "$part" ] || continue
		if ! request -H 'Content-Type: text/plain' --data-binary "@$part" "$url/api/v1/modules?offer=$1" ||
			[ "$status" != 200 ]; then
			complain "$url does not say what it lacks: $(reason)"
			exit 1
		fi
		cat "$work/answer" >>"$work/wanted"
	done
	rm -r "$work/ask"
	awk -F "$tab" 'NR == FNR { wanted[$1] = 1; next } $1 in wanted' "$work/wanted" "$work/$1" >"$work/lacking"
	mv "$work/lacking" "$work/$1"
}

known=$(cat "$work/debug" "$work/executable" | wc -l)
if [ -z "$send_all" ]; then
	ask debug
	ask executable
fi

# Small ones first: an executable is of use without its debug information, and what lies in the way comes last.
cat "$work/executable" "$work/debug" >"$work/list"
total=$(($(wc -l <"$work/list")))
say "$((known)) files with symbols found, $total to be sent to $url"

number=0 sent=0 present=0 failed=0 bytes=0
size_of() { # PATH; the names of owner and group could hold blanks
	# shellcheck disable=SC2012
	ls -dnL -- "$1" 2>/dev/null | awk '{ print $5; exit }'
}

megabytes() { # BYTES
	awk -v bytes="$1" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'
}

send() { # BUILD-ID PATH LABEL
	size=$(size_of "$2")
	size=${size:-0}
	text="$3 $2 ($(megabytes "$size"))"
	[ "$size" -lt 100000000 ] || say "$text: being sent"
	if [ ! -r "$2" ]; then
		failed=$((failed + 1))
		complain "$text: it cannot be read"
		return 1
	fi
	if request -T "$2" "$url/api/v1/modules/$1"; then
		case $status in
		201) sent=$((sent + 1)) bytes=$((bytes + size)) && say "$text: sent" && return 0 ;;
		200) present=$((present + 1)) && say "$text: was there" && return 0 ;;
		esac
	fi
	failed=$((failed + 1))
	complain "$text: $(reason)"
	return 1
}

while IFS= read -r row <&3; do
	number=$((number + 1))
	id=${row%%"$tab"*} path=${row#*"$tab"*"$tab"}
	send "$id" "$path" "$number/$total" || [ "$status" != 000 ] || break # nobody answers: nor for the others
	if [ -f "$path.dwp" ] && [ "$status" != 000 ]; then
		send "$id" "$path.dwp" "$number/$total" || :
	fi
done 3<"$work/list"

left=$((total - number))
summary="$sent sent ($(megabytes "$bytes")), $present were there, $((known - total)) not needed, $failed failed"
[ "$left" -eq 0 ] || summary="$summary, $left not tried"
printf '%s: %s\n' "$name" "$summary"
[ "$failed" -eq 0 ] && [ "$left" -eq 0 ]
