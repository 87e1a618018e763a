package network

import (
	"net/netip"
	"time"
)

// Hash is a number that is always the same for the same parts. Its zero value has none.
type Hash uint64

// Text mixes a string in (FNV-1a, then its length, so that "ab","c" and "a","bc" differ).
func (h Hash) Text(s string) Hash {
	for i := range len(s) {
		h = (h ^ Hash(s[i])) * 0x100000001b3
	}
	return h.Number(int64(len(s)))
}

// Number mixes a number in, by the finalizer of SplitMix64: bits that differ by one give unrelated hashes. It is no
// cryptographic hash.
func (h Hash) Number(n int64) Hash {
	h ^= Hash(n)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Below is a duration from 0 up to a limit, which it does not reach.
func (h Hash) Below(limit time.Duration) time.Duration {
	return time.Duration(uint64(h.Number(0)) % uint64(limit))
}

// client is the address that a server sees of a client: 10.0.0.0/8 and an ephemeral port (32768 and above on Linux).
// Clients with many connections differ, as audit lines and flow control do by source.
func (h Hash) client() string {
	h = h.Number(3)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1 + byte(h>>8)%200, byte(h >> 16), byte(h >> 24)}), 32768+uint16(h>>32)%28000).String()
}
