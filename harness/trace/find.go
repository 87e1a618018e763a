package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Find gives the operations with a uid, or with the one uid that begins with it. The same uid at an Encrypt and a Decrypt is two.
func (t *Trace) Find(uid string) ([]Operation, error) {
	full, err := t.complete(uid)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(t.Operations), func(o Operation) bool { return o.UID != full }), nil
}

// complete is the one uid that begins with a text.
func (t *Trace) complete(uid string) (string, error) {
	known := sets.New[string]()
	for _, o := range t.Operations {
		known.Insert(o.UID)
	}
	uids := sets.List(known.Delete(""))
	matches := slices.DeleteFunc(slices.Clone(uids), func(u string) bool { return uid == "" || !strings.HasPrefix(u, uid) })
	switch {
	case known.Has(uid):
		return uid, nil
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("%d uids begin with %q, %s and %s among them: write more of it", len(matches), uid, matches[0], matches[1])
	case len(uids) == 0:
		return "", fmt.Errorf("no operation with uid %q: this history has no envelope operation at all; a scenario that writes data has some, for example uid-followed", uid)
	}
	return "", fmt.Errorf("no operation with uid %q; the history has %d%s; --uncorrelated lists what has none", uid, len(uids), suggest.DidYouMean(uid, uids))
}

// Story is an object and the operations that it has to do with.
type Story struct {
	Object     Object      `json:"object"`
	Requests   []Request   `json:"requests,omitempty"`
	Operations []Operation `json:"operations,omitempty"`
}

// Object tells of an object, by its name or its storage key.
func (t *Trace) Object(name string) (Story, error) {
	name = objectName(name)
	n, found := slices.BinarySearchFunc(t.Objects, name, func(o Object, name string) int { return strings.Compare(o.Name, name) })
	if !found {
		return Story{}, t.unknownObject(name)
	}
	s, involved := Story{Object: t.Objects[n]}, map[string]bool{}
	for _, x := range s.Object.Stored {
		involved[x.Encrypt] = x.Encrypt != ""
	}
	for _, uid := range s.Object.Decrypts {
		involved[uid] = true
	}
	for _, r := range t.Requests {
		if r.Object == name {
			s.Requests = append(s.Requests, r)
			involved[r.DEK] = r.DEK != ""
		}
	}
	for _, o := range t.Operations {
		if o.UID != "" && involved[o.UID] && (o.Object == "" || o.Object == name) {
			s.Operations = append(s.Operations, o)
		}
	}
	return s, nil
}

func (t *Trace) unknownObject(name string) error {
	if len(t.Objects) == 0 {
		return fmt.Errorf("no object %q: this history has no encrypted object at all", name)
	}
	names := make([]string, len(t.Objects))
	for i, o := range t.Objects {
		names[i] = o.Name
	}
	return fmt.Errorf("no object %q (expected RESOURCE/NAMESPACE/NAME); the history has %d%s", name, len(names), suggest.DidYouMean(name, names))
}

func (t *Trace) Slowest(n int) []Operation {
	ops := slices.Clone(t.Operations)
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(b.Took, a.Took) })
	return ops[:min(max(n, 0), len(ops))]
}

// Uncorrelated are the operations that not every party has, what nothing explains first.
func (t *Trace) Uncorrelated() []Operation {
	var ops []Operation
	for _, o := range t.Operations {
		if len(o.Gaps) > 0 {
			ops = append(ops, o)
		}
	}
	most := func(o Operation) int {
		return slices.MaxFunc(o.Gaps, func(a, b Gap) int { return cmp.Compare(a.unexplained(), b.unexplained()) }).unexplained()
	}
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(most(b), most(a)) })
	return ops
}
