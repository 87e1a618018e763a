#!/usr/bin/env bash
# Runs every test with the race detector, and fails also if a test is skipped that skips.txt does not list.
#
#   ci/gate/unit.sh LOG [PACKAGE...]   LOG gets the whole output of go test -v
set -uo pipefail
log=$1; shift
CGO_ENABLED=1 go test -race -count=1 -timeout 60m -v "${@:-./...}" >"$log" 2>&1; code=$?
grep -aE '^(ok  |FAIL|--- FAIL|panic:)' "$log"
unlisted=$(grep -aoP '^ *--- SKIP: \K[^/ ]+' "$log" | sort -u | grep -vxFf <(awk '{print $1}' "$(dirname "$0")/skips.txt"))
[ -z "$unlisted" ] || { printf 'skipped, and not listed in ci/gate/skips.txt:\n%s\n' "$unlisted"; code=1; }
exit $code
