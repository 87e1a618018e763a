// Package fault is the fault program of a fake plugin: what can go wrong, as values (the catalogue), which of it is in
// force, and the decision what goes wrong with one call (Decide) or with the socket (DecideSocket). The decisions are
// pure functions of the faults in force, the method, the time and a random source; carrying them out is the server's
// business.
//
// Adding a fault is one Definition in the file that fits its scope, one line in Catalogue, and one test of its effect
// in the server's package, which fails for a fault without one.
package fault
