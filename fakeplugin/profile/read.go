package profile

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"

	"github.com/kmsharness/kmsharness/internal/strictyaml"
)

// Parse reads a profile. All mistakes are told at once, one line each, with their place: file:line: what is wrong, and what
// was expected.
func Parse(file string, text []byte) (*Profile, error) {
	r := &reader{file: file}
	root, problems := strictyaml.Read(text, "profile", "the fields "+strings.Join(fields(), ", "))
	for _, p := range problems {
		r.add(p.Line, "%s", p.What)
	}
	if len(problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	p := r.profile(root)
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	return p, nil
}

// reader collects mistakes.
type reader struct {
	file     string
	problems []error
}

func (r *reader) add(line int, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.file, max(1, line), fmt.Sprintf(format, args...)))
}

// Bounds of a profile.
const (
	maxTemplate = 512              // with its values in place a key_id must fit into the 1024 bytes of KMS v2
	maxText     = 4096             // of a failure: real ones are long
	maxProse    = 1000             // for people
	maxLatency  = time.Second      // of a call that is as it should be; what takes longer is a failure
	maxAfter    = 10 * time.Minute // of a failure
	maxFailures = 100
	minLease    = 2 * time.Second // a plugin asks its KMS five times a second
	maxLease    = time.Hour
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func fields() []string { return []string{"name", "summary", "plugin", "keyID", "latency", "failures"} }

func (r *reader) profile(n *yaml.Node) *Profile {
	v := r.mapping(n, "the profile", fields(), "lease")
	p := &Profile{Name: r.name(v["name"]), Summary: r.text(v["summary"], "summary", maxProse), Plugin: r.text(v["plugin"], "plugin", maxProse)}
	p.KeyID, p.Latency, p.Failures = r.keyID(v["keyID"]), r.latencies(v["latency"]), r.failures(v["failures"])
	if v["lease"] != nil {
		p.Lease = r.lease(v["lease"], p)
	}
	return p
}

func (r *reader) name(n *yaml.Node) string {
	name := r.text(n, "name", 63)
	if name != "" && !nameForm.MatchString(name) {
		r.add(n.Line, "name is %.64q, expected small letters and digits, joined by dashes", name)
	}
	return name
}

func (r *reader) keyID(n *yaml.Node) KeyID {
	v := r.mapping(n, "keyID", []string{"template", "changesOnRotation", "why"}, "base64")
	k := KeyID{Template: r.text(v["template"], "template", maxTemplate), ChangesOnRotation: r.bool(v["changesOnRotation"], "changesOnRotation"),
		Base64: r.bool(v["base64"], "base64"), Why: r.text(v["why"], "why", maxProse)}
	if k.Template == "" {
		return k
	}
	varies := false
	for _, found := range placeholder.FindAllString(k.Template, -1) {
		of, known := Placeholders()[found]
		if !known {
			r.add(v["template"].Line, "template has %.64s, expected one of %s", found, strings.Join(slices.Sorted(maps.Keys(Placeholders())), ", "))
		}
		varies = varies || of
	}
	switch {
	case varies && !k.ChangesOnRotation:
		r.add(v["template"].Line, "changesOnRotation is false, and the template differs from version to version: expected none of {version}, {kek}, {hex}, {created}, {varint}")
	case !varies && k.ChangesOnRotation:
		r.add(v["template"].Line, "changesOnRotation is true, and the template is the same for all versions: expected {version}, {kek}, {hex}, {created} or {varint} in it")
	}
	return k
}

func (r *reader) latencies(n *yaml.Node) map[string]Latency {
	v := r.mapping(n, "latency", Methods())
	out := map[string]Latency{}
	for _, m := range Methods() {
		if v[m] == nil {
			continue
		}
		q := r.mapping(v[m], "latency of "+m, []string{"least", "half", "most99", "most"})
		l := Latency{r.duration(q["least"], "least", maxLatency), r.duration(q["half"], "half", maxLatency),
			r.duration(q["most99"], "most99", maxLatency), r.duration(q["most"], "most", maxLatency)}
		if l.Least > l.Half || l.Half > l.Most99 || l.Most99 > l.Most {
			r.add(v[m].Line, "latency of %s: got %v, %v, %v, %v, expected least <= half <= most99 <= most", m, l.Least, l.Half, l.Most99, l.Most)
		}
		out[m] = l
	}
	return out
}

// lease reads how the plugin logs in. Its failures are those of the profile.
func (r *reader) lease(n *yaml.Node, p *Profile) *Lease {
	v := r.mapping(n, "lease", []string{"ttl", "longest", "lost", "refused"}, "certificate", "refusedCertificate")
	l := &Lease{TTL: r.duration(v["ttl"], "ttl", maxLease), Longest: r.duration(v["longest"], "longest", maxLease), Lost: r.text(v["lost"], "lost", maxProse),
		Refused: r.text(v["refused"], "refused", maxProse), Certificate: r.duration(v["certificate"], "certificate", maxLease),
		RefusedCertificate: r.text(v["refusedCertificate"], "refusedCertificate", maxProse)}
	if l.TTL < minLease || l.TTL > l.Longest {
		r.add(n.Line, "lease: got ttl %v and longest %v, expected %v <= ttl <= longest", l.TTL, l.Longest, minLease)
	}
	if l.Certificate > 0 != (l.RefusedCertificate != "") || l.Certificate > 0 && l.Certificate < l.Longest {
		r.add(n.Line, "lease: got certificate %v, expected at least longest %v, and refusedCertificate with it", l.Certificate, l.Longest)
	}
	for _, name := range []string{"lost", "refused", "refusedCertificate"} {
		if v[name] == nil {
			continue
		}
		if _, err := p.Failure(v[name].Value); err != nil {
			r.add(v[name].Line, "%s: %v", name, err)
		}
	}
	return l
}

func (r *reader) failures(n *yaml.Node) []Failure {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxFailures {
		r.add(n.Line, "failures: expected a list of 1 to %d", maxFailures)
		return nil
	}
	var out []Failure
	for _, item := range n.Content {
		f := r.failure(item)
		if slices.ContainsFunc(out, func(o Failure) bool { return o.Name == f.Name }) && f.Name != "" {
			r.add(item.Line, "failure %q occurs twice, expected it once", f.Name)
		}
		out = append(out, f)
	}
	return out
}

func (r *reader) failure(n *yaml.Node) Failure {
	v := r.mapping(n, "a failure", []string{"name", "summary", "source"}, Methods()...)
	f := Failure{Name: r.name(v["name"]), Summary: r.text(v["summary"], "summary", maxProse), Source: r.text(v["source"], "source", maxProse),
		Methods: map[string]Answer{}}
	for _, m := range Methods() {
		if v[m] != nil {
			f.Methods[m] = r.answer(v[m], m)
		}
	}
	if len(f.Methods) == 0 {
		r.add(n.Line, "failure %q strikes nothing, expected Status, Encrypt or Decrypt in it", f.Name)
	}
	return f
}

func (r *reader) answer(n *yaml.Node, method string) Answer {
	v := r.mapping(n, method, nil, "healthz", "code", "text", "after")
	a := Answer{Healthz: r.text(v["healthz"], "healthz", maxText), Text: r.text(v["text"], "text", maxText), After: r.duration(v["after"], "after", maxAfter)}
	if v["code"] != nil {
		a.Code = r.code(v["code"])
	}
	switch {
	case len(v) == 0:
		r.add(n.Line, "%s is empty, expected healthz, or code with text, or after", method)
	case v["healthz"] != nil && (method != "Status" || v["code"] != nil):
		r.add(v["healthz"].Line, "healthz in %s beside %v: expected it in Status only, and without a code", method, a.Code)
	case (v["code"] == nil) != (v["text"] == nil):
		r.add(n.Line, "%s has one of code and text, expected both: a call that fails has a code and a text", method)
	}
	return a
}

func (r *reader) code(n *yaml.Node) codes.Code {
	var names []string
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if c.String() == n.Value {
			return c
		}
		names = append(names, c.String())
	}
	r.add(n.Line, "code is %.64q, expected one of %s", n.Value, strings.Join(names, ", "))
	return codes.Unknown
}

// mapping gives the values of a mapping by name; of one that is not there, none. A field that is not known or is missing is a mistake.
func (r *reader) mapping(n *yaml.Node, what string, required []string, optional ...string) map[string]*yaml.Node {
	values, known := map[string]*yaml.Node{}, slices.Concat(required, optional)
	switch {
	case n == nil:
		return values
	case n.Kind != yaml.MappingNode:
		r.add(n.Line, "%s is no mapping, expected the fields %s", what, strings.Join(known, ", "))
		return values
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			r.add(key.Line, "unknown field %.64q in %s, expected %s", key.Value, what, strings.Join(known, ", "))
			continue
		}
		values[key.Value] = n.Content[i+1]
	}
	for _, name := range required {
		if values[name] == nil {
			r.add(n.Line, "field %q is missing in %s", name, what)
		}
	}
	return values
}

// text is a text that is not empty and not too long; one that is not there is empty.
func (r *reader) text(n *yaml.Node, what string, most int) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		r.add(n.Line, "%s is %.64q, expected a text", what, n.Value)
	case strings.TrimSpace(n.Value) == "" || len(n.Value) > most:
		r.add(n.Line, "%s has %d bytes, expected 1 to %d", what, len(n.Value), most)
	default:
		return n.Value
	}
	return ""
}

func (r *reader) bool(n *yaml.Node, what string) bool {
	var b bool
	if n == nil {
		return false
	}
	if n.ShortTag() != "!!bool" || n.Decode(&b) != nil {
		r.add(n.Line, "%s is %.64q, expected true or false", what, n.Value)
	}
	return b
}

func (r *reader) duration(n *yaml.Node, what string, most time.Duration) time.Duration {
	if n == nil {
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > most {
		r.add(n.Line, "%s is %.64q, expected a duration such as 15ms, from 0s to %v", what, n.Value, most)
		return 0
	}
	return d
}
