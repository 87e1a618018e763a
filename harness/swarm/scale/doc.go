// Package scale runs one control plane of any size for any time, and tells what that cost.
//
// A run is calm but for one plugin that dies every hour and comes back: its rollup must say so, and take it back, within the
// contract's bounds, and otherwise never say anything. That is all that is judged: a history of a thousand nodes for a day is
// neither kept nor given to the checker, which is what seeds are for (harness/swarm).
package scale
