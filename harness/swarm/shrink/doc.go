// Package shrink makes what fails shorter, as long as it goes on failing in the same way. Whether it does is asked of a function; what
// is asked, and in which order, depends on the answers alone, so the same questions give the same result.
//
// What does not live here: running scenarios, and what "the same way" is (harness/swarm).
package shrink
