package swarm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// Hash is one of the histories of many seeds: the sum of what each adds, so that neither the order nor the shards matter. The empty
// one is of no seed. It tells runs apart that differ by chance or mistake, not by intent.
type Hash string

const hashPrefix = "sha256:"

// With is the hash of one history more.
func (h Hash) With(seed int64, history [sha256.Size]byte) Hash {
	var line [8 + sha256.Size]byte
	binary.BigEndian.PutUint64(line[:8], uint64(seed))
	copy(line[8:], history[:])
	sum := sha256.Sum256(line[:])
	return hashOf(new(big.Int).Add(h.number(), new(big.Int).SetBytes(sum[:])))
}

// And is the hash of the seeds of both.
func (h Hash) And(o Hash) Hash { return hashOf(new(big.Int).Add(h.number(), o.number())) }

func hashOf(n *big.Int) Hash {
	n.Mod(n, new(big.Int).Lsh(big.NewInt(1), 8*sha256.Size))
	return Hash(fmt.Sprintf("%s%064x", hashPrefix, n))
}

func (h Hash) number() *big.Int {
	n, ok := new(big.Int).SetString(strings.TrimPrefix(string(h), hashPrefix), 16)
	if !ok {
		return new(big.Int)
	}
	return n
}
