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
	// KEP-3926: what cannot be read is named by the error of a list, and deleted by a verb of its own.
	DataUnreadable = "unreadable" // find so many objects that cannot be read
	DataDiscard    = "discard"    // find and delete them
	// A snapshot of the objects in etcd.
	DataSnapshot = "snapshot"
	DataRestore  = "restore"
)

// Limits of data.
const (
	// MaxObjects of one step.
	MaxObjects = 20_000
	// MaxObjectBytes is what a Secret may hold.
	MaxObjectBytes = 1 << 20
	// maxUnreadable is how many the error of a list names.
	maxUnreadable = 99
)

// Data writes secrets through every API server in turn, reads them back, or migrates them.
type Data struct {
	Op    string `yaml:"op" required:"true" enum:"write,verify,migrate,unreadable,discard,snapshot,restore"`
	Count int    `yaml:"count,omitempty" minimum:"1" maximum:"20000"`  // 0: 3
	Size  int    `yaml:"size,omitempty" minimum:"1" maximum:"1048576"` // in bytes of each; 0: 256
	// AuditID is that of all requests; empty: each has its own.
	AuditID string `yaml:"auditID,omitempty" pattern:"^[A-Za-z0-9-]{1,64}$" expected:"letters, digits and dashes, at most 64" without:"op=migrate,unreadable,discard,snapshot,restore" why:"nothing depends on it there" description:"Audit-ID that a client gives all its requests; default each has its own"`
}

// Objects is how many objects of how many bytes are written.
func (d *Data) Objects() (count, size int) { return cmp.Or(d.Count, 3), cmp.Or(d.Size, 256) }

// ClusterWide implements ClusterWide: objects are written through each API server.
func (*Data) ClusterWide() {}

func (*Data) About() string {
	return "writes secrets, reads them all back, keeps and restores them in etcd, or finds those that cannot be read"
}

func (d *Data) Validate(v Validation) {
	if v.Scenario().Topology.ByOperator() && d.Op == DataMigrate {
		v.Add("op", "op migrate with lifecycle operator, expected write or verify: the operator migrates")
	}
	if d.Op != DataUnreadable && d.Op != DataDiscard {
		return
	}
	if d.Count < 1 || d.Count > maxUnreadable {
		v.Add("op", "op %s without count, expected how many objects cannot be read, from 1 to %d: an API server names no more", d.Op, maxUnreadable)
	}
	if len(v.Scenario().Topology.APIServers) > 1 {
		v.Add("op", "op %s with several API servers, expected kube-apiserver alone: sample-apiserver has no such deletion", d.Op)
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
