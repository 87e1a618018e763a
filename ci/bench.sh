#!/usr/bin/env bash
# Benchmarks. Each prints what it measured, the baseline it was measured against in the same run, and their ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchmem ./contract/... ./harness/check/... ./harness/controlplane/... ./harness/cluster/virtual/store
# Side by side in short slices: enough of them that the noise of a busy machine cancels out.
go test -run '^$' -bench . -benchtime 60000x ./fakeplugin/...
# sim: how many times faster than real time an hour at production's interval goes, judging included.
go test -run '^$' -bench Seed -benchtime 5x ./harness/swarm
# Alternative services: time of a request of plain client-go to that of a wrapped client, and of a request through a load balancer to
# that of a direct one.
go test -run '^$' -bench . -benchtime 100x ./altsvc
