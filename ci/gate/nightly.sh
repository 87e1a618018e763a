#!/usr/bin/env bash
# The night: everything that the gate (.ci/run) leaves out, in one command with one summary and one exit code. It takes hours.
#
#   STAGES      the stages to run, separated by spaces (default: all). The result of each is kept in OUT, so that several runs on one
#               commit complete one table, which shows what none of them has judged.
#   OUT         the folder of all output (_nightly)
#   FUZZTIME    how long each fuzz target runs (60s)
#   TIME_LIMIT  seconds for everything (41400)
set -uo pipefail
cd "$(dirname "$0")/../.."
. ci/gate/stages.sh
default_time=41400
supervised "$@"

export OUT=${OUT:-_nightly}
STATE=$OUT/$(git rev-parse HEAD)
mkdir -p "$STATE"
asked=${STAGES:-}
# simulated draws so many seeds. Two cores judge those of all stages in 90 minutes.
simulated() { bin/kmsharness simulate --seeds "1-$2" --out "$OUT/$1" "${@:3}"; }

# aggregators repeats what restarts an aggregator: whether a leader hands over in time depends on when it is asked to.
aggregators() { bin/kmsharness run scenarios/catalogue/aggregator-{asked-to-leave,handed-over,restarted}.yaml --backend local --repeat 10 --out "$OUT"/aggregators; }

# providers are e2e-framework's clusters on kind, for tests of other projects, and what a reporter may reach on one of kind's nodes.
providers() { KMSHARNESS_KIND=1 KMSHARNESS_BIN=$PWD/bin go test -p 1 -count=1 -v -timeout 30m ./harness/backend/kind/...; }

# leftovers compares what is on the machine before and after a run, on each backend.
leftovers() {
  ci/leftovers.sh bin/kmsharness run scenarios/catalogue/plugin-hangs.yaml --backend local --out "$OUT"/leftovers-local &&
    ci/leftovers.sh bin/kmsharness run scenarios/catalogue/sno-plugin-hangs.yaml --backend kind --out "$OUT"/leftovers-kind
}
export -f simulated aggregators providers leftovers

# What needs clusters needs an engine, which an earlier run has stopped again.
for name in kind kind-stream providers leftovers; do ! wanted "$name" || STAGES="${STAGES:+$STAGES engine node-image}"; done
! wanted unit || STAGES="${STAGES:+$STAGES browser binaries}"
[ -z "${STAGES:-}" ] || STAGES+=' build'

stage build 1800 make build
stage govulncheck 900 go run -modfile=ci/tools/go.mod golang.org/x/vuln/cmd/govulncheck ./...
# What unit needs, or its tests are skipped, which fails it: a browser, and etcd and kube-apiserver, which one scenario obtains and tries.
stage browser 600 ci/browser.sh
stage binaries 3600 bin/kmsharness run scenarios/catalogue/steady-state.yaml --backend local --out "$OUT"/binaries
stage unit 5400 env KMSHARNESS_WORLDS=200 ci/gate/unit.sh "$OUT"/unit.log
stage golden 3600 make golden
stage sim 600 make e2e BACKEND=sim LABELS=all CONTRACT=both OUT="$OUT"/sim
# Three older kube-apiservers, which are built once.
stage releases 5400 bin/kmsharness run scenarios/catalogue/kubernetes-releases-mixed.yaml --backend local --out "$OUT"/releases
stage local 9000 make e2e BACKEND=local LABELS=all CONTRACT=both OUT="$OUT"/local
stage local-stream 9000 make e2e BACKEND=local LABELS=all CONTRACT=both PUBLISH=stream OUT="$OUT"/local-stream
stage diff-sim 300 bin/kmsharness diff "$OUT"/sim "$OUT"/local
stage aggregators 3600 bash -c aggregators
stage mutants 3600 make mutants CONTRACT=both
stage variants 3600 env KMSHARNESS_VARIANTS=1 go test -count=1 -timeout 60m -run 'TestVariantsConform|TestEachCapabilityOff' ./scenarios/mutants/kmsplugin
stage confirm 3600 make confirm
stage readme 5400 make readme CHECK=1
stage seeds 3600 bash -c 'simulated seeds 400 --hours 1'
stage operator-seeds 5400 bash -c 'simulated operator-seeds 1000 --operator'
stage stream-seeds 3600 bash -c 'simulated stream-seeds 2000 --publish stream'
stage fuzz 7200 make fuzz FUZZTIME="${FUZZTIME:-60s}"
stage large 3600 make large
stage bench 3600 make bench
stage engine 600 make engine
stage node-image 1800 make node-image
stage kind 21600 make e2e BACKEND=kind LABELS=all CONTRACT=both OUT="$OUT"/kind
# What only kind can judge, once more with reporters that stream.
stage kind-stream 5400 make e2e BACKEND=kind PUBLISH=stream OUT="$OUT"/kind-stream
stage diff-kind 300 bin/kmsharness diff "$OUT"/local "$OUT"/kind
stage providers 3600 bash -c providers
stage leftovers 1200 bash -c leftovers
stage gate-killed 5400 ci/gate/killed.sh

# The table of all runs on this commit.
stages_table=()
for name in "${stages_names[@]}"; do
  line=$(cat "$STATE/$name" 2>/dev/null) || { line=$(printf '%-13s NOT JUDGED on this commit' "$name"); [ -n "$asked" ] || stages_failed=1; }
  [[ $line != *FAILED* ]] || stages_failed=1
  stages_table+=("$line")
done
summary
