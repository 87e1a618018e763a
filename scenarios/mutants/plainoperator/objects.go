package plainoperator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that OpenShift gives to objects and their parts.
const (
	Managed        = "openshift-config-managed"
	Config         = "openshift-config"
	ComponentLabel = prefix + "/component"
	Finalizer      = prefix + "/deletion-protection"
	// WriteKeyAnnotation of a StorageVersionMigration has the ID of the key.
	WriteKeyAnnotation = prefix + "/write-key"
	// PreflightAnnotation of the pre-flight pod has the hash of the configuration.
	PreflightAnnotation = prefix + "/kms-preflight-config-hash"
	// FileKey is where a Secret has the encryption configuration.
	FileKey = "encryption-config"

	prefix              = "encryption.apiserver.operator.openshift.io"
	modeAnnotation      = prefix + "/mode"
	reasonAnnotation    = prefix + "/internal-reason"
	timestampAnnotation = prefix + "/migrated-timestamp"
	migratedAnnotation  = prefix + "/migrated-resources"
	materialKey         = prefix + "-key"
	kmsKey              = prefix + "-kms-encryption-config"
	pluginKey           = prefix + "-kms-plugin-config"
	keyPrefix           = prefix + "-kms-plugin-" // "secret-NAME_KEY" or "configmap-NAME_KEY" follows
	filePrefix          = "kms-plugin-"           // the same, and "-ID"
)

// KeyName is the name of a key Secret.
func KeyName(component string, id int) string {
	return fmt.Sprintf("encryption-key-%s-%d", component, id)
}

// Socket of the plugin of a key.
func Socket(id int) string { return fmt.Sprintf("unix:///var/run/kmsplugin/kms-%d.sock", id) }

// The encryption configuration, as kube-apiserver reads it.
type (
	configuration struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Resources  []resourceConfig `json:"resources"`
	}
	resourceConfig struct {
		Resources []string   `json:"resources"`
		Providers []provider `json:"providers"`
	}
	provider struct {
		Identity *struct{}   `json:"identity,omitempty"`
		AESCBC   *staticKeys `json:"aescbc,omitempty"`
		AESGCM   *staticKeys `json:"aesgcm,omitempty"`
		KMS      *kms        `json:"kms,omitempty"`
	}
	staticKeys struct {
		Keys []staticKey `json:"keys"`
	}
	staticKey struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
	}
	kms struct {
		APIVersion string `json:"apiVersion"`
		Name       string `json:"name"`
		Endpoint   string `json:"endpoint"`
		Timeout    string `json:"timeout"`
	}
)

// placeholder stands for a key of mode identity: an AES key of zeroes, last in the list of providers, that nothing is written with.
func placeholder() []byte { return make([]byte, 16) }

// Plugin is a plugin's configuration, and the credentials that it refers to by "secret-NAME_KEY" or "configmap-NAME_KEY".
type Plugin struct {
	Config      configv1.KMSPluginConfig
	Credentials map[string][]byte
}

// Reference is a Secret or a ConfigMap ("secret", "configmap") that a plugin's configuration refers to, and the keys that it needs.
type Reference struct {
	Kind, Name string
	Keys       []string
}

// References of a plugin's configuration.
func References(c configv1.KMSPluginConfig) ([]Reference, error) {
	v := c.Vault
	if c.Type != configv1.VaultKMSProvider || v.Authentication.Type != configv1.VaultAuthenticationTypeAppRole {
		return nil, fmt.Errorf("spec.encryption.kms: provider %q with authentication %q is unknown: expected Vault with AppRole", c.Type, v.Authentication.Type)
	}
	all := []Reference{{"secret", v.Authentication.AppRole.Secret.Name, []string{"role-id", "secret-id"}}}
	if v.TLS.CABundle.Name != "" {
		all = append(all, Reference{"configmap", v.TLS.CABundle.Name, []string{"ca-bundle.crt"}})
	}
	return all, nil
}

// wrapped is the configuration as Secrets have it, within an APIServer object.
func (p Plugin) wrapped() ([]byte, error) {
	return json.Marshal(&configv1.APIServer{TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "APIServer"},
		Spec: configv1.APIServerSpec{Encryption: configv1.APIServerEncryption{KMS: p.Config}}})
}

// providerOf names the remote key of a plugin.
func providerOf(c configv1.KMSPluginConfig) string {
	return fmt.Sprintf("%s %s %s %s", c.Type, c.Vault.VaultAddress, c.Vault.VaultNamespace, c.Vault.VaultKeyPath)
}

// Want is the encryption that an APIServer requests, with the plugin's credentials.
func Want(e configv1.APIServerEncryption, p Plugin) (Desired, error) {
	switch m := Mode(e.Type); m {
	case "":
		return Desired{Mode: Identity}, nil
	case Identity, AESCBC, AESGCM:
		return Desired{Mode: m}, nil
	case KMS:
		config, err := p.wrapped()
		print := fingerprint(config, p.Credentials)
		h := fnv.New32a()
		h.Write([]byte(print)) // never fails
		return Desired{Mode: m, Provider: providerOf(e.KMS), Fingerprint: print, Hash: base64.URLEncoding.EncodeToString(h.Sum(nil))}, err
	default:
		return Desired{}, fmt.Errorf("spec.encryption.type: %q is unknown: expected identity, aescbc, aesgcm or KMS", e.Type)
	}
}

// fingerprint of some data.
func fingerprint(config []byte, more map[string][]byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", config)
	for _, k := range slices.Sorted(maps.Keys(more)) {
		fmt.Fprintf(h, "%q%q", k, more[k])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// KeySecret is a key Secret for a request. material is used for the modes that need it.
func KeySecret(component string, id int, mode Mode, material []byte, p Plugin, reason string) (*corev1.Secret, error) {
	s := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{materialKey: material}}
	s.Name, s.Namespace, s.Finalizers = KeyName(component, id), Managed, []string{Finalizer}
	s.Labels = map[string]string{ComponentLabel: component}
	s.Annotations = map[string]string{modeAnnotation: string(mode), reasonAnnotation: reason}
	if mode == Identity || mode == KMS {
		s.Data[materialKey] = placeholder()
	}
	if mode != KMS {
		return s, nil
	}
	for k, v := range p.Credentials {
		s.Data[keyPrefix+k] = v
	}
	var err, also error
	s.Data[pluginKey], err = p.wrapped()
	s.Data[kmsKey], also = json.Marshal(newConfiguration(resourceConfig{Providers: []provider{{KMS: kmsProvider(id, strconv.Itoa(id))}}}))
	return s, errors.Join(err, also)
}

func newConfiguration(resources ...resourceConfig) configuration {
	return configuration{"apiserver.config.k8s.io/v1", "EncryptionConfiguration", resources}
}

func kmsProvider(id int, name string) *kms { return &kms{"v2", name, Socket(id), "10s"} }

type migrated struct {
	Resources []schema.GroupResource `json:"resources"`
}

func migratedOf(s *corev1.Secret) (m migrated, err error) {
	if text := s.Annotations[migratedAnnotation]; text != "" {
		if err = json.Unmarshal([]byte(text), &m); err != nil {
			err = fmt.Errorf("secret %s: annotation %s: %w", s.Name, migratedAnnotation, err)
		}
	}
	return m, err
}

// SetMigrated annotates a key Secret with a resource that is stored under it.
func SetMigrated(s *corev1.Secret, resource, timestamp string) error {
	m, err := migratedOf(s)
	if err != nil {
		return err
	}
	if gr := (schema.GroupResource{Resource: resource}); !slices.Contains(m.Resources, gr) {
		m.Resources = append(m.Resources, gr)
	}
	text, err := json.Marshal(m)
	s.Annotations[migratedAnnotation], s.Annotations[timestampAnnotation] = string(text), timestamp
	return err
}

// ForgetMigration takes back what SetMigrated wrote.
func ForgetMigration(s *corev1.Secret) {
	delete(s.Annotations, migratedAnnotation)
	delete(s.Annotations, timestampAnnotation)
}

// ReadKey reads a key Secret.
func ReadKey(s *corev1.Secret) (Key, error) {
	id, err := strconv.Atoi(s.Name[strings.LastIndex(s.Name, "-")+1:])
	if err != nil || id < 1 {
		return Key{}, fmt.Errorf("secret %s: expected a name that ends with the number of a key", s.Name)
	}
	k := Key{ID: id, Mode: Mode(s.Annotations[modeAnnotation])}
	m, err := migratedOf(s)
	if err != nil {
		return Key{}, err
	}
	for _, gr := range m.Resources {
		k.Migrated = append(k.Migrated, gr.Resource)
	}
	switch k.Mode {
	case KMS:
		var a configv1.APIServer
		if err := json.Unmarshal(s.Data[pluginKey], &a); err != nil {
			return Key{}, fmt.Errorf("secret %s: data %s: %w", s.Name, pluginKey, err)
		}
		k.Provider, k.Fingerprint = providerOf(a.Spec.Encryption.KMS), fingerprint(s.Data[pluginKey], credentials(s.Data, keyPrefix, ""))
	case Identity, AESCBC, AESGCM:
		k.Fingerprint = fingerprint(s.Data[materialKey], nil)
	default:
		return Key{}, fmt.Errorf("secret %s: annotation %s is %q: expected identity, aescbc, aesgcm or KMS", s.Name, modeAnnotation, k.Mode)
	}
	return k, nil
}

// credentials are the data with a prefix and a suffix, without both.
func credentials(data map[string][]byte, prefix, suffix string) map[string][]byte {
	out := map[string][]byte{}
	for k, v := range data {
		name, ok := strings.CutPrefix(k, prefix)
		name, also := strings.CutSuffix(name, suffix)
		if ok && also && (strings.HasPrefix(name, "secret-") || strings.HasPrefix(name, "configmap-")) {
			out[name] = v
		}
	}
	return out
}

// Render is the data of a Secret with an encryption configuration.
func (op *Operator) Render(f File, component string, keys []*corev1.Secret) (map[string][]byte, error) {
	data, c := map[string][]byte{}, newConfiguration()
	for _, r := range Resources() {
		l := f.Layout(r)
		var first, others, identities []provider // the placeholders of identity keys are last
		plain := []provider{{Identity: &struct{}{}}}
		for _, id := range l.Keys {
			i := slices.IndexFunc(keys, func(s *corev1.Secret) bool { return s.Name == KeyName(component, id) })
			if i < 0 {
				return nil, fmt.Errorf("the Secret of key %d is missing", id)
			}
			p, identity := keyProvider(keys[i], id, r, data)
			switch {
			case identity:
				identities = append(identities, p)
			case id == l.Write:
				first = append(first, p)
			default:
				others = append(others, p)
			}
		}
		switch {
		case len(first) == 0:
			others = append(plain, others...)
		case l.Identity:
			others = append(others, plain...)
		}
		c.Resources = append(c.Resources, resourceConfig{[]string{r}, slices.Concat(first, others, identities)})
	}
	if op.defect.render != nil {
		op.defect.render(&c)
	}
	text, err := json.Marshal(c)
	data[FileKey] = text
	return data, err
}

// keyProvider is the provider of a key for a resource, and whether it stands for identity. It adds what a plugin needs to the data.
func keyProvider(s *corev1.Secret, id int, resource string, data map[string][]byte) (p provider, identity bool) {
	name := strconv.Itoa(id)
	static := &staticKeys{[]staticKey{{name, base64.StdEncoding.EncodeToString(s.Data[materialKey])}}}
	switch mode := Mode(s.Annotations[modeAnnotation]); mode {
	case AESCBC:
		return provider{AESCBC: static}, false
	case KMS:
		data[filePrefix+"config-"+name] = s.Data[pluginKey]
		for k, v := range credentials(s.Data, keyPrefix, "") {
			data[filePrefix+k+"-"+name] = v
		}
		return provider{KMS: kmsProvider(id, name+"_"+resource)}, false
	default:
		return provider{AESGCM: static}, mode == Identity
	}
}

// ReadFile reads what Render wrote. No data are the zero File.
func ReadFile(data map[string][]byte) (File, error) {
	f := File{Resources: map[string]Layout{}, Fingerprints: map[int]string{}}
	if len(data) == 0 {
		return File{}, nil
	}
	var c configuration
	if err := json.Unmarshal(data[FileKey], &c); err != nil {
		return File{}, fmt.Errorf("data %s: %w", FileKey, err)
	}
	for _, rc := range c.Resources {
		var l Layout
		for i, p := range rc.Providers {
			id, print, err := p.read(data)
			if err != nil {
				return File{}, err
			}
			if p.Identity != nil {
				l.Identity = true
				continue
			}
			// Behind identity as the first provider, the placeholder of a key stands for identity.
			if i == 0 || l.Write == 0 && rc.Providers[0].Identity != nil && p.placeholder() {
				l.Write = id
			}
			l.Keys = append(l.Keys, id)
			f.Fingerprints[id] = print
		}
		slices.SortFunc(l.Keys, func(a, b int) int { return b - a })
		for _, r := range rc.Resources {
			f.Resources[r] = l
		}
	}
	return f, nil
}

func (p provider) static() *staticKeys {
	if p.AESGCM != nil {
		return p.AESGCM
	}
	return p.AESCBC
}

func (p provider) placeholder() bool {
	_, static := p.key()
	return p.AESGCM != nil && bytes.Equal(static, placeholder())
}

// key is the ID that a provider's name has; empty for identity. static is the material.
func (p provider) key() (id string, static []byte) {
	switch s := p.static(); {
	case p.KMS != nil:
		id, _, _ = strings.Cut(p.KMS.Name, "_")
	case s != nil && len(s.Keys) == 1:
		id = s.Keys[0].Name
		static, _ = base64.StdEncoding.DecodeString(s.Keys[0].Secret) // what is no base64 has another fingerprint than any key
	}
	return id, static
}

// read is the key of a provider and its fingerprint in a file.
func (p provider) read(data map[string][]byte) (id int, print string, err error) {
	if p.Identity != nil {
		return 0, "", nil
	}
	name, static := p.key()
	if id, err = strconv.Atoi(name); err != nil {
		return 0, "", fmt.Errorf("data %s: expected identity, kms, or one key of aescbc or aesgcm in each provider, with the number of a key as its name: %w", FileKey, err)
	}
	if p.KMS != nil {
		return id, fingerprint(data[filePrefix+"config-"+name], credentials(data, filePrefix, "-"+name)), nil
	}
	return id, fingerprint(static, nil), nil
}
