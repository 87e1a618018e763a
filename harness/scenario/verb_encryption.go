package scenario

// Types of spec.encryption.type of the cluster's APIServer configuration.
const (
	TypeKMS      = "KMS"
	TypeIdentity = "identity"
	TypeAESCBC   = "aescbc"
	TypeAESGCM   = "aesgcm"
)

// Encryption switches the cluster's encryption, as an operator would.
type Encryption struct {
	Type string `yaml:"type" required:"true" enum:"KMS,identity,aescbc,aesgcm"`
	// KeyIDs are the plugins, or keys, from now on, the write key first; empty: those from before.
	KeyIDs []string `yaml:"keyIDs,omitempty,flow" item:"keyID" minItems:"1" maxItems:"8" uniqueItems:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$" without:"type=identity" why:"clear text has no key" expected:"letters, digits and dashes, at most 63"`
}

// ClusterWide implements ClusterWide: the API servers have one configuration.
func (*Encryption) ClusterWide() {}

func (*Encryption) Harm() string { return "encryption" }

func (*Encryption) About() string {
	return "changes the cluster's encryption type, or its plugins"
}

func (e *Encryption) Validate(v Validation) {
	if v.Scenario().Topology.ByOperator() {
		v.Add("", "encryption with lifecycle operator, expected apiserver: the operator switches, nobody else")
	}
}
