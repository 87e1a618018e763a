package fault

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// ProviderFailure is the fault that is a failure of the plugin's profile.
const ProviderFailure = "provider-failure"

// providerFailure is looked up when it is injected: which failures there are is known to the plugin's profile. Without one the
// fault names it.
func providerFailure(profiles profile.Catalogue) Definition {
	return Definition{
		Name: ProviderFailure, profiles: profiles, Scope: ScopeCall, Methods: Methods(), Default: Methods(),
		Summary: "A typical failure of a provider, with its texts and codes: see kmsharness profiles.",
		Params: []Param{
			{Name: "failure", Kind: KindString, Default: "", Max: 64, Summary: "the name of the failure; required"},
			{Name: "profile", Kind: KindEnum, Enum: append([]string{""}, profiles.Names()...), Default: "", Summary: "the provider whose failure it is; empty: the plugin's own profile"},
		},
		Check: func(f Fault) error {
			if f.Text("profile") == "" {
				return nil // the plugin's own is known when it is injected
			}
			_, err := f.ofProvider(nil)
			return err
		},
		Shape: func(s *Strike) {
			answer, ok := s.Fault.failure.Methods[string(s.Method)]
			if !ok {
				s.Miss()
				return
			}
			s.fail(answer)
		},
	}
}

func (s *Strike) fail(a profile.Answer) {
	if a.After > 0 {
		s.Plan.Holds = append(s.Plan.Holds, Wait{ID: s.ID, For: a.After})
	}
	if a.Code != codes.OK {
		s.Plan.Error = &Error{a.Code, a.Text}
	}
	if a.Healthz != "" {
		s.Edit(Edit{Field: FieldHealthz, Value: a.Healthz})
	}
}

// ofProvider is f with what its failure does, which is the plugin's own profile's unless f names another. Other faults stay as
// they are.
func (f Fault) ofProvider(own *profile.Profile) (Fault, error) {
	if f.Name != ProviderFailure {
		return f, nil
	}
	p := own
	if name := f.Text("profile"); name != "" {
		var err error
		if p, err = f.definition.profiles.Find(name); err != nil {
			return f, err
		}
	}
	if p == nil {
		return f, fmt.Errorf("fault %s: this plugin has no profile: start it with --profile, or name one with profile=NAME", f.Name)
	}
	var err error
	f.failure, err = p.Failure(f.Text("failure"))
	return f, err
}

// latency is how long a call of m takes by the profile, where there is one. It is drawn for every call, so that the same seed
// gives the same latencies whatever faults there are.
func latency(p *profile.Profile, m Method, rng Rand) (Wait, bool) {
	if p == nil {
		return Wait{}, false
	}
	d := p.Latency[string(m)].Of(rng.Float64())
	return Wait{For: max(d, time.Nanosecond)}, true
}
