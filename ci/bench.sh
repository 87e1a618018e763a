#!/usr/bin/env bash
# Benchmarks. Each prints what it measured, the baseline it was measured against in the same run, and their ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchmem ./contract/... ./fakeplugin/... ./harness/check/... ./harness/controlplane/...
