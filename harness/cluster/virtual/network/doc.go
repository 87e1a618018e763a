// Package network is a network in memory, for programs in virtual time (testing/synctest). It knows machines, and links between two of them
// that can be cut, slowed, refused and reset. A machine is a host.Host, which programs dial and listen on.
//
// Latencies are a hash of the seed, of the two ends and of the instant, and of nothing that is counted: goroutines of one instant run in any
// order, and what one connection does must not move what another one does. What is sent on a connection in one instant arrives together, in
// however many writes. The same programs with the same seed exchange the same bytes at the same instants.
//
// No method waits with a mutex held, and Write never waits at all: in a bubble a goroutine that waits for a mutex stops the clock, and
// crypto/tls and HTTP/2 hold theirs while they write.
package network
