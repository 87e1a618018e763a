package exchange

import (
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Verb of a request.
type Verb string

// Verbs. A deletion of what is not there has succeeded; the others fail if the object is not as it was seen.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Request is one write to revision.Namespace, of a Secret or of a ConfigMap. Of a deletion only the name counts.
type Request struct {
	Verb      Verb
	Secret    *corev1.Secret
	ConfigMap *corev1.ConfigMap
}

// Clerk makes requests of actions, for one API server.
type Clerk struct {
	Component revision.Component
	// Encrypted are the resources that are encrypted: "secrets".
	Encrypted []string
	// Random makes key material.
	Random io.Reader
}

// Requests are those of an action that changes objects, in order. now is when it is carried out.
func (c Clerk) Requests(s Seen, a core.Action, now time.Time) ([]Request, error) {
	switch a := a.(type) {
	case core.CreateKey:
		return c.createKey(a.Key)
	case core.UpdateKey:
		return c.updateKey(s, a.Key, now)
	case core.CreateConfig:
		f := revision.File{Resources: c.Encrypted, Keys: s.Keys, Material: s.material, Dir: contract.SocketDir}
		secret, err := revision.ConfigSecret(c.Component, a.Config, f)
		return one(Request{Verb: Create, Secret: secret}, err)
	case core.CreatePluginConfig:
		m, err := revision.PluginConfigMap(c.Component, a.Config, contract.SocketDir)
		return one(Request{Verb: Create, ConfigMap: m}, err)
	case core.Prune:
		return c.prune(s, a), nil
	}
	return nil, fmt.Errorf("action %T is unknown", a)
}

func one(r Request, err error) ([]Request, error) {
	if err != nil {
		return nil, err
	}
	return []Request{r}, nil
}

func (c Clerk) createKey(k revision.Key) ([]Request, error) {
	var material []byte
	if k.Type == config.AESCBC || k.Type == config.AESGCM {
		material = make([]byte, revision.MaterialSize)
		if _, err := io.ReadFull(c.Random, material); err != nil {
			return nil, fmt.Errorf("make key %d: %w", k.ID, err)
		}
	}
	secret, err := revision.KeySecret(c.Component, k, material)
	return one(Request{Verb: Create, Secret: secret}, err)
}

// updateKey fails if the Secret is not the one that was seen: its resource version says so.
func (c Clerk) updateKey(s Seen, k revision.Key, now time.Time) ([]Request, error) {
	secret, there := s.secrets[k.ID]
	if !there {
		return nil, ErrBehind
	}
	changed, err := revision.KeySecret(c.Component, k, s.material[k.ID])
	if err != nil {
		return nil, err
	}
	secret = secret.DeepCopy()
	secret.Data = changed.Data
	revision.Annotate(secret, k, now, c.Encrypted)
	return []Request{{Verb: Update, Secret: secret}}, nil
}

// prune removes finalizers first.
func (c Clerk) prune(s Seen, p core.Prune) (all []Request) {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: revision.Namespace, Name: name}
	}
	for _, id := range p.Keys {
		if key := s.secrets[id]; key != nil && len(key.Finalizers) > 0 {
			key = key.DeepCopy()
			key.Finalizers = slices.DeleteFunc(key.Finalizers, func(f string) bool { return f == revision.Finalizer })
			all = append(all, Request{Verb: Update, Secret: key})
		}
		all = append(all, Request{Verb: Delete, Secret: &corev1.Secret{ObjectMeta: named(revision.KeyName(c.Component, id))}})
	}
	for _, r := range p.Configs {
		all = append(all, Request{Verb: Delete, Secret: &corev1.Secret{ObjectMeta: named(revision.ConfigName(c.Component, r))}})
	}
	for _, r := range p.PluginConfigs {
		all = append(all, Request{Verb: Delete, ConfigMap: &corev1.ConfigMap{ObjectMeta: named(revision.PluginConfigName(c.Component, r))}})
	}
	return all
}
