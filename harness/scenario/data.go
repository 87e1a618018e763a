package scenario

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
// least, a block or four, some pages, and the most that a Secret may hold.
func DataSizes() []int { return []int{1, 64, 2 << 10, MaxObjectBytes} }

func dataOps() []string { return []string{DataWrite, DataVerify, DataMigrate} }
