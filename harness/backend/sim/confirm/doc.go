// Package confirm holds what the simulation's models say of a real API server against one: docs/model.md lists each rule with the
// test that confirms it, and a test here reads that list. The tests need etcd and kube-apiserver, and are skipped without; some
// take minutes, because the time spans of KMS v2 are constants of kube-apiserver.
//
// What does not live here: the models (harness/backend/sim), and the differential test of the store, which is its own
// (harness/backend/sim/store).
package confirm
