package sim

import (
	"reflect"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// picture is what was recorded of a version. The next one shares with it what did not change: versions share their items, so that
// a change of one report costs one conversion, and not one of all.
type picture struct {
	of      *objects.Version
	items   [3][]any // of the lists of a status
	reports [3][]contract.TypedReport
	object  *history.Object
}

// present records a version of an observed object.
func (o *observer) present(t watch.Target, v *objects.Version) {
	if t.GVR == healthObjects() {
		o.sequence.Present(t, v.Object(), o.w.k.Now())
		return
	}
	if o.changes {
		o.presentChanges(t, v)
		return
	}
	p := o.pictures[t].next(t.Resource(), v, &o.owners)
	if p == nil {
		delete(o.pictures, t)
		o.sequence.Present(t, v.Object(), o.w.k.Now())
		return
	}
	o.pictures[t] = p
	o.sequence.Converted(t, p.object, o.w.k.Now())
}

// next is the picture of a version, equal to what watch.Convert makes of it; nil where that is not certain.
func (p *picture) next(resource string, v *objects.Version, owners *watch.OwnerReader) *picture {
	if p == nil {
		p = &picture{object: &history.Object{}}
	}
	out := &picture{of: v, object: &history.Object{Resource: resource, Name: v.Key.Name, ResourceVersion: v.ResourceVersion()}}
	lists, ok := statusLists(v.Body())
	if !ok {
		return nil
	}
	out.items = lists
	if out.object.Conditions, ok = shared(p.items[0], lists[0], p.object.Conditions, conditionOf); !ok {
		return nil
	}
	for i := 1; i < len(lists); i++ {
		if out.reports[i], ok = shared(p.items[i], lists[i], p.reports[i], reportOf); !ok {
			return nil
		}
	}
	out.object.HealthReports = out.reports[1]
	if len(out.reports[2]) > 0 {
		out.object.HealthReports = append(out.reports[1][:len(out.reports[1]):len(out.reports[1])], out.reports[2]...)
	}
	if p.of != nil && p.of.OwnedAlike(v) {
		out.object.Owners = p.object.Owners
	} else {
		out.object.Owners = owners.Of(v.ManagedFields())
	}
	return out
}

// statusLists are the conditions, and the typed reports in both of their places; false for what has another shape.
func statusLists(body map[string]any) (lists [3][]any, ok bool) {
	status, ok := fieldsAt(body, "status")
	if !ok {
		return lists, false
	}
	oauth, ok := fieldsAt(status, "oauthAPIServer")
	if !ok {
		return lists, false
	}
	if lists[0], ok = listAt(status, "conditions"); !ok {
		return lists, false
	}
	for i, parent := range []map[string]any{status, oauth} {
		encryption, ok := fieldsAt(parent, "encryptionStatus")
		if !ok {
			return lists, false
		}
		if lists[i+1], ok = listAt(encryption, "healthReports"); !ok {
			return lists, false
		}
	}
	return lists, true
}

func fieldsAt(o map[string]any, name string) (map[string]any, bool) {
	v, there := o[name]
	if !there {
		return nil, true
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func listAt(o map[string]any, name string) ([]any, bool) {
	v, there := o[name]
	if !there {
		return nil, true
	}
	l, ok := v.([]any)
	return l, ok
}

// shared converts the items that are others than before. The slice itself is shared when none is.
func shared[T any](before, items []any, were []T, convert func(map[string]any) (T, bool)) ([]T, bool) {
	out, own := were, len(before) != len(items)
	if own {
		out = make([]T, len(items))
		copy(out, were)
	}
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		if i < len(before) && sameItem(before[i], fields) {
			continue
		}
		if !own {
			out, own = append([]T(nil), were...), true
		}
		if out[i], ok = convert(fields); !ok {
			return nil, false
		}
	}
	return out, true
}

func sameItem(a any, b map[string]any) bool {
	m, ok := a.(map[string]any)
	return ok && reflect.ValueOf(m).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func conditionOf(fields map[string]any) (c history.Condition, ok bool) {
	known := texts(fields, map[string]*string{"type": &c.Type, "status": &c.Status, "reason": &c.Reason, "message": &c.Message,
		"lastTransitionTime": &c.LastTransitionTime})
	return c, known
}

func reportOf(fields map[string]any) (r contract.TypedReport, ok bool) {
	known := texts(fields, map[string]*string{"nodeName": &r.NodeName, "keyID": &r.KeyID, "status": &r.Status,
		"lastCheckedTime": &r.LastCheckedTime, "remoteKeyID": &r.RemoteKeyID, "detail": &r.Detail})
	return r, known
}

// texts reads fields that are all text and all known; false for any other.
func texts(fields map[string]any, into map[string]*string) bool {
	for name, value := range fields {
		text, isText := value.(string)
		to := into[name]
		if to == nil || !isText || !utf8.ValidString(text) {
			return false
		}
		*to = text
	}
	return true
}
