package revision_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

const dir = "/var/run/kmsplugin"

func vault(t rapid.TB, key string) config.Plugin {
	t.Helper()
	p, err := config.NewPlugin("Vault", "registry.example.com/kms/vault@sha256:"+strings.Repeat("1", 64), map[string]string{"vaultAddress": "https://vault.example.com", "vaultKeyPath": "transit/keys/" + key,
		"authentication.type": "AppRole", "authentication.appRole.secret.name": "approle"})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// aKey is any key.
func aKey(t *rapid.T, id uint64) (revision.Key, []byte) {
	k := revision.Key{ID: id, Type: rapid.SampledFrom([]config.Type{config.Identity, config.AESCBC, config.AESGCM, config.KMS}).Draw(t, "type"), Migrated: rapid.Bool().Draw(t, "migrated")}
	switch k.Type {
	case config.KMS:
		k.Plugin = vault(t, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "path"))
		k.KEK, k.Initial = rapid.String().Draw(t, "kek"), rapid.String().Draw(t, "initial")
		k.Converged = revision.Convergence{KEK: rapid.String().Draw(t, "converged"), Since: time.Unix(rapid.Int64Range(1, 1e9).Draw(t, "since"), 5).UTC()}
	case config.AESCBC, config.AESGCM:
		return k, bytes.Repeat([]byte{byte(id)}, revision.MaterialSize)
	}
	return k, nil
}

// TestRoundTrip: what is written is read again, whatever it is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := revision.File{Resources: []string{"secrets"}, Dir: dir, Material: map[uint64][]byte{}}
		r := revision.Config{Revision: rapid.IntRange(1, 1000).Draw(t, "revision")}
		p := revision.PluginConfig{Revision: r.Revision + 1}
		for id := range rapid.Uint64Range(1, 5).Draw(t, "keys") {
			k, material := aKey(t, id+1)
			keyRoundTrip(t, k, material)
			f.Keys, f.Material[k.ID] = append(f.Keys, k), material
			r.Keys = append(r.Keys, k.ID)
			if k.Type == config.KMS {
				runs := k.Plugin
				runs.Content = rapid.SampledFrom([]string{"", "ab23cdef"}).Draw(t, "content")
				p.Plugins = append(p.Plugins, revision.Plugin{KeyID: k.ID, Config: runs})
			}
		}
		if rapid.Bool().Draw(t, "plain") {
			r.Keys = append(r.Keys, revision.Plain)
		}
		r.Keys = rapid.Permutation(r.Keys).Draw(t, "order")
		for _, component := range []revision.Component{revision.OAuthAPIServer, revision.KubeAPIServer} {
			s, err := revision.ConfigSecret(component, r, f)
			if err != nil {
				t.Fatal(err)
			}
			got, text, err := revision.ReadConfig(s)
			if err != nil || got.Revision != r.Revision || !slices.Equal(got.Keys, r.Keys) || len(text) == 0 {
				t.Fatalf("%+v %v, expected %+v\n%s", got, err, r, s.Data["encryption-config"])
			}
		}
		pluginRoundTrip(t, p)
	})
}

func keyRoundTrip(t *rapid.T, k revision.Key, material []byte) {
	for _, component := range []revision.Component{revision.KubeAPIServer, revision.OAuthAPIServer} {
		s, err := revision.KeySecret(component, k, material)
		if err != nil {
			t.Fatal(err)
		}
		got, read, err := revision.ReadKey(s)
		if err != nil || got != k || !bytes.Equal(read, material) {
			t.Fatalf("%+v %v, expected %+v", got, err, k)
		}
	}
}

func pluginRoundTrip(t *rapid.T, p revision.PluginConfig) {
	m, err := revision.PluginConfigMap(revision.OpenShiftAPIServer, p, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := revision.ReadPluginConfig(m)
	if err != nil || got.Revision != p.Revision || !slices.Equal(got.Plugins, p.Plugins) {
		t.Fatalf("%+v %v, expected %+v\n%s", got, err, p, m.Data["plugin-config.yaml"])
	}
}

// TestFile: the form that API servers read, and the order of providers.
func TestFile(t *testing.T) {
	keys := []revision.Key{{ID: 1, Type: config.AESCBC}, {ID: 2, Type: config.KMS, Plugin: vault(t, "a")}, {ID: 3, Type: config.Identity}}
	f := revision.File{Resources: []string{"secrets"}, Keys: keys, Material: map[uint64][]byte{1: bytes.Repeat([]byte{1}, 32)}, Dir: dir}
	for want, ids := range map[string][]uint64{
		"aescbc:;kms:;identity:": {1, 2}, "kms:;aescbc:;identity:": {2, 1, 0}, "identity:;kms:": {3, 2}, "identity:": {3}, "identity:;aescbc:": {0, 1},
	} {
		text, err := f.YAML(revision.Config{Revision: 1, Keys: ids})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.SplitSeq(string(text), "\n") {
			if word, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
				if name, _, _ := strings.Cut(word, " "); name == "aescbc:" || name == "kms:" || name == "identity:" {
					got = append(got, name)
				}
			}
		}
		if strings.Join(got, ";") != want {
			t.Errorf("%v: got %v, expected %s\n%s", ids, got, want, text)
		}
	}
	if _, err := f.YAML(revision.Config{Keys: []uint64{9}}); err == nil || !strings.Contains(err.Error(), "no key 9") {
		t.Errorf("%v", err)
	}
}

// TestNewest: by number, and whatever order they come in.
func TestNewest(t *testing.T) {
	var all []revision.PluginConfig
	for _, r := range []int{9, 10, 2, 1} {
		all = append(all, revision.PluginConfig{Revision: r})
	}
	if got := revision.Newest(all).Revision; got != 10 {
		t.Errorf("%d, expected 10", got)
	}
	if got := revision.Newest[revision.Config](nil).Revision; got != 0 {
		t.Errorf("%d, expected none", got)
	}
	if k := revision.NewestKey(nil); k.ID != revision.Plain || !k.Migrated || k.Type != config.Identity {
		t.Errorf("%+v", k)
	}
}

// TestPrunable: the newest and what is in use always stay.
func TestPrunable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []revision.Config
		for _, r := range rapid.Permutation([]int{1, 2, 3, 9, 10, 11}).Draw(t, "revisions") {
			all = append(all, revision.Config{Revision: r, Keys: []uint64{uint64(r)}})
		}
		keep := rapid.IntRange(0, 8).Draw(t, "keep")
		gone := revision.Prunable(all, keep)
		if slices.Contains(gone, 11) || !slices.IsSorted(gone) || len(all)-len(gone) < keep && len(gone) > 0 {
			t.Fatalf("keep %d: %v may go", keep, gone)
		}
		keys := []revision.Key{{ID: 12}, {ID: 3}, {ID: 2}, {ID: 1}}
		for _, id := range revision.PrunableKeys(keys, keep, revision.Config{Keys: []uint64{2}}) {
			if id == 2 || id == 12 || keep > 1 || keep == 1 && id == 3 {
				t.Fatalf("keep %d: key %d may go", keep, id)
			}
		}
	})
}

// A keyID is written in one way, and the name of a socket is that.
func TestSockets(t *testing.T) {
	if got, want := revision.Socket(dir, 7), contract.SocketPath(dir, "7"); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if id, err := revision.ParseKeyID(revision.SocketName(7)); err != nil || id != 7 {
		t.Errorf("%d, %v", id, err)
	}
	for _, bad := range []string{"", "0", "01", "abc", "99999999999999999999"} {
		if got, err := revision.ParseKeyID(bad); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// TestStrict: what was edited is refused, with the place.
func TestStrict(t *testing.T) {
	key := func(change func(*corev1.Secret)) error {
		s, err := revision.KeySecret(revision.KubeAPIServer, revision.Key{ID: 3, Type: config.AESCBC}, bytes.Repeat([]byte{1}, 32))
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		_, _, err = revision.ReadKey(s)
		return err
	}
	cfg := func(change func(*corev1.Secret)) error {
		f := revision.File{Resources: []string{"secrets"}, Keys: []revision.Key{{ID: 3, Type: config.AESCBC}}, Material: map[uint64][]byte{3: make([]byte, 32)}}
		s, err := revision.ConfigSecret(revision.KubeAPIServer, revision.Config{Revision: 9, Keys: []uint64{3, 0}}, f)
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		_, _, err = revision.ReadConfig(s)
		return err
	}
	plug := func(text string) error {
		m, err := revision.PluginConfigMap(revision.KubeAPIServer, revision.PluginConfig{Revision: 9}, dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Data["plugin-config.yaml"] = text
		_, err = revision.ReadPluginConfig(m)
		return err
	}
	set := func(name, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Annotations[name] = value }
	}
	for want, err := range map[string]error{
		"label encryption.apiserver.operator.openshift.io/component":                    key(func(s *corev1.Secret) { s.Labels[revision.ComponentLabel] = "etcd" }),
		"label kmsharness.io/lifecycle":                                                 key(func(s *corev1.Secret) { delete(s.Labels, revision.KindLabel) }),
		"expected a name such as encryption-key-openshift-kube-apiserver-7":             key(func(s *corev1.Secret) { s.Name = "encryption-key-openshift-kube-apiserver-03" }),
		`type "rot13" is unknown`:                                                       key(set("encryption.apiserver.operator.openshift.io/mode", "rot13")),
		"type aescbc with 0 bytes":                                                      key(func(s *corev1.Secret) { s.Data = nil }),
		"type identity with 32 bytes":                                                   key(set("encryption.apiserver.operator.openshift.io/mode", "identity")),
		"annotation encryption.apiserver.operator.openshift.io/remote-key-converged-at": key(set("encryption.apiserver.operator.openshift.io/remote-key-converged-at", "yesterday")),
		"label encryption.apiserver.operator.openshift.io/revision":                     cfg(func(s *corev1.Secret) { s.Labels[revision.RevisionLabel] = "10" }),
		`annotation kmsharness.io/keys: keyID "x"`:                                      cfg(set("kmsharness.io/keys", "x")),
		"keyID 3 is there twice":                                                        cfg(set("kmsharness.io/keys", "3,3")),
		"annotation kmsharness.io/keys says keys 0,3":                                   cfg(set("kmsharness.io/keys", "0,3")),
		"data[encryption-config]":                                                       cfg(func(s *corev1.Secret) { s.Data["encryption-config"] = []byte("resources: []") }),
		`unknown field "secretfox"`: cfg(func(s *corev1.Secret) {
			s.Data["encryption-config"] = []byte("resources: [{providers: [{secretfox: {}}]}]")
		}),
		"providers[0]: expected one of":                                    cfg(func(s *corev1.Secret) { s.Data["encryption-config"] = []byte("resources: [{providers: [{}]}]") }),
		`containers[0]: name "x"`:                                          plug("containers: [{name: x, args: []}]"),
		"containers[0]: keyID":                                             plug("containers: [{name: kms-plugin-0, args: []}]"),
		`containers[0]: args: "-x"`:                                        plug(`containers: [{name: kms-plugin-1, args: ["-x"]}]`),
		`containers[0]: provider "" is unknown`:                            plug("containers: [{name: kms-plugin-1, args: []}]"),
		"data[plugin-config.yaml]":                                         plug("container: []"),
		"containers[0]: GCP.keyName: expected a value, it is required":     plug(`containers: [{name: kms-plugin-1, args: ["--provider=GCP"]}]`),
		"containers[1]: there are two of kms-plugin-1":                     plug(twice("{name: kms-plugin-1, args: [--provider=GCP, --keyName=projects/p/locations/l/keyRings/r/cryptoKeys/k]}")),
		"containers[0]: GCP.x: provider GCP has no such setting: expected": plug(`containers: [{name: kms-plugin-1, args: ["--provider=GCP", "--x=y"]}]`),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
}

func twice(container string) string { return fmt.Sprintf("containers: [%s, %s]", container, container) }
