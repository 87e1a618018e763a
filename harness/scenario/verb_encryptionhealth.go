package scenario

import "github.com/kmsharness/kmsharness/harness/history"

// EncryptionHealth changes the spec of the EncryptionHealth, which the aggregator sends to reporters that stream.
type EncryptionHealth struct {
	KeyIDs []string `yaml:"keyIDs,omitempty,flow" item:"keyID" minItems:"1" maxItems:"8" uniqueItems:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$" expected:"letters, digits and dashes, at most 63" description:"plugins that reporters should run with, the write key first; default any"`
}

func (*EncryptionHealth) About() string { return "changes the spec of the EncryptionHealth" }

func (*EncryptionHealth) Validate(v Validation) {
	if c := v.Scenario().Topology.Connectivity; c != history.ConnectStream {
		v.Add("", "encryptionhealth with connectivity %s, expected connectivity stream", c)
	}
}
