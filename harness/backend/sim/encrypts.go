package sim

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
)

// encrypts are the objects that an API server encrypts, and into which the data of scenarios go.
type encrypts struct {
	name                   string // of the resource, as encryption configurations have it
	group, version, plural string
	registry               string // begins their keys in etcd; it ends with a slash
}

// encryptedSecrets are those of kube-apiserver.
func encryptedSecrets() encrypts {
	return encrypts{name: "secrets", version: "v1", plural: "secrets", registry: "/registry/secrets/"}
}

// encryptedBy are those of one beside it.
func encryptedBy(s apiservers.Stub) encrypts {
	return encrypts{apiservers.Plural + "." + apiservers.Wardle, apiservers.Wardle, s.Version, apiservers.Plural, s.Registry()}
}

// objectName is what the history calls an object.
func (o encrypts) objectName(name string) string {
	return o.name + "/" + namespaceOf(name) + "/" + name
}

// key is where one is in etcd.
func (o encrypts) key(name string) string { return o.registry + namespaceOf(name) + "/" + name }

// example is that as a census has it.
func (o encrypts) example(name string) string { return strings.TrimPrefix(o.key(name), "/registry/") }

// request is one about an object, as the log of an envelope operation has it.
func (o encrypts) request(by asked) history.EnvelopeRequest {
	r := history.EnvelopeRequest{Verb: by.verb, Group: o.group, Version: o.version, Resource: o.plural, Namespace: namespaceOf(by.name)}
	if by.verb != verbCreate { // whose name only the storage key has
		r.Name = by.name
	}
	return r
}
