package contract

import (
	"strings"
	"testing"
	"time"
)

func TestFreshnessBoundaries(t *testing.T) {
	const i = 30 * time.Second
	for age, want := range map[time.Duration]Freshness{
		0: Fresh, i: Fresh, 4 * i: Fresh, 4*i + 1: Stale, 1000 * time.Hour: Stale,
		-1: Fresh, -i: Fresh, -i - 1: Skewed, -1000 * time.Hour: Skewed,
	} {
		if got := FreshnessAt(checked, checked.Add(-age), i); got != want {
			t.Errorf("age %v: %s, expected %s", age, got, want)
		}
	}
	if FreshnessAt(checked, time.Time{}, i) != Stale {
		t.Error("a report without a time is not stale")
	}
}

func TestOldestEntryCounts(t *testing.T) {
	r := Report{Entries: []Entry{{LastChecked: checked}, {LastChecked: checked.Add(-time.Second)}, {LastChecked: checked.Add(time.Second)}}}
	if !r.Oldest().Equal(checked.Add(-time.Second)) || !(Report{}).Oldest().IsZero() {
		t.Errorf("oldest %v, of nothing %v", r.Oldest(), Report{}.Oldest())
	}
}

func TestTimingArithmetic(t *testing.T) {
	local := Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond, WriteTimeout: time.Second, AggregatorLatency: time.Second}
	for _, tt := range []struct {
		name                                                                string
		t                                                                   Timing
		detection, recovery, stale, cleanup, cadenceMin, cadenceMax, maxAge time.Duration
	}{
		{"default", DefaultTiming(), 49 * time.Second, 49 * time.Second, 121 * time.Second, 121 * time.Second, 27 * time.Second, 48 * time.Second, 45 * time.Second},
		{"local", local, 3600 * time.Millisecond, 3600 * time.Millisecond, 5 * time.Second, 5 * time.Second, 900 * time.Millisecond, 2600 * time.Millisecond, 2500 * time.Millisecond},
	} {
		if err := tt.t.Validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for bound, pair := range map[string][2]time.Duration{
			"detection": {tt.t.DetectionBound(), tt.detection}, "recovery": {tt.t.RecoveryBound(), tt.recovery}, "stale": {tt.t.StaleBound(), tt.stale},
			"cleanup": {tt.t.CleanupBound(), tt.cleanup}, "cadence min": {tt.t.CadenceMin(), tt.cadenceMin}, "cadence max": {tt.t.CadenceMax(), tt.cadenceMax},
			"probe age": {tt.t.MaxProbeAge(), tt.maxAge},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s bound %v, expected %v", tt.name, bound, pair[0], pair[1])
			}
		}
	}
}

func TestTimingMistakes(t *testing.T) {
	for want, spoil := range map[string]func(*Timing){
		"interval 0s: must be positive":        func(t *Timing) { *t = Timing{AggregatorLatency: 1} },
		"jitter 3.000000001s":                  func(t *Timing) { t.Jitter++ },
		"jitter -1ns":                          func(t *Timing) { t.Jitter = -1 },
		"probe timeout 0s":                     func(t *Timing) { t.ProbeTimeout = 0 },
		"probe timeout 31s":                    func(t *Timing) { t.ProbeTimeout = 31 * time.Second },
		"write timeout 31s":                    func(t *Timing) { t.WriteTimeout = 31 * time.Second },
		"write timeout -1s":                    func(t *Timing) { t.WriteTimeout = -time.Second },
		"aggregator latency 1.1s: must be pos": func(t *Timing) { t.AggregatorLatency = 1100 * time.Millisecond },
	} {
		timing := DefaultTiming()
		spoil(&timing)
		if err := timing.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func TestConditionNames(t *testing.T) {
	if got := ConditionType("cp-1.example.com"); got != "KMSHealthReporter_cp-1.example.com" {
		t.Errorf("condition type %s", got)
	}
	for conditionType, want := range map[string]string{
		"KMSHealthReporter_cp-1": "cp-1", "KMSHealthReporter_a_b": "a_b", "KMSHealthReporter_": "", "KMSHealthReporter": "", "KMSPluginsDegraded": "", "": "",
	} {
		node, ok := NodeOfCondition(conditionType)
		if ok != (want != "") || ok && node != want {
			t.Errorf("%q: node %q, %v", conditionType, node, ok)
		}
	}
}

// TestNoReportIsRoutedToTheClusterOperator holds for nodes whose own name does not end in a suffix.
func TestNoReportIsRoutedToTheClusterOperator(t *testing.T) {
	for _, suffix := range []string{"Degraded", "Available", "Progressing"} {
		if strings.HasSuffix(ConditionType("cp-1"), suffix) {
			t.Errorf("%s would be routed", ConditionType("cp-1"))
		}
		routed := false
		for _, rollup := range RollupTypes() {
			routed = routed || strings.HasSuffix(rollup, suffix)
		}
		if !routed {
			t.Errorf("no rollup is routed to %s", suffix)
		}
	}
}

func TestFieldManagerNames(t *testing.T) {
	if got, want := FieldManager("cp-1"), "kms-health-reporter-cd590dae0f692213850deb5d55c9f371bff1f31e6ef85475ae21a5fe43f69aff"; got != want {
		t.Errorf("cp-1: %s, want %s", got, want)
	}
	long := strings.Repeat("n", 253)
	a, b := FieldManager(long+"a"), FieldManager(long+"b")
	if a == b || len(a) > MaxFieldManagerBytes || a != FieldManager(long+"a") {
		t.Errorf("long names become %s and %s", a, b)
	}
	if got := ReporterIdentity("cp-1"); got != "system:kms-health-reporter:cp-1" {
		t.Errorf("identity %s", got)
	}
}

func TestSockets(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///var/run/kmsplugin/kms-2.sock": "2", "unix:///kms-17.sock": "17", "unix:///a/kms-a1-B.sock": "a1-B", "unix:///a/kms-" + strings.Repeat("k", 63) + ".sock": strings.Repeat("k", 63),
	} {
		if got, err := KeyIDOfSocket(endpoint); err != nil || got != want {
			t.Errorf("%s: %q, %v", endpoint, got, err)
		}
	}
	for _, bad := range []string{
		"", "/a/kms-1.sock", "unix://kms-1.sock", "unix:/a/kms-1.sock", "tcp:///a/kms-1.sock", "unix:///a/kms-.sock", "unix:///a/kms--1.sock", "unix:///a/kms-1.sock/",
		"unix:///a/kms-1.socket", "unix:///a/xkms-1.sock", "unix:///@kms-1.sock", "unix:///a/kms-1_2.sock", "unix:///a/kms-1\n.sock", "unix:///a/kms-" + strings.Repeat("k", 64) + ".sock",
	} {
		if got, err := KeyIDOfSocket(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: keyID %q, %v, expected one line that says what is expected", bad, got, err)
		}
	}
	for _, dir := range []string{SocketDir, SocketDir + "/"} {
		if got, err := KeyIDOfSocket(SocketPath(dir, "3")); err != nil || got != "3" || SocketPath(dir, "3") != "unix:///var/run/kmsplugin/kms-3.sock" {
			t.Errorf("%s: %s, %v", SocketPath(dir, "3"), got, err)
		}
	}
}

func TestStatusValid(t *testing.T) {
	for s, want := range map[Status]bool{StatusHealthy: true, StatusUnhealthy: true, StatusError: true, "": false, "Healthy": false} {
		if s.Valid() != want {
			t.Errorf("%q valid: %v", s, s.Valid())
		}
	}
}
