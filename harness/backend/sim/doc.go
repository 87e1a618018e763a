// Package sim is a backend without anything real but the decisions: the cores of reporter and aggregator run in virtual time
// against models of everything else, from one seed. The same scenario, seed and commit give the same history, byte for byte.
//
// What is modelled, and how it is told apart from what is not: processes that start, die, stand still and go on (proc.go);
// links and connections (link.go, conn.go, dial.go); etcd and API servers with latency, watches and their lag, who may do what,
// what an apply costs (etcd.go, server.go, watch.go, authorize.go, merging.go), envelope encryption (envelope.go, provider.go,
// reload.go, secret.go) and an operator that switches it (do_encryption.go, stages.go, migrate.go), clocks that are wrong
// (do_clock.go), and API servers beside kube-apiserver with the aggregation layer before them (further.go, aggregation.go,
// environment_further.go); plugins, which answer with the fake plugin's own code (plugin.go), and the remote KMS, which is its
// model itself. The adapters around the cores are as thin as they can be (reporter.go, publish.go, aggregator.go, mirror.go,
// elect.go): what only real adapters can get wrong is found on backends with real processes.
//
// Everything runs in one thread of control (package kernel), and nothing here is safe for concurrent use.
package sim
