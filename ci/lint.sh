#!/usr/bin/env bash
# Lint: each check prints what it found; all of them run, then the exit code tells.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

# check NAME COMMAND… fails when the command fails or prints anything but that it downloads modules.
check() {
  local name=$1 out failure=0; shift
  out=$("$@" 2>&1) || failure=$?
  out=$(grep -v '^go: downloading ' <<<"$out")
  if [ "$failure" -ne 0 ] || [ -n "$out" ]; then
    printf 'lint: %s\n%s\n' "$name" "$out"; failed=1
  else
    printf 'lint: %-12s ok\n' "$name"
  fi
}

staticcheck() { go run -modfile=ci/tools/go.mod honnef.co/go/tools/cmd/staticcheck ./...; }

# Waiting is for an observed change, with a deadline; a sleep hides a race until the day the machine is slow.
no_sleeps() { git grep -nE 'time\.Sleep\(' -- '*.go'; true; }

# Every package says what lives in it.
package_comments() {
  local dir
  for dir in $(git ls-files '*.go' | grep -v '_test\.go$' | xargs -n1 dirname | sort -u); do
    grep -qsE '^// (Package|Command) |^Package ' "$dir"/*.go || echo "$dir: no package comment"
  done
}

# The arrows between rooms (docs/architecture.md); an import against them is a design error.
arrows() {
  local mod=github.com/kmsharness/kmsharness
  local all
  all=$(go list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./...)
  # imports prints what one package imports of this module, or all packages below DIR/....
  imports() {
    local dir=${1#./} end=' '
    [[ $dir != */... ]] || { dir=${dir%/...} end='[/ ]'; }
    grep -E "^$mod/$dir$end" <<<"$all" | cut -d' ' -f2 | grep "^$mod/"
  }
  imports ./contract/... | grep -v "^$mod/contract"
  imports ./harness/check/... | grep -vE "^$mod/(contract|harness/history|harness/check)"
  imports ./harness/lifecycle/encryption | grep -v "^$mod/harness/lifecycle/encryption"
  imports ./harness/trace/... | grep -vE "^$mod/(contract|harness/history|harness/trace|internal/suggest)"
  imports ./harness/lifecycle/sidecar | grep -v "^$mod/harness/lifecycle/sidecar"
  imports ./harness/lifecycle/... | grep -vE "^$mod/(contract|harness/lifecycle/.*)\$"
  imports ./harness/lifecycle/config | grep -vE "^$mod/(contract|harness/lifecycle/config)\$"
  for room in revision core model exchange; do # pure: no room that acts
    imports "./harness/lifecycle/$room" | grep -vE "^$mod/(contract|harness/lifecycle/(config|revision|core|model|exchange))\$"
  done
  imports ./harness/backend/operated | grep -vE "^$mod/(contract|harness/(history|scenario|lifecycle/(config|revision|core|exchange|encryption)|backend/operated))\$"
  imports ./harness/backend/sim/store | grep -vE "^$mod/(ci/crds|harness/backend/sim/store)\$"
  imports ./harness/netfault/... | grep -v "^$mod/harness/netfault"
  imports ./fakeplugin/profile | grep -v "^$mod/fakeplugin/profile\$"
  imports ./harness/report/series | grep -vE "^$mod/(contract|harness/(history|report/series))\$"
  # Hold is in every container under test: what it imports, it weighs.
  imports ./harness/hold | grep -vE "^$mod/(harness/(hold|history|process|stall)|fakeplugin/(endpoint|httpjson))\$"
  for room in reporter aggregator fakeplugin; do
    imports "./$room/..." | grep -vE "^$mod/($room|contract|ci/|internal/)"
  done
  true
}

# The job files call what the Makefile has. Without it, a misspelt variable runs something else, and is green.
job_files() { local out; out=$(go test ./ci/jobs 2>&1) || echo "$out"; }

check gofmt gofmt -l $(git ls-files '*.go')
check vet go vet ./...
check staticcheck staticcheck
check mod-tidy go mod tidy -diff
check sleeps no_sleeps
check comments package_comments
check arrows arrows
check jobs job_files
exit $failed
