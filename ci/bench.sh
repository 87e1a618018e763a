#!/usr/bin/env bash
# Benchmarks. Each prints what it measured, the baseline it was measured against in the same run, and their ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchmem ./contract/... ./harness/check/... ./harness/controlplane/... ./harness/backend/sim/store
# Side by side in short slices: enough of them that the noise of a busy machine cancels out.
go test -run '^$' -bench . -benchtime 60000x ./fakeplugin/...
