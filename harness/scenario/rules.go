package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// mapping applies the rules that tags state to each field that was given.
func (v *validation) mapping(value reflect.Value, s shape, at place) {
	for _, f := range s.fields {
		here, x := at.at(f.name), f.of(value)
		if !x.IsValid() {
			continue
		}
		given := v.given(here, x)
		v.beside(f, given, s, value, at)
		if given || f.has("required") {
			v.value(f, x, here)
		}
	}
}

// given reports whether a field stands in the file, or has a value in a scenario written in Go.
func (v *validation) given(at place, x reflect.Value) bool {
	if v.root != nil {
		_, exact := at.node(v.root)
		return exact
	}
	return !x.IsZero()
}

func (v *validation) value(f field, x reflect.Value, at place) {
	switch x := x.Interface().(type) {
	case Duration:
		v.duration(at, f.name, x, f.has("positive"))
	case Lag:
		v.duration(at, f.name, x.All, false)
		for _, node := range slices.Sorted(maps.Keys(x.Nodes)) {
			v.node(at.at(node), node)
			v.duration(at.at(node), f.name, x.Nodes[node], false)
		}
	case string:
		v.text(f, x, at)
	case int:
		v.number(f, x, at)
	case []string:
		v.texts(f, x, at)
	}
	switch {
	case f.mapping():
		v.mapping(x, *f.inner, at)
	case f.inner != nil:
		for i := range x.Len() {
			v.mapping(x.Index(i), *f.inner, at.index(i))
		}
	}
}

func (v *validation) text(f field, s string, at place) {
	switch f.Tag.Get("refers") {
	case "node":
		v.node(at, s, NodeAny)
	case "nodes":
		v.node(at, s, NodeAny, NodeAll)
	case "keyID":
		v.known(at, "keyID", s, v.keyIDs)
	case "apiServer":
		v.known(at, "API server", s, v.scenario.Topology.APIServers)
	case "":
		if known := f.words("enum"); known != nil {
			v.keyword(at, f.name, s, known)
		}
	}
	if f.has("cel") {
		v.expression(s, at)
	}
	if f.has("expected") && !f.matches(s) {
		v.add(at, "%s is %s, expected %s", f.name, quote(s), f.Tag.Get("expected"))
	}
}

// matches reports whether a text is what the pattern and the length of a field allow.
func (f field) matches(s string) bool {
	if most, ok := f.bound("maxLength"); ok && utf8.RuneCountInString(s) > most {
		return false
	}
	pattern := f.Tag.Get("pattern")
	return pattern == "" || regexp.MustCompile(pattern).MatchString(s)
}

func (f field) bound(tag string) (int, bool) {
	n, err := strconv.Atoi(f.Tag.Get(tag))
	return n, err == nil
}

func (v *validation) number(f field, n int, at place) {
	least, _ := f.bound("minimum")
	if most, ok := f.bound("maximum"); ok && (n < least || n > most) {
		v.add(at, "%s is %d, expected %d to %d", f.name, n, least, most)
	}
}

// texts checks a list of words: how many there are, their form, and that none occurs twice.
func (v *validation) texts(f field, values []string, at place) {
	least, _ := f.bound("minItems")
	if most, ok := f.bound("maxItems"); ok && (len(values) < least || len(values) > most) {
		v.add(at, "%d %s, expected %d to %d", len(values), f.name, least, most)
		return
	}
	what, known := f.Tag.Get("item"), f.words("enum")
	for i, s := range values {
		switch {
		case known != nil && !v.keyword(at.index(i), what, s, known):
		case !f.matches(s):
			v.add(at.index(i), "%s %s is malformed, expected %s", what, quote(s), f.Tag.Get("expected"))
		case f.has("uniqueItems") && slices.Index(values, s) < i:
			v.add(at.index(i), "%s %s occurs twice, expected it once", what, quote(s))
		}
	}
}

// beside checks whether a field may be, or must be, there with the value that another field of the mapping has.
func (v *validation) beside(f field, given bool, s shape, value reflect.Value, at place) {
	for _, tag := range []string{"with", "without"} {
		name, allowed := f.dependsOn(tag)
		other, there := s.named(name)
		if !there {
			continue
		}
		got := fmt.Sprint(other.of(value).Interface())
		if enum := other.words("enum"); enum != nil && !slices.Contains(enum, got) {
			continue // that is reported
		}
		among := slices.Contains(allowed, got)
		if allowed == nil {
			among, got = !other.of(value).IsZero(), ""
		}
		switch {
		case tag == "without" && given && among:
			with, why := strings.TrimSpace(name+" "+got), strings.TrimSuffix(": "+f.Tag.Get("why"), ": ")
			v.add(at.at(f.name), "%s with %s, expected none%s", f.name, with, why)
		case tag == "with" && given && !among:
			v.add(at.at(f.name), "%s with %s %s, expected it with %s only", f.name, name, got, oneOf(allowed))
		case tag == "with" && !given && among && f.has("needed"):
			v.add(at, "%s %s without %s, expected one such as %s: %s", name, got, f.name, f.name, f.Tag.Get("needed"))
		}
	}
}

// keyword checks a value of a closed list.
func (v *validation) keyword(at place, what, got string, known []string) bool {
	if slices.Contains(known, got) {
		return true
	}
	v.add(at, "%s is %s, expected %s%s", what, quote(got), oneOf(known), suggest.DidYouMean(got, known))
	return false
}

// node checks a node against those that exist at some time and the words that are allowed beside them.
func (v *validation) node(at place, name string, besides ...string) {
	v.known(at, "node", name, append(slices.Clone(v.nodes), besides...))
}

// known checks the name of a part of the topology.
func (v *validation) known(at place, what, name string, known []string) {
	if !slices.Contains(known, name) {
		v.add(at, "%s %s is not in the topology, expected %s%s", what, quote(name), oneOf(known), suggest.DidYouMean(name, known))
	}
}

// duration checks that a duration can be resolved. The default timing stands for all: only its letters matter.
func (v *validation) duration(at place, name string, d Duration, positive bool) {
	resolved, err := d.Resolve(contract.DefaultTiming())
	switch {
	case err != nil:
		v.add(at, "%v", err)
	case d.IsZero() && positive:
		v.add(at, "no duration, expected one such as 2I, 500ms or detection")
	case resolved == 0 && positive:
		v.add(at, "%s is %s, expected more", name, d.Text)
	}
}
