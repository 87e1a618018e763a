package scenario

import (
	"crypto/sha256"
	"fmt"
)

// Operations of data.
const (
	DataWrite   = "write"   // secrets, through every API server in turn
	DataVerify  = "verify"  // read all that were written through every API server
	DataMigrate = "migrate" // write every secret of the cluster anew, as after a rotation
)

// Limits of data.
const (
	// MaxObjects of one step.
	MaxObjects = 20_000
	// MaxObjectBytes is what a Secret may hold.
	MaxObjectBytes = 1 << 20
)

// DataSizes are the sizes in bytes of the objects that are written before, during and after every switch of the encryption: the
// least, a few blocks, some pages. One with MaxObjectBytes comes in at the beginning of each.
func DataSizes() []int { return []int{1, 64, 2 << 10} }

func dataOps() []string { return []string{DataWrite, DataVerify, DataMigrate} }

// LoadValue is what the load of a switch writes into an object at its n-th write. It is different each time, and has nothing of the
// object's name, which may stand in logs where the value must not.
func LoadValue(object string, n int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s at its write %d", object, n))
	return sum[:]
}
