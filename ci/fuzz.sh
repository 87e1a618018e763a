#!/usr/bin/env bash
# Runs every fuzz target of the project for the given time each, one after another. All of them run, whatever one finds.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
ran=0 failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while IFS=: read -r file target; do
  dir=./$(dirname "$file")
  echo "fuzz: $dir $target for $time"
  ran=$((ran + 1))
  go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time" "$dir" 2>&1 | tee "$log" && continue
  # When the time is up in the middle of a call, go test calls that a failure and names no input (golang/go#48157).
  if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
    echo "fuzz: $dir $target: the time was up, nothing found"
  else
    failed+=("$dir $target")
  fi
done < <(git grep -oE 'func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/func //')
[ "$ran" -gt 0 ] || { echo "fuzz: no target found"; exit 1; }
[ ${#failed[@]} -eq 0 ] || { printf 'fuzz: %s failed\n' "${failed[@]}"; exit 1; }
echo "fuzz: $ran targets, nothing found"
