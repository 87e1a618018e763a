// Package confirm tests the simulator's models against a real API server: docs/model.md lists each rule with the test
// that confirms it, and a test here reads that list. The tests need etcd and kube-apiserver, and are skipped without
// them. Some take minutes, because the intervals of KMS v2 are constants of kube-apiserver.
//
// The models are in harness/backend/sim, the differential test of the store in harness/backend/sim/store.
package confirm
