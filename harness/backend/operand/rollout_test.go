package operand_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// What was readable stays so, and nothing is encrypted any more; a second time changes nothing.
func TestWritingClearText(t *testing.T) {
	material := []byte(strings.Repeat("k", revision.MaterialSize))
	plugin, err := config.NewPlugin("AWS", "", map[string]string{"keyARN": "arn:aws:kms:us-east-1:123456789012:key/a", "region": "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	keys := []revision.Key{{ID: 1, Type: config.AESCBC}, {ID: 2, Type: config.KMS, Plugin: plugin}}
	text, err := revision.File{Resources: []string{"secrets"}, Keys: keys, Material: map[uint64][]byte{1: material}, Dir: "/run"}.YAML(revision.Config{Revision: 1, Keys: []uint64{2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if text, err = operand.WritingClearText(text); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		read, err := operand.ReadRollOut(text)
		if err != nil || read.Providers.String() != "identity, kms-2, aescbc-1" || len(read.Keys) != 1 || string(read.Keys[0]) != string(material) {
			t.Fatalf("%d: %s, %v", i, read.Providers, err)
		}
	}
	for _, bad := range []string{"", "[", "resources: []", "resources: [{providers: [{aescbc: {}}]}]", "resources: [1]"} {
		if _, err := operand.WritingClearText([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
