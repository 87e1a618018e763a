package operand_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// What an operator rolls out is named as histories name it, whichever types are in it.
func TestReadRollOut(t *testing.T) {
	material := []byte(strings.Repeat("k", revision.MaterialSize))
	plugin, err := config.NewPlugin("AWS", "", map[string]string{"keyARN": "arn:aws:kms:us-east-1:123456789012:key/a", "region": "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	keys := []revision.Key{{ID: 1, Type: config.AESCBC}, {ID: 2, Type: config.KMS, Plugin: plugin}, {ID: 3, Type: config.AESGCM}}
	file := revision.File{Resources: []string{"secrets"}, Keys: keys, Material: map[uint64][]byte{1: material, 3: material}, Dir: "/run"}
	for _, test := range []struct {
		keys []uint64
		want string
	}{{[]uint64{2, 1, 3}, "kms-2 aescbc-1 aesgcm-3 identity"}, {[]uint64{revision.Plain, 2}, "identity kms-2"}} {
		text, err := file.YAML(revision.Config{Revision: 1, Keys: append([]uint64{}, test.keys...)})
		if test.keys[0] == revision.Plain {
			file.Keys = append(file.Keys, revision.Key{Type: config.Identity})
			text, err = file.YAML(revision.Config{Revision: 1, Keys: test.keys})
		}
		if err != nil {
			t.Fatal(err)
		}
		read, err := operand.ReadRollOut(text)
		providers, secret := read.Providers.Names(), read.Keys
		if got := strings.Join(providers, " "); err != nil || got != test.want {
			t.Errorf("%q, %v, want %q", got, err, test.want)
		}
		if slices.Contains(providers, "aescbc-1") && (len(secret) != 2 || string(secret[0]) != string(material)) {
			t.Errorf("%d keys", len(secret))
		}
	}
	for _, text := range []string{"", "resources: []", "resources: 7", "{", "resources: [{providers: [{kms: {name: kms-1, endpoint: here}}]}]", "resources: [{providers: [{kms: {name: one, endpoint: here}}]}]",
		"resources: [{providers: [{kms: {name: kms-1, endpoint: 'unix:///d/kms-2.sock'}}]}]"} {
		if _, err := operand.ReadRollOut([]byte(text)); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

// What apiserver writes is what operator/config reads, the annotation's way included.
func TestWish(t *testing.T) {
	for _, test := range []struct {
		a    scenario.APIServer
		at   []string
		want string
	}{
		{scenario.APIServer{Type: "aescbc"}, []string{"spec", "encryption", "type"}, "aescbc"},
		{scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"vault": {"vaultKeyPath": "transit/keys/x"}}}, []string{"spec", "encryption", "kms", "vault", "vaultKeyPath"}, "transit/keys/x"},
		{scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"vault": {}}}, []string{"spec", "encryption", "kms", "vault", "vaultAddress"}, "https://vault.example.com:8200"},
		{scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"aws": {"keyARN": "x"}}}, []string{"metadata", "annotations", config.Annotation}, `{"aws":{"keyARN":"x"},"type":"AWS"}`},
		{scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"aws": {"keyARN": "x"}}}, []string{"spec", "encryption", "kms", "vault", "vaultAddress"}, config.Placeholder},
	} {
		wanted, err := operand.Desired(&test.a, "")
		if err != nil {
			t.Fatal(err)
		}
		got := any(wanted.Configuration.Object)
		for _, name := range test.at {
			m, _ := got.(map[string]any)
			got = m[name]
		}
		if got != test.want {
			t.Errorf("%v: %v is %v, want %v", test.a, test.at, got, test.want)
		}
	}
	if _, err := operand.Desired(&scenario.APIServer{Type: "KMS"}, ""); err == nil {
		t.Error("KMS without a provider is accepted")
	}
}

// A file as OpenShift's operators write it has a list for each resource, providers that are named after key and resource, and identity keys as empty
// aesgcm keys at the end.
func TestReadRollOutOfOpenShift(t *testing.T) {
	const zeroes = "AAAAAAAAAAAAAAAAAAAAAA=="
	list := func(resource, providers string) string {
		return "- resources: [" + resource + "]\n  providers: " + strings.ReplaceAll(providers, "RESOURCE", resource) + "\n"
	}
	for _, test := range []struct{ providers, want, writer, reads string }{
		{`[{kms: {apiVersion: v2, name: 3_RESOURCE, endpoint: "unix:///var/run/kmsplugin/kms-3.sock"}}, {identity: {}}, {aesgcm: {keys: [{name: "2", secret: ` + zeroes + `}]}}]`, "kms-3 identity", "3", "2"},
		{`[{identity: {}}, {aesgcm: {keys: [{name: "4", secret: ` + zeroes + `}]}}, {aescbc: {keys: [{name: "1", secret: QUJD}]}}]`, "identity aescbc-1", "4", "1"},
		{`[{identity: {}}, {aescbc: {keys: [{name: "1", secret: QUJD}]}}]`, "identity aescbc-1", "", "1"},
	} {
		read, err := operand.ReadRollOut([]byte("resources:\n" + list("configmaps", test.providers) + list("secrets", test.providers)))
		if err != nil || strings.Join(read.Providers.Names(), " ") != test.want || read.Writer() != test.writer || !read.Reads(test.reads) || read.Reads("9") {
			t.Errorf("%s: %+v, %v", test.providers, read, err)
		}
		if strings.Join(read.Resources, " ") != "configmaps secrets" {
			t.Errorf("resources %v", read.Resources)
		}
	}
}
