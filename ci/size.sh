#!/usr/bin/env bash
# The lines of Go without tests of each top-level folder, and how many ci/size.yaml allows. It fails if a folder has more, or is not listed.
set -euo pipefail
git ls-files '*.go' | grep -v '_test\.go$' | xargs wc -l | awk '
  NR == FNR { if ($1 ~ /^[a-z]+:$/) allowed[substr($1, 1, length($1) - 1)] = $2; next }
  $2 != "total" { sub("/.*", "", $2); lines[$2] += $1 }
  function row(name, is, most) { printf "lint: size %-12s %6d lines of Go without tests, %d allowed%s\n", name, is, most, (is > most ? ": TOO MANY" : ""); bad += (is > most) }
  END {
    for (name in lines) { row(name, lines[name], allowed[name] + 0); total += lines[name]; sum += allowed[name] }
    row("total", total, sum)
    exit bad > 0
  }' ci/size.yaml - | sort
