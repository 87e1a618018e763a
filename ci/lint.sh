#!/usr/bin/env bash
# Lint: each check prints what it found; all of them run, then the exit code tells.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

# check NAME COMMAND… fails when the command fails or prints anything but that it downloads modules, or why it was skipped.
check() {
  local name=$1 out failure=0; shift
  out=$("$@" 2>&1) || failure=$?
  out=$(grep -v '^go: downloading ' <<<"$out")
  if [ "$failure" -eq 0 ] && [[ $out == 'skipped: '* ]]; then
    printf 'lint: %-12s %s\n' "$name" "$out"
  elif [ "$failure" -ne 0 ] || [ -n "$out" ]; then
    printf 'lint: %s\n%s\n' "$name" "$out"; failed=1
  else
    printf 'lint: %-12s ok\n' "$name"
  fi
}

staticcheck() { go run -modfile=ci/tools/go.mod honnef.co/go/tools/cmd/staticcheck ./...; }

# Waiting is for an observed change, with a deadline; a sleep hides a race until the day the machine is slow. In virtual time it hides none.
no_sleeps() { git grep -nE 'time\.Sleep\(' -- '*.go' ':!harness/cluster/virtual' ':!harness/virtualcluster'; true; }

# Every package says what lives in it.
package_comments() {
  local dir
  for dir in $(git ls-files '*.go' | grep -v '_test\.go$' | xargs -n1 dirname | sort -u); do
    grep -qsE '^// (Package|Command) |^Package ' "$dir"/*.go || echo "$dir: no package comment"
  done
}

# Which package may import which: .depguard.yaml.
imports() { go run -modfile=ci/tools/go.mod github.com/OpenPeeDeeP/depguard/v2/cmd/depguard -test=false ./...; }

# The job files call what the Makefile has. Without it, a misspelt variable runs something else, and is green. make test executes the action.
job_files() { local out; out=$(go test -skip '^TestAction$' ./ci/jobs 2>&1) || echo "$out"; }

# What the message of a new commit must have: ci/commits. It is skipped in a clone without the history.
commits() { go run ./ci/commits; }

check gofmt gofmt -l $(git ls-files '*.go')
check vet go vet ./...
check staticcheck staticcheck
check mod-tidy go mod tidy -diff
check sleeps no_sleeps
check comments package_comments
check imports imports
check jobs job_files
check commits commits
ci/size.sh || failed=1
exit $failed
