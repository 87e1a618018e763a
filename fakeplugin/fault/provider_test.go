package fault

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

func builtin(t *testing.T, name string) *profile.Profile {
	t.Helper()
	p, err := profile.Catalogue{}.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parsed(t *testing.T, params map[string]any) Fault {
	t.Helper()
	f, err := Catalogue{}.Parse(ProviderFailure, params)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A failure is the plugin's own profile's, whatever other profiles have one of the same name.
func TestProviderFailureIsThatOfThePlugin(t *testing.T) {
	for name, want := range map[string]string{"aws": "DisabledException", "gcp": "current state is: DISABLED", "azure": "KeyDisabled"} {
		p := NewProgram(testclock.NewFakeClock(time.Unix(0, 0)), 1)
		p.SetProfile(builtin(t, name))
		if _, err := p.Inject(parsed(t, map[string]any{"failure": "key-disabled"})); err != nil {
			t.Fatal(err)
		}
		plan := p.Plan(Encrypt)
		if plan.Error == nil || plan.Error.Code != codes.Unknown || !strings.Contains(plan.Error.Text, want) || strings.Join(plan.Faults, "+") != ProviderFailure {
			t.Errorf("%s: Encrypt %+v, want %s", name, plan.Error, want)
		}
		if status := p.Plan(Status); (status.Error == nil) != (name != "azure") {
			t.Errorf("%s: Status %+v", name, status)
		}
		p.Release(All)
		if plan := p.Plan(Encrypt); plan.Error != nil {
			t.Errorf("%s: after the release: %+v", name, plan.Error)
		}
	}
}

// A method that the failure does not name is as ever, and is not counted as struck.
func TestProviderFailureLeavesOtherMethodsAlone(t *testing.T) {
	p := NewProgram(testclock.NewFakeClock(time.Unix(0, 0)), 1)
	p.SetProfile(builtin(t, "vault"))
	if _, err := p.Inject(parsed(t, map[string]any{"failure": "encrypt-denied"})); err != nil {
		t.Fatal(err)
	}
	if plan := p.Plan(Status); plan.Error != nil || len(plan.Faults) != 0 || p.List()[0].Hits != 0 {
		t.Errorf("Status %+v", plan)
	}
	if plan := p.Plan(Decrypt); plan.Error == nil || p.List()[0].Hits != 1 {
		t.Errorf("Decrypt %+v", plan)
	}
}

func TestProviderFailureMistakes(t *testing.T) {
	for _, c := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"profile": "aws"}, `the profile aws has no failure "" (it has: credentials-expired,`},
		{map[string]any{"failure": "token-expired", "profile": "aws"}, `the profile aws has no failure "token-expired" (it has: credentials-expired,`},
		{map[string]any{"failure": "token-expired", "profile": "ibm"}, "profile: got \"ibm\", expected one of"},
	} {
		if _, err := (Catalogue{}).Parse(ProviderFailure, c.params); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.params, err, c.want)
		}
	}
	p := NewProgram(testclock.NewFakeClock(time.Unix(0, 0)), 1)
	if _, err := p.Inject(parsed(t, map[string]any{"failure": "token-expired"})); err == nil || !strings.Contains(err.Error(), "this plugin has no profile") {
		t.Errorf("without a profile: %v", err)
	}
	p.SetProfile(builtin(t, "aws"))
	if _, err := p.Inject(parsed(t, map[string]any{"failure": "token-expired"})); err == nil || !strings.Contains(err.Error(), "the profile aws has no failure") {
		t.Errorf("of another profile: %v", err)
	}
}

// Every call takes as long as the provider's calls do, before whatever a fault adds; no release ends that.
func TestLatencyOfAProfile(t *testing.T) {
	p := NewProgram(testclock.NewFakeClock(time.Unix(0, 0)), 1)
	if plan := p.Plan(Status); len(plan.Holds) != 0 {
		t.Errorf("without a profile: %+v", plan)
	}
	thales := builtin(t, "thales")
	p.SetProfile(thales)
	below := 0
	for range 1000 {
		plan := p.Plan(Encrypt)
		l := thales.Latency["Encrypt"]
		if len(plan.Holds) != 1 || plan.Holds[0].For < l.Least || plan.Holds[0].For > l.Most || plan.Holds[0].Released != nil || len(plan.Faults) != 0 {
			t.Fatalf("plan %+v", plan)
		}
		if plan.Holds[0].For < l.Half {
			below++
		}
	}
	if below < 450 || below > 550 {
		t.Errorf("%d of 1000 calls took less than half of them should", below)
	}
	f, err := Catalogue{}.Parse("delay", map[string]any{"by": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Inject(f); err != nil {
		t.Fatal(err)
	}
	if plan := p.Plan(Status); len(plan.Holds) != 2 || plan.Holds[1].For != time.Second || plan.Holds[1].Released == nil {
		t.Errorf("with a delay: %+v", plan.Holds)
	}
	p.SetProfile(nil)
	if plan := p.Plan(Encrypt); len(plan.Holds) != 1 {
		t.Errorf("the profile taken away: %+v", plan.Holds)
	}
}
