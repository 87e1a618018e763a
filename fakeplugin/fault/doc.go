// Package fault has the faults of a fake plugin as values (the catalogue), the faults in force, and the decision which
// fault affects a call (Decide) or the socket (DecideSocket). The decisions are pure functions of the faults in force,
// the method, the time and a random source. Package server carries them out.
//
// To add a fault, add one Definition to the table for its scope, and one test of its effect in package server. A test
// there fails for a fault without such a test.
package fault
