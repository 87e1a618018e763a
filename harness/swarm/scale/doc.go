// Package scale simulates one control plane of any size and for any time, and measures the cost.
//
// One plugin fails every hour and recovers: the rollup must show it within the contract's bounds, and nothing else.
// This is the only judgement: the history of a thousand nodes for a day is neither kept nor given to the checker. Seeds
// (harness/swarm) are for the checker.
package scale
