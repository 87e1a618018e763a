package plainoperator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Mode is a type of encryption, as the API spells it.
type Mode string

// Modes of keys.
const (
	Identity Mode = "identity"
	AESCBC   Mode = "aescbc"
	AESGCM   Mode = "aesgcm"
	KMS      Mode = "KMS"
)

// Resources are encrypted, in the order of the encryption configuration.
func Resources() []string { return []string{"configmaps", "secrets"} }

// Desired is the encryption that the APIServer configuration requests.
type Desired struct {
	Mode Mode
	// Provider identifies the KMS key. Another provider needs a key of its own.
	Provider string
	// Fingerprint of the plugin's configuration and credentials, and the short hash of the pre-flight check.
	Fingerprint, Hash string
	// Problem is why the request cannot be carried out: an invalid configuration or a missing credential.
	Problem string
}

// Key is a key Secret.
type Key struct {
	ID       int
	Mode     Mode
	Provider string
	// Fingerprint of what the encryption configuration has for this key: the material, or the plugin's configuration and credentials.
	Fingerprint string
	// Migrated are the resources that are stored under this key.
	Migrated []string
}

// Done reports whether all resources are migrated to the key.
func (k Key) Done() bool {
	return !slices.ContainsFunc(Resources(), func(r string) bool { return !slices.Contains(k.Migrated, r) })
}

// Layout is the list of providers of one resource.
type Layout struct {
	// Write is the key of the first provider; 0: identity without a key of its own.
	Write int
	// Keys that can be read, the newest first, the write key included.
	Keys []int
	// Identity reports whether clear text can be read.
	Identity bool
}

// File is an encryption configuration. The zero File is that of a cluster which never had one.
type File struct {
	Resources map[string]Layout
	// Fingerprints of the keys in it.
	Fingerprints map[int]string
}

// Layout of a resource.
func (f File) Layout(resource string) Layout {
	if l, ok := f.Resources[resource]; ok {
		return l
	}
	return Layout{Identity: true}
}

// Has reports whether a key is in the layout of any resource.
func (f File) Has(id int) bool {
	for _, l := range f.Resources {
		if slices.Contains(l.Keys, id) {
			return true
		}
	}
	return false
}

// Equal reports whether two files have the same content.
func (f File) Equal(other File) bool {
	return len(f.Resources) == 0 && len(other.Resources) == 0 || reflect.DeepEqual(f, other)
}

// Pod is a pod of the API server.
type Pod struct {
	Node     string
	Revision int
	// Running and Ready; Ended: Succeeded or Failed.
	Ready, Ended bool
}

// Migration is a StorageVersionMigration.
type Migration struct {
	Key               int
	Succeeded, Failed bool
	Message           string
	At                time.Time
}

// Preflight is the state of the check of a KMS configuration.
type Preflight struct {
	// Asked and Hash are observedConfigHash and result.configHash of the CR. OK: the result is a success.
	Asked, Hash string
	OK          bool
	// Pod runs the check; nil: there is none.
	Pod *PreflightPod
}

// PreflightPod is the pod of a check.
type PreflightPod struct {
	Hash string
	// Reported: the pod has the condition with the result. OK is that result.
	Reported, OK bool
	// Failed: the pod ended without a success.
	Failed               bool
	Message, RemoteKeyID string
}

// Observed is everything that one pass reads.
type Observed struct {
	Now     time.Time
	Desired Desired
	// Keys, the newest first.
	Keys []Key
	// Target is what the operator wrote last. Deployed has the files of the revisions that pods run.
	Target   File
	Deployed map[int]File
	Nodes    []string
	Pods     []Pod
	// Migrations by resource.
	Migrations map[string]Migration
	Preflight  Preflight
	// Waited is how long the passes before have waited for Waiting.
	Waiting Wait
	Waited  time.Duration
	// First: nothing has been decided since the start of the process.
	First bool
}

// Newest key; the zero Key if there is none.
func (o Observed) Newest() Key {
	if len(o.Keys) == 0 {
		return Key{}
	}
	return o.Keys[0]
}

// Key with an ID.
func (o Observed) Key(id int) (Key, bool) {
	i := slices.IndexFunc(o.Keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return o.Keys[i], true
}

// nextID is above every key that the cluster knows of.
func (o Observed) nextID() int {
	id := o.Newest().ID
	for _, f := range append(slices.Collect(maps.Values(o.Deployed)), o.Target) {
		for k := range f.Fingerprints {
			id = max(id, k)
		}
	}
	return id + 1
}

// converged is the revision that all nodes run, or what is missing.
func (o Observed) converged() (revision int, missing string) {
	if len(o.Nodes) == 0 {
		return 0, "no node has reported to the operator CR"
	}
	ready := map[string]bool{}
	for _, p := range o.Pods {
		switch {
		case p.Ended:
		case !p.Ready:
			return 0, fmt.Sprintf("the pod of revision %d on node %s is not ready", p.Revision, p.Node)
		case len(ready) > 0 && p.Revision != revision:
			return 0, fmt.Sprintf("nodes run revisions %d and %d", min(p.Revision, revision), max(p.Revision, revision))
		default:
			revision, ready[p.Node] = p.Revision, true
		}
	}
	for _, n := range o.Nodes {
		if !ready[n] {
			return 0, fmt.Sprintf("node %s has no running pod", n)
		}
	}
	for _, p := range o.Pods {
		if p.Ended && p.Revision > revision {
			return 0, fmt.Sprintf("the pod of revision %d on node %s has failed", p.Revision, p.Node)
		}
	}
	return revision, ""
}
