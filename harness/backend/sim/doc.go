// Package sim is a backend in virtual time: the real decision cores of reporter, aggregator and operator run against
// models of everything else, from one seed. The same scenario, seed and commit give the same history, byte for byte.
//
// These parts are modelled: processes that start, end, pause and resume (proc.go); links and connections (link.go,
// conn.go, dial.go); etcd and API servers with latency, delayed watches, authorization, and the cost of an apply
// (etcd.go, server.go, watch.go, authorize.go, merging.go); envelope encryption (envelope.go, provider.go, reload.go,
// secret.go) and its switches (do_encryption.go, stages.go, migrate.go); wrong clocks (do_clock.go); and aggregated API
// servers behind the aggregation layer (aggregation.go). Plugins answer with the code of the fake plugin (plugin.go),
// and the remote KMS is the model of package remotekms. The adapters around the cores are minimal (reporter.go,
// publish.go, aggregator.go, informer.go, elect.go): backends with real processes find the defects of real adapters.
//
// Everything runs in one thread of control (package kernel), and nothing here is safe for concurrent use.
package sim
