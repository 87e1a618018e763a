// Package controller carries out what aggregator/core decides: it mirrors the operator's CR, the ClusterOperator, the
// encryption configuration and the expected nodes, steps the core on every change and at every instant that the core
// asks for, and writes what it wants under the aggregator's field manager. Leader election lives here too.
//
// What to say, and when, is decided in aggregator/core alone.
package controller
