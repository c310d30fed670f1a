#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh tests/web/packages.sh: puts what symbol-server/web/package-lock.json names into its node_modules, when
# that has changed; not zero, with the reason in one sentence on stdout, where it cannot.
set -u
cd "$(dirname "$0")/../../symbol-server/web" || exit 1
stamp=node_modules/.farflame-lock

is_there() {
	cmp -s package-lock.json "$stamp"
}

is_there && exit 0
command -v npm >/dev/null || {
	echo "npm is not installed"
	exit 1
}
exec 9<package-lock.json
flock 9 || exit 1 # tests that run at once wait for the first
is_there && exit 0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
if timeout 600 npm ci --no-progress --fetch-retries 1 --fetch-timeout 60000 >"$log" 2>&1 </dev/null; then
	cp package-lock.json "$stamp"
	exit 0
fi
why=$(grep -hE 'npm (ERR!|error) (code|network|[0-9]{3})|ENOSPC' "$log" | head -n 2 | sed 's/^npm [^ ]* //' | tr '\n' ' ')
echo "the packages of package-lock.json cannot be had here: ${why:-$(tail -n 1 "$log")}"
exit 1
