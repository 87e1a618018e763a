package scenario

import (
	"reflect"
	"slices"
	"strings"
)

// mode is the field of an action whose tag undo says what takes it back: its value, and the values that do and that this one takes back.
type mode struct {
	name, value string
	undo        string   // the value that takes it back; empty: none does
	restores    []string // the values that take others back
}

func modeOf(a Action) (m mode) {
	walk(a, func(f field, v reflect.Value) {
		for _, pair := range f.words("undo") {
			from, to, one := strings.Cut(pair, "=")
			if !one {
				from, to = v.String(), pair
			}
			m.name, m.value, m.restores = f.name, v.String(), append(m.restores, to)
			if from == m.value && to != m.value {
				m.undo = to
			}
		}
	})
	return m
}

// Undo is the action that takes back what an action did; nil: there is nothing to take back.
func Undo(a Action) Action {
	if k, ok := a.(*KMS); ok && k.Op == KMSDelete {
		return &Rotate{} // a deleted KEK does not come back: only a new one lets the plugins encrypt again
	}
	m := modeOf(a)
	if m.undo == "" {
		return nil
	}
	undo := clone(a)
	walk(undo, func(f field, v reflect.Value) {
		with, allowed := f.dependsOn("with")
		without, refused := f.dependsOn("without")
		switch {
		case f.name == m.name:
			v.SetString(m.undo)
		case with == m.name && !slices.Contains(allowed, m.undo), without == m.name && slices.Contains(refused, m.undo):
			v.SetZero()
		}
	})
	return undo
}

// Lasts reports whether an action has an effect that lasts until another action ends it.
func Lasts(a Action) bool {
	if l, ok := a.(Lasting); ok {
		return l.Lasts()
	}
	return modeOf(a).undo != ""
}

// Ends reports whether an action ends the effect of another, all of it.
func Ends(end, a Action) bool {
	if l, ok := a.(Lasting); ok {
		return l.EndedBy(end)
	}
	by := modeOf(a).undo
	if by == "" || VerbOf(end) != VerbOf(a) || modeOf(end).value != by {
		return false
	}
	ends, wide := true, reflect.ValueOf(end).Elem()
	walk(a, func(f field, narrow reflect.Value) {
		switch value := f.of(wide); {
		case f.Tag.Get("refers") == "nodes":
			ends = ends && covers(value.String(), narrow.String())
		case f.has("target"):
			ends = ends && value.Equal(narrow)
		}
	})
	return ends
}

// covers reports whether a word that may stand for all picks what another picks.
func covers(wide, narrow string) bool { return wide == "" || wide == NodeAll || wide == narrow }

// Harm is the kind of fault that an action is, such as link-cut; empty if it does no harm.
func Harm(a Action) string {
	if h, ok := a.(Harmful); ok {
		return h.Harm()
	}
	return harmOf(a)
}

// harmOf is the verb and the mode, unless that takes others back.
func harmOf(a Action) string {
	m := modeOf(a)
	if m.value == "" || slices.Contains(m.restores, m.value) {
		return ""
	}
	return string(VerbOf(a)) + "-" + m.value
}
