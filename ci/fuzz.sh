#!/usr/bin/env bash
# Runs every fuzz target of the project for the given time each, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
ran=0
while IFS=: read -r file target; do
  dir=./$(dirname "$file")
  echo "fuzz: $dir $target for $time"
  go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time" "$dir"
  ran=$((ran + 1))
done < <(git grep -oE 'func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/func //')
[ "$ran" -gt 0 ] || { echo "fuzz: no target found"; exit 1; }
echo "fuzz: $ran targets, nothing found"
