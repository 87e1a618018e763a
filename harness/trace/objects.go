package trace

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// How it is known which Encrypt sealed an object's key.
const (
	byBoth   = "API server's log and digest in etcd"
	byLog    = "API server's log"
	byDigest = "digest in etcd"
)

// joinObjects follows each object to the Encrypt that sealed its key: by the uid that the API server logged at the write, and by the
// digest of the sealed key, which lies beside the data in etcd and which the plugin's journal has.
func (j *joiner) joinObjects() {
	objects := map[string]*Object{}
	at := func(name string) *Object {
		if objects[name] == nil {
			objects[name] = &Object{Name: name}
		}
		return objects[name]
	}
	usesOf, ops := map[string][]Use{}, j.encrypts()
	for _, u := range j.uses {
		at(u.Object)
		usesOf[u.Object] = append(usesOf[u.Object], u)
		if n, known := ops.byUID[u.UID]; known {
			j.t.Operations[n].Sealed = append(j.t.Operations[n].Sealed, u)
		}
	}
	for _, e := range j.raw {
		o := at(e.Data.Object)
		o.Stored = append(o.Stored, j.stored(e, usesOf[o.Name], ops))
	}
	for _, o := range j.t.Operations {
		if o.Op == Decrypt && o.Object != "" {
			at(o.Object).Decrypts = append(at(o.Object).Decrypts, o.UID)
		}
	}
	for _, r := range j.t.Requests {
		if !strings.HasSuffix(r.Object, "/") { // of no single object: a list
			at(r.Object).Requests = append(at(r.Object).Requests, r.AuditID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		j.t.Objects = append(j.t.Objects, *objects[name])
	}
}

// index of the Encrypts.
type index struct{ byUID, bySource map[string]int }

func (j *joiner) encrypts() index {
	x := index{map[string]int{}, map[string]int{}}
	for n, o := range j.t.Operations {
		if o.Op != Encrypt {
			continue
		}
		if o.UID != "" {
			x.byUID[o.UID] = n
		}
		if o.Source != "" {
			x.bySource[o.Source] = n
		}
	}
	return x
}

// stored is one look at the object in etcd. The last write before it is the one whose key lies there.
func (j *joiner) stored(e *history.Event, uses []Use, ops index) Stored {
	d := e.Data
	s := Stored{At: e.At, Provider: d.Provider, KEKID: d.KEKID, Source: d.DEKSource}
	if d.Provider == "identity" || d.DEKSource == "" && d.KEKID == "" {
		s.Why = "no envelope encryption: provider " + d.Provider
		return s
	}
	logged := ""
	for _, u := range uses {
		if !u.At.After(e.At) {
			logged = u.UID
		}
	}
	n, found := ops.bySource[d.DEKSource]
	switch digest := ""; {
	case found:
		digest = j.t.Operations[n].UID
		s.Encrypt, s.By = digest, byDigest
		if logged == digest && logged != "" {
			s.By = byBoth
		}
		s.Why = contradiction(logged, digest)
	case logged != "":
		s.Encrypt, s.By = logged, byLog
		if _, known := ops.byUID[logged]; !known {
			s.Why = "that Encrypt was before this history began: the API server has had its key for longer"
		}
	default:
		s.Why = "no write of it is in the API server's log, and no Encrypt in this history sealed this key"
	}
	return s
}

func contradiction(logged, digest string) string {
	switch {
	case digest == "":
		return "the Encrypt that sealed this key carried no uid"
	case logged == "" || logged == digest:
		return ""
	}
	return "the API server's log names " + logged + " for this key"
}
