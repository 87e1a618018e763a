#!/usr/bin/env bash
# Benchmarks. Each prints what it measured, the baseline it was measured against in the same run, and their ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchmem ./contract/... ./harness/check/... ./harness/controlplane/... ./harness/backend/sim/store
# Side by side in short slices: enough of them that the noise of a busy machine cancels out.
go test -run '^$' -bench . -benchtime 60000x ./fakeplugin/...
# The simulator: what one probe and write of one node costs, and how many times faster than real time the whole goes. Beside each
# number of nodes stands its ratio to 3 nodes. For 30, 300 and 3,000 nodes, log N gives 3.1, 5.2 and 7.3, and N log N 31, 519 and 7,288.
go test -run '^$' -bench 'Interval' -benchtime 20x ./harness/backend/sim | awk '
	/node-tick/ { for (i = 2; i < NF; i++) if ($(i + 1) == "us/node-tick") cost = $i
		split($1, name, "/"); sub(/-.*/, "", name[3])
		if (name[3] == 3) three = cost
		print $0 "\t" sprintf("%.1f", cost / three) " of 3 nodes"; next }
	{ print }'
# Alternative services: time of a request of plain client-go to that of a wrapped client, and of a request through a load balancer to
# that of a direct one.
go test -run '^$' -bench . -benchtime 100x ./harness/altsvc
