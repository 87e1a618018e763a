package scenario

// VerbEncryption changes the cluster's encryption type, or its plugins.
const VerbEncryption Verb = "encryption"

// Types of spec.encryption.type of the cluster's APIServer configuration.
const (
	TypeKMS      = "KMS"
	TypeIdentity = "identity"
	TypeAESCBC   = "aescbc"
	TypeAESGCM   = "aesgcm"
)

func encryptionTypes() []string { return []string{TypeKMS, TypeIdentity, TypeAESCBC, TypeAESGCM} }

// Encryption switches the cluster's encryption, as an operator would.
type Encryption struct {
	Type string
	// KeyIDs are the plugins, or keys, from now on, the write key first; empty: those from before.
	KeyIDs []string
}

// Verb implements Action.
func (*Encryption) Verb() Verb { return VerbEncryption }

func (e *Encryption) fields() []field {
	keyIDs := listField(&e.KeyIDs, some(formed(keyIDForm), MaxKeyIDs))
	keyIDs.check = func(v *validation, at place, _ string) {
		if e.Type == TypeIdentity {
			v.add(at, "keyIDs with type identity, expected none: clear text has no key")
			return
		}
		v.keyIDList(at, e.KeyIDs)
	}
	return []field{required("type", keywordField(&e.Type, encryptionTypes()...)), optional("keyIDs", keyIDs)}
}

// Describe implements Action.
func (e *Encryption) Describe() string { return "encryption type " + e.Type + parameters(e, "type") }

func (*Encryption) ofCluster() {}

func (*Encryption) harm() string { return string(VerbEncryption) }

func (e *Encryption) check(v *validation, at place) {
	if v.scenario.Topology.ByOperator() {
		v.add(at, "encryption with lifecycle operator, expected apiserver: the operator switches, nobody else")
	}
}
