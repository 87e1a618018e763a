package scenario

import (
	"cmp"
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

// Data writes secrets through every API server in turn, reads them back, or migrates them.
type Data struct {
	Op    string `yaml:"op" required:"true" enum:"write,verify,migrate"`
	Count int    `yaml:"count,omitempty" minimum:"1" maximum:"20000"`  // 0: 3
	Size  int    `yaml:"size,omitempty" minimum:"1" maximum:"1048576"` // in bytes of each; 0: 256
	// AuditID is that of all requests; empty: each has its own.
	AuditID string `yaml:"auditID,omitempty" pattern:"^[A-Za-z0-9-]{1,64}$" expected:"letters, digits and dashes, at most 64" without:"op=migrate" why:"nothing depends on it there" description:"Audit-ID that a client gives all its requests; default each has its own"`
}

// Objects is how many objects of how many bytes are written.
func (d *Data) Objects() (count, size int) { return cmp.Or(d.Count, 3), cmp.Or(d.Size, 256) }

// ClusterWide implements ClusterWide: objects are written through each API server.
func (*Data) ClusterWide() {}

func (*Data) About() string {
	return "writes secrets, or reads them all back"
}

func (d *Data) Validate(v Validation) {
	if v.Scenario().Topology.ByOperator() && d.Op == DataMigrate {
		v.Add("op", "op migrate with lifecycle operator, expected write or verify: the operator migrates")
	}
}

// DataSizes are the sizes in bytes of the objects that are written before, during and after every switch of the encryption: the
// least, a few blocks, some pages. One with MaxObjectBytes comes before the first.
func DataSizes() []int { return []int{1, 64, 2 << 10} }

// LoadValue is what the load of a switch writes into an object at its n-th write. It is different each time, and has nothing of the
// object's name, which may stand in logs where the value must not.
func LoadValue(object string, n int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s at its write %d", object, n))
	return sum[:]
}
