// Package swarm draws scenarios from seeds and simulates them. Each seed has a topology and random faults, some at the
// same time. The engine then ends all faults and requires a healthy cluster. A drawn scenario has no other
// expectations: the invariants judge it.
//
// A drawn scenario is an ordinary scenario file and runs on every backend. sim is harness/cluster/virtual, the
// invariants are in harness/check.
package swarm
