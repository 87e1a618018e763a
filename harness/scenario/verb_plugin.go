package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// ProviderFailure is the fault that needs a profile: its own or that of the topology.
const ProviderFailure = "provider-failure"

// Inject puts a fault of the catalogue in force (fakeplugin/fault).
type Inject struct {
	Plugin Selector `yaml:"plugin" required:"true" target:"true" only:"apiServer,node,keyID,pod"`
	Fault  string   `yaml:"fault" required:"true"`
	// Method is one of Status, Encrypt and Decrypt, or several joined by +; empty: all.
	Method string `yaml:"method,omitempty"`
	// Params are the fault's own, and "for".
	Params map[string]any `yaml:",inline"`
}

func (i *Inject) Target(nodes []string) string { return "plugin " + i.Plugin.plugins(nodes) }

// plugins is NODE/KEYID, NODE/* for all of a node, "all" for all there are, and of which pod.
func (s Selector) plugins(nodes []string) string {
	switch {
	case s.Pod != "":
		pod := s.Pod
		s.Pod = ""
		return s.plugins(nodes) + " in the " + pod + " pod"
	case s.Node != "" && s.KeyID != "":
		return s.Node + "/" + s.KeyID
	case s.Node != "":
		return s.Node + "/*"
	case s.KeyID != "":
		return strings.Join(nodes, "/"+s.KeyID+", ") + "/" + s.KeyID
	default:
		return NodeAll
	}
}

func (*Inject) About() string {
	return "puts a fault in force on plugins"
}

func (i *Inject) Harm() string { return i.Fault }

func (i *Inject) Lasts() bool { return true }

func (i *Inject) EndedBy(b Action) bool {
	r, ok := b.(*Release)
	return ok && r.Plugin.covers(i.Plugin) && (r.Fault == "" || r.Fault == i.Fault)
}

// Bound is how long the fault is in force; zero: until it is released.
func (i *Inject) Bound() Duration {
	text, _ := i.Params["for"].(string)
	return D(text)
}

// FaultParams are the parameters of the fault as its catalogue reads them: the method too, and durations as text.
func (i *Inject) FaultParams() map[string]any {
	params := Params(i)
	delete(params, "fault")
	return params
}

func (i *Inject) durationParams(faults FaultChecker) []string {
	if faults == nil {
		return []string{"for"}
	}
	return append([]string{"for"}, faults.DurationParams(i.Fault)...)
}

func (i *Inject) resolveParams(t contract.Timing, faults FaultChecker) error {
	for _, name := range i.durationParams(faults) {
		value, ok := i.Params[name]
		if !ok {
			continue
		}
		resolved, err := resolveValue(value, t)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		i.Params = maps.Clone(i.Params)
		i.Params[name] = resolved
	}
	return nil
}

// resolveValue is a parameter of a fault that is a duration, resolved.
func resolveValue(value any, t contract.Timing) (time.Duration, error) {
	switch v := value.(type) {
	case time.Duration:
		return v, nil
	case Duration:
		return v.Resolve(t)
	case string, int, float64:
		return D(fmt.Sprint(v)).Resolve(t)
	default:
		return 0, fmt.Errorf("is a %T, expected a duration", value)
	}
}

func (i *Inject) Validate(v Validation) {
	if i.Fault == "" {
		v.Add("fault", "no fault, expected the name of one")
		return
	}
	// Parameters that are no valid duration are reported here, and by the catalogue of faults no second time.
	params, sound := map[string]any{}, true
	maps.Copy(params, i.Params)
	for _, name := range i.durationParams(v.parser.Faults) {
		if value, ok := i.Params[name]; ok {
			d, err := resolveValue(value, contract.DefaultTiming())
			if err != nil {
				v.Add(name, "%v", err)
				sound = false
			}
			params[name] = d
		}
	}
	if v.parser.Faults == nil {
		validateMethods(v, i.Method)
		return
	}
	if !sound {
		return
	}
	if profile, _ := params["profile"].(string); i.Fault == ProviderFailure && profile == "" {
		if v.Scenario().Topology.Profile == "" {
			v.Add("fault", "%s without a provider, expected profile in the topology or beside the fault", ProviderFailure)
			return
		}
		params["profile"] = v.Scenario().Topology.Profile
	}
	for _, p := range v.parser.Faults.CheckFault(i.Fault, i.Method, params) {
		v.Add(cmp.Or(p.Param, "fault"), "%s", p.What)
	}
}

func validateMethods(v Validation, method string) {
	if method == "" {
		return
	}
	for _, m := range strings.Split(method, "+") {
		v.Keyword("method", "method", m, []string{"Status", "Encrypt", "Decrypt", "all"})
	}
}

// Release ends faults. Without Fault it ends every fault of the selected plugins.
type Release struct {
	Plugin Selector `yaml:"plugin" required:"true" target:"true" only:"apiServer,node,keyID,pod"`
	Fault  string   `yaml:"fault,omitempty"`
	Method string   `yaml:"method,omitempty"`
}

func (r *Release) Target(nodes []string) string { return "plugin " + r.Plugin.plugins(nodes) }

func (*Release) About() string {
	return "ends faults of plugins"
}

func (r *Release) Validate(v Validation) {
	validateMethods(v, r.Method)
	if v.parser.Faults == nil || r.Fault == "" {
		return
	}
	for _, p := range v.parser.Faults.CheckFault(r.Fault, "", nil) {
		if p.Param == "" && v.parser.Faults.DurationParams(r.Fault) == nil {
			v.Add("fault", "%s", p.What)
		}
	}
}
