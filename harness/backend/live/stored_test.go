package live

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// sealed is a value as kube-apiserver stores it with KMS v2.
func sealed(provider, kekID string) []byte {
	m := protowire.AppendTag(nil, 1, protowire.BytesType)
	m = protowire.AppendBytes(m, []byte("data with a : in it"))
	m = protowire.AppendTag(m, 2, protowire.BytesType)
	m = protowire.AppendString(m, kekID)
	m = protowire.AppendTag(m, 3, protowire.BytesType)
	m = protowire.AppendString(m, "a sealed seed")
	m = protowire.AppendTag(m, 5, protowire.VarintType)
	m = protowire.AppendVarint(m, 1)
	return append([]byte(prefixKMS+provider+":"), m...)
}

func TestParseStored(t *testing.T) {
	for name, test := range map[string]struct {
		value []byte
		want  stored
	}{
		"kms":      {sealed("kms-2", "kek-1"), stored{under{"kms-2", "kek-1"}, []byte("data with a : in it"), []byte("a sealed seed")}},
		"identity": {[]byte("k8s\x00\x0a\x0c\x0a\x02v1"), stored{under: under{provider: "identity"}}},
		"aescbc":   {[]byte("k8s:enc:aescbc:v1:2:x:yz"), stored{under: under{provider: "aescbc-2"}}},
		"aesgcm":   {[]byte("k8s:enc:aesgcm:v1:key-1:\x00"), stored{under: under{provider: "aesgcm-key-1"}}},
	} {
		got, err := parseStored(test.value)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, value := range map[string][]byte{
		"no end":    []byte(prefixKMS + "kms-1"),
		"no object": []byte(prefixKMS + "kms-1:\xff\xff\xff"),
		"no key":    []byte("k8s:enc:aescbc:v1:2"),
		"unknown":   []byte("k8s:enc:secretbox:v1:1:x"),
	} {
		if got, err := parseStored(value); err == nil {
			t.Errorf("%s: %+v without an error", name, got)
		}
	}
}

func FuzzParseStored(f *testing.F) {
	f.Add(sealed("kms-1", "kek"))
	f.Add([]byte("k8s:enc:"))
	f.Fuzz(func(_ *testing.T, value []byte) { _, _ = parseStored(value) })
}
