// Package shrink shortens a failing input as long as it still fails in the same way. A function of the caller decides
// that. The attempts and their order depend only on its answers, so that the same answers give the same result.
//
// Running scenarios, and the meaning of "the same way", are in harness/swarm.
package shrink
