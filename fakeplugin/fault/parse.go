package fault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Spec is a fault as it is written: a name and flat parameters, bounds among them.
type Spec struct {
	Name   string         `json:"name"`
	Params map[string]any `json:"params,omitempty"`
}

// Lookup finds a fault. The error of an unknown name suggests one that is known.
func (c Catalogue) Lookup(name string) (Definition, error) {
	for _, d := range c.Definitions() {
		if d.Name == name {
			return d, nil
		}
	}
	return Definition{}, fmt.Errorf("there is no fault %.64q%s", name, cmp.Or(suggest.DidYouMean(name, c.Names()), ": kmsharness faults lists all"))
}

// Parse validates a fault. Every error is one line and says what was expected.
func (c Catalogue) Parse(name string, params map[string]any) (Fault, error) {
	d, err := c.Lookup(name)
	if err != nil {
		return Fault{}, err
	}
	return d.New(params)
}

// New is a fault of d with parameters, those of its Bounds among them. d may be a definition that the catalogue does not have. Every error is one
// line and says what was expected.
func (d Definition) New(params map[string]any) (f Fault, err error) {
	name := d.Name
	f = Fault{Name: name, Methods: d.Default, For: d.defaultFor, Probability: 1, definition: d}
	if f.values, err = defaults(d); err != nil {
		return Fault{}, fmt.Errorf("fault %s: %w", name, err)
	}
	for _, param := range slices.Sorted(maps.Keys(params)) {
		if err := f.set(param, params[param]); err != nil {
			return Fault{}, fmt.Errorf("fault %s: %w", name, err)
		}
	}
	for _, m := range f.Methods {
		if !slices.Contains(d.Methods, m) {
			return Fault{}, fmt.Errorf("fault %s: method: it cannot strike %s, only %s", name, m, formatMethods(d.Methods))
		}
	}
	if d.Check != nil {
		if err := d.Check(f); err != nil {
			return Fault{}, fmt.Errorf("fault %s: %w", name, err)
		}
	}
	return f, nil
}

func defaults(d Definition) (map[string]any, error) {
	values := map[string]any{}
	for _, p := range d.Params {
		if p.Default == nil {
			continue
		}
		v, err := p.parse(p.Default)
		if err != nil {
			return nil, fmt.Errorf("default of %w", err)
		}
		values[p.Name] = v
	}
	return values, nil
}

func (f *Fault) set(name string, value any) error {
	known := append(slices.Clone(f.definition.Params), f.definition.Bounds()...)
	i := slices.IndexFunc(known, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return f.unknown(name, known)
	}
	if i >= len(f.definition.Params) {
		return f.bind(known[i], value)
	}
	v, err := known[i].parse(value)
	f.values[name] = v
	return err
}

// bind sets a parameter that every fault has.
func (f *Fault) bind(p Param, value any) error {
	v, err := p.parse(value)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case time.Duration:
		f.For = v
	case []Method:
		f.Methods = v
	case int:
		f.Count = v
	case float64:
		f.Probability = v
	}
	return nil
}

func (f *Fault) unknown(name string, known []Param) error {
	names := make([]string, len(known))
	for i, p := range known {
		names[i] = p.Name
	}
	hint := cmp.Or(suggest.DidYouMean(name, names), " (it has: "+strings.Join(names, ", ")+")")
	return fmt.Errorf("there is no parameter %.64q%s", name, hint)
}

// ParseFlag reads NAME[:k=v,...]; a comma within a value is written "\,".
func (c Catalogue) ParseFlag(s string) (Fault, error) {
	name, rest, _ := strings.Cut(s, ":")
	params := map[string]any{}
	for _, pair := range splitCommas(rest) {
		k, v, ok := strings.Cut(pair, "=")
		if _, twice := params[k]; !ok || twice {
			return Fault{}, fmt.Errorf("fault %.64q: expected NAME or NAME:PARAM=VALUE,... with each parameter once, got %.64q", name, pair)
		}
		params[k] = v
	}
	return c.Parse(name, params)
}

func splitCommas(s string) []string {
	if s == "" {
		return nil
	}
	const comma = "\x00" // cannot stand in an argument
	parts := strings.Split(strings.ReplaceAll(s, `\,`, comma), ",")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], comma, ",")
	}
	return parts
}
