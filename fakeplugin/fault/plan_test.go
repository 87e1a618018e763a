package fault

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	testclock "k8s.io/utils/clock/testing"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func active(t testing.TB, flags ...string) []Active {
	t.Helper()
	var list []Active
	for _, flag := range flags {
		f, err := Catalogue{}.ParseFlag(flag)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Active{ID: flag, Fault: f, Injected: t0})
	}
	return list
}

type draws []float64

func (d *draws) Float64() float64 {
	v := (*d)[0]
	*d = append((*d)[1:], v)
	return v
}

func decide(a []Active, m Method, at time.Duration) Plan {
	return Decide(a, m, t0.Add(at), &draws{0.5})
}

func TestBounds(t *testing.T) {
	a := active(t, "healthz:count=2,for=10s")
	for i, c := range []struct {
		m    Method
		at   time.Duration
		hits bool
	}{{Encrypt, 0, false}, {Status, 0, true}, {Status, 10 * time.Second, false}, {Status, 9 * time.Second, true}, {Status, 9 * time.Second, false}} {
		if got := decide(a, c.m, c.at); (len(got.Edits) == 1) != c.hits {
			t.Errorf("call %d (%s at %v): %+v, struck wanted %t", i, c.m, c.at, got, c.hits)
		}
	}
}

func TestProbabilityIsSeeded(t *testing.T) {
	count := func(seed uint64) int {
		a := active(t, "healthz:probability=0.3")
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 1000 {
			Decide(a, Status, t0, rng)
		}
		return a[0].Hits
	}
	if n := count(1); n != count(1) || n < 250 || n > 350 || n == count(2) {
		t.Errorf("%d and %d hits of 1000 with probability 0.3", n, count(2))
	}
	a := active(t, "healthz:probability=0")
	if p := Decide(a, Status, t0, &draws{0}); len(p.Faults) > 0 {
		t.Error("probability 0 struck")
	}
}

func TestFaultsCombineInOrder(t *testing.T) {
	p := decide(active(t, "delay:by=1s", "hang", "healthz:text=a", "healthz:text=b", "grpc-status:code=14", "grpc-status:code=NotFound"), Status, 0)
	if len(p.Holds) != 2 || p.Holds[0].For != time.Second || len(p.Edits) != 2 || p.Edits[1].Value != "b" || p.Error.Code != codes.NotFound || len(p.Faults) != 6 {
		t.Errorf("plan %+v", p)
	}
}

func TestDelays(t *testing.T) {
	for flag, want := range map[string]time.Duration{
		"delay:by=2s": 2 * time.Second,
		"delay:by=2s,distribution=uniform,max=4s":              3 * time.Second,
		"delay:by=1s,distribution=heavy-tailed,alpha=1,max=9s": 2 * time.Second,
		"delay:by=1s,distribution=heavy-tailed,alpha=0.1":      10 * time.Second,
	} {
		if p := decide(active(t, flag), Status, 0); p.Holds[0].For != want {
			t.Errorf("%s: %v, want %v", flag, p.Holds[0].For, want)
		}
	}
}

func TestFlipFlop(t *testing.T) {
	a := active(t, "key-id-flip-flop:every=2")
	var seen strings.Builder
	for _, m := range []Method{Encrypt, Status, Encrypt, Status, Encrypt, Status, Encrypt, Status, Status} {
		if len(decide(a, m, 0).Edits) == 1 {
			seen.WriteString("x")
		} else {
			seen.WriteString(".")
		}
	}
	// E S E | S E | S E | S | S: Encrypt says what the Status before it said.
	if seen.String() != "xxxxx...x" {
		t.Errorf("flips %s", seen.String())
	}
	a = active(t, "key-id-flip-flop:period=1s")
	for at, want := range map[time.Duration]int{0: 1, 999 * time.Millisecond: 1, time.Second: 0, 2 * time.Second: 1} {
		if got := len(decide(a, Encrypt, at).Edits); got != want {
			t.Errorf("by time, at %v: %d edits, want %d", at, got, want)
		}
	}
}

func TestRateLimit(t *testing.T) {
	a := active(t, "rate-limit:rate=2,burst=2")
	for i, c := range []struct {
		at      time.Duration
		limited bool
	}{{0, false}, {0, false}, {0, true}, {500 * time.Millisecond, false}, {500 * time.Millisecond, true}, {time.Minute, false}, {time.Minute, false}, {time.Minute, true}} {
		if p := decide(a, Encrypt, c.at); (p.Error != nil) != c.limited {
			t.Errorf("call %d at %v: %+v, limited wanted %t", i, c.at, p, c.limited)
		}
	}
	if a[0].Hits != 3 {
		t.Errorf("%d hits, want the 3 calls that were limited", a[0].Hits)
	}
}

func TestVersionChange(t *testing.T) {
	a := active(t, "version-change:after=2")
	for i, want := range []int{0, 0, 1, 1} {
		if got := len(decide(a, Status, 0).Edits); got != want {
			t.Errorf("Status %d: %d edits, want %d", i, got, want)
		}
	}
}

func TestSocketStatesCombineToTheWorst(t *testing.T) {
	for flags, want := range map[string]File{
		"": FileServed, "socket-permissions": FileServed, "socket-replaced:with=new": FileServed, "refuse-connections:how=hang-up": FileServed,
		"refuse-connections": FileStale, "socket-stale": FileStale, "crash": FileStale, "crash:on=call": FileServed,
		"socket-replaced": FileSilent, "socket-replaced:with=file": FileDecoy, "slow-start:how=silent": FileSilent,
		"socket-removed socket-replaced crash": FileMissing, "crash socket-replaced:with=file": FileDecoy, "slow-start": FileMissing,
	} {
		if got := DecideSocket(active(t, strings.Fields(flags)...), t0); got.File != want {
			t.Errorf("%q: %s, want %s", flags, got.File, want)
		}
	}
	if got := DecideSocket(active(t, "slow-start"), t0.Add(5*time.Second)); got != (Socket{File: FileServed}) {
		t.Errorf("after a slow start: %+v", got)
	}
	if got := DecideSocket(active(t, "socket-stale:existing=keep"), t0); got.Cut != "" {
		t.Errorf("existing connections are cut: %+v", got)
	}
}

func TestCrashOnCall(t *testing.T) {
	a := active(t, "crash:on=call,method=Encrypt,how=exit")
	if p := decide(a, Status, 0); p.Crash {
		t.Error("Status crashed it")
	}
	if p := decide(a, Encrypt, 0); !p.Crash {
		t.Error("Encrypt did not crash it")
	}
	if s := DecideSocket(a, t0); s.Exit == nil || *s.Exit != 137 {
		t.Errorf("socket %+v", s)
	}
}

func TestHostileTextsAreWhatTheyClaim(t *testing.T) {
	if utf8.ValidString(HostileText("invalid-utf8")) || len(HostileText("huge")) != HugeBytes || !strings.Contains(HostileText("nul"), "\x00") {
		t.Error("a hostile text is tame")
	}
	if e := badAnnotation("long-name"); len(e.Annotation) != nameTooLong {
		t.Errorf("long name has %d characters", len(e.Annotation))
	}
}

func TestProgram(t *testing.T) {
	clock := testclock.NewFakePassiveClock(t0)
	p := NewProgram(clock, 1)
	if plan := p.Plan(Status); plan.Faults != nil {
		t.Errorf("an empty program: %+v", plan)
	}
	hung, err := p.Inject(active(t, "hang:for=5s,count=1")[0].Fault)
	if err != nil {
		t.Fatal(err)
	}
	plan := p.Plan(Status)
	if len(p.List()) != 1 || !p.List()[0].Spent() || p.Plan(Status).Holds != nil {
		t.Errorf("a spent fault: %+v", p.List())
	}
	if next, ok := p.Expire(); !ok || !next.Equal(t0.Add(5*time.Second)) {
		t.Errorf("next expiry %v, %t", next, ok)
	}
	clock.SetTime(t0.Add(5 * time.Second))
	if _, ok := p.Expire(); ok || len(p.List()) != 0 {
		t.Errorf("after its time: %+v", p.List())
	}
	select {
	case <-plan.Holds[0].Released:
	default:
		t.Errorf("the call that hangs in %s was not let go", hung.ID)
	}
	for range MaxActive {
		if _, err := p.Inject(active(t, "healthz")[0].Fault); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Inject(active(t, "healthz")[0].Fault); err == nil || !strings.Contains(err.Error(), "release some") {
		t.Errorf("one too many: %v", err)
	}
	if n := len(p.Release(ByID("f2"))); n != 1 {
		t.Errorf("%d released by id", n)
	}
	if n := len(p.Release(ByName("healthz"))); n != MaxActive-1 || len(p.Release(All)) != 0 {
		t.Errorf("%d released by name", n)
	}
	if _, err := p.Inject(Fault{Name: "handmade"}); err == nil {
		t.Error("a fault that Parse did not make was injected")
	}
}
