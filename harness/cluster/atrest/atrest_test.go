package atrest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
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

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		value []byte
		want  Object
	}{
		"kms":      {sealed("kms-2", "kek-1"), Object{Under{"kms-2", "kek-1"}, []byte("data with a : in it"), []byte("a sealed seed")}},
		"identity": {[]byte("k8s\x00\x0a\x0c\x0a\x02v1"), Object{Under: Under{Provider: "identity"}}},
		"aescbc":   {[]byte("k8s:enc:aescbc:v1:2:x:yz"), Object{Under: Under{Provider: "aescbc-2"}}},
		"aesgcm":   {[]byte("k8s:enc:aesgcm:v1:key-1:\x00"), Object{Under: Under{Provider: "aesgcm-key-1"}}},
	} {
		got, err := Parse(test.value)
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
		if got, err := Parse(value); err == nil {
			t.Errorf("%s: %+v without an error", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sealed("kms-1", "kek"))
	f.Add([]byte("k8s:enc:"))
	f.Fuzz(func(_ *testing.T, value []byte) { _, _ = Parse(value) })
}

// A census has one line for each key, with an example, and is refused by what nobody can read.
func TestCensus(t *testing.T) {
	counted := map[Under]*history.Under{}
	page := []cluster.KeyValue{
		{Key: []byte("/registry/secrets/a/one"), Value: sealed("kms-1", "kek-1")}, {Key: []byte("/registry/secrets/a/two"), Value: sealed("kms-1", "kek-1")},
		{Key: []byte("/registry/secrets/b/three"), Value: sealed("kms-1", "kek-2")}, {Key: []byte("/registry/secrets/b/four"), Value: []byte("k8s:enc:aescbc:v1:2:x")},
		{Key: []byte("/registry/secrets/c/five"), Value: []byte("k8s\x00clear")},
	}
	if err := count(counted, page); err != nil {
		t.Fatal(err)
	}
	want := []history.Under{
		{Provider: "aescbc-2", Count: 1, Example: "secrets/b/four"}, {Provider: "identity", Count: 1, Example: "secrets/c/five"},
		{Provider: "kms-1", KEKID: "kek-1", Count: 2, Example: "secrets/a/one"}, {Provider: "kms-1", KEKID: "kek-2", Count: 1, Example: "secrets/b/three"},
	}
	if got := sorted(counted); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if err := count(counted, []cluster.KeyValue{{Key: []byte("/registry/secrets/a/bad"), Value: []byte("k8s:enc:secretbox:v1:1:x")}}); err == nil {
		t.Error("a prefix that nobody knows was counted")
	}
	if got := PrefixEnd("/registry/secrets/"); got != "/registry/secrets0" {
		t.Error(got)
	}
}
