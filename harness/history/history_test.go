package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

var start = time.Date(2026, 5, 8, 12, 34, 56, 789000000, time.UTC)

// payloads is one of every kind, with the fields that are hard to keep: times, raw JSON, maps.
func payloads() []any {
	return []any{
		&Run{Schema: Schema, Scenario: "one plugin hangs", Timing: contract.DefaultTiming(), Tolerance: time.Second, TakeoverAllowance: 2 * time.Second,
			Connectivity: "service", Excused: []Excuse{{"CADENCE", "on purpose"}}},
		&Phase{Name: PhaseSteps},
		&Action{ID: "steps[0]", Verb: "inject", Target: "plugin cp-1/1", Params: map[string]any{"fault": "hang"}, State: ActionBegan},
		&Expectation{ID: "steps[1]", Mode: "within", Text: "degraded()", OK: true, Bound: time.Second},
		&Expected{KMSActive: true, Nodes: []ExpectedNode{{Name: "cp-1", Since: start.Truncate(time.Second), KeyIDs: []string{"2", "1"}}}},
		&Call{Node: "cp-1", KeyID: "1", Method: "Status", Began: start, Ended: start.Add(1234567), Took: 1234567, Outcome: CallOK, Code: "OK", Healthz: "a\nb\u2028\x00",
			HealthzBytes: 1 << 20, KEKIDBytes: 1025},
		&Request{AuditID: "a", Verb: "patch", Received: start, Completed: start, Body: []byte(`{"status":{"conditions":[]}}`)},
		&Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", Conditions: []*Condition{{Type: "T", Status: "True"}},
			HealthReports: []*contract.TypedReport{{NodeName: "cp-1"}}, Owners: map[string][]string{"condition/T": {"m"}}},
		&Process{Role: RolePlugin, Node: "cp-1", KeyID: "1", State: ProcessKilled},
		&Container{Node: "cp-1", Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Name: "reporter", State: ContainerExited, ExitCode: new(int), Restarts: new(int)},
		&Link{From: "reporter", To: "apiserver", Node: "cp-1", State: LinkSlow, Delay: time.Second},
		&Envelope{Hop: "kube-apiserver", Op: "encrypt", UID: "u", OK: true},
		&Metrics{Node: "cp-1", Plugins: []PluginMetrics{{KeyID: "1", Healthy: new(bool), Calls: 3, Errors: 1, Seconds: 0.25}}},
		&Starvation{Role: RoleAPIServer, Node: "cp-2", From: start, To: start.Add(740 * time.Millisecond)},
		&Data{Op: DataRaw, Object: "secrets/ns/a", OK: true, Provider: "kms-1"},
		&End{Complete: true},
	}
}

func TestRoundTrip(t *testing.T) {
	var file bytes.Buffer
	log := NewLog(&file)
	for i, p := range payloads() {
		log.Record(start.Add(time.Duration(i)).In(time.FixedZone("east", 3600)), "test", p)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if want := log.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v\nwrote %+v", got, want)
	}
	kinds := map[Kind]bool{}
	for i, e := range got {
		if e.Seq != int64(i+1) || !e.HasPayload() {
			t.Errorf("event %d: %+v", i, e)
		}
		kinds[e.Kind] = true
	}
	if len(kinds) != 16 {
		t.Errorf("%d kinds written, want all 16", len(kinds))
	}
}

func TestReadErrorsNameTheLine(t *testing.T) {
	run := func(rest string) string {
		return `{"seq":1,"kind":"run","run":{"schema":"` + Schema + `"` + rest + "}}\n"
	}
	timing := func(interval string) string {
		return `,"timing":{"interval":` + interval + `,"jitter":0,"probeTimeout":1000,"writeTimeout":1000,"aggregatorLatency":1000}`
	}
	head := run(timing("1000000000"))
	cases := map[string]struct{ text, want string }{
		"empty":             {"", "history is empty: expected a run event on line 1"},
		"only blank lines":  {"\n\n", "history is empty"},
		"no JSON":           {head + "\nnonsense\n", "line 3: not a history event"},
		"cut off":           {head + `{"seq":2,"kind":"ph`, "line 2: not a history event"},
		"wrong type":        {head + `{"seq":"2"}`, "line 2: not a history event"},
		"no run":            {`{"seq":1,"kind":"phase","phase":{"name":"steps"}}`, `line 1: first event is "phase", expected "run"`},
		"run after a blank": {"\n" + `{"seq":1,"kind":"phase","phase":{}}`, `line 2: first event is "phase"`},
		"other schema":      {`{"seq":1,"kind":"run","run":{"schema":"v9"}}`, `line 1: schema "v9", this program reads "` + Schema + `"`},
		"unknown kind":      {head + `{"seq":2,"kind":"magic"}`, `line 2: event 2: kind "magic" without its payload, or unknown`},
		"missing payload":   {head + `{"seq":2,"kind":"call","phase":{}}`, `line 2: event 2: kind "call" without its payload`},
		"second run":        {head + "\n\n" + `{"seq":7,"kind":"run"}`, `line 4: event 7: kind "run" without its payload`},
		"no timing":         {run(""), "line 1: timing: interval 0s: expected 1ms to 24h"},
		"tiny interval":     {run(timing("1")), "line 1: timing: interval 1ns: expected 1ms to 24h"},
		"endless interval":  {run(timing("9000000000000000000")), "line 1: timing: interval 2500000h"},
		"no deadlines":      {run(`,"timing":{"interval":1000000000}`), "line 1: timing: probe timeout 0s: must be positive and at most the interval 1s; write timeout"},
		"odd tolerance":     {run(timing("1000000000") + `,"tolerance":-1`), "line 1: tolerance -1ns: expected 0 to 24h"},
		"null condition":    {head + `{"seq":2,"kind":"object","object":{"conditions":[null]}}`, "line 2: event 2: a condition or report is null"},
		"line too long":     {head + "\n" + strings.Repeat("x", MaxLineBytes+1), "line 3: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			events, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Read = %d events, %v\nwant an error that begins with %q", len(events), err, c.want)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": line 1: ") {
		t.Errorf("bad file: %v", err)
	}
}

func TestSubscribersSeeEveryEventOnce(t *testing.T) {
	log := NewLog(nil)
	log.Record(start, "test", &Phase{Name: PhaseStart})
	var seen []int64
	cancel := log.Subscribe(func(e Event) { seen = append(seen, e.Seq) })
	log.Record(start, "test", &Phase{Name: PhaseSteps})
	cancel()
	log.Record(start, "test", &Phase{Name: PhaseEnd})
	if !reflect.DeepEqual(seen, []int64{1, 2}) {
		t.Errorf("seen %v, want 1 and 2", seen)
	}
}

func TestWriteErrorsAreKept(t *testing.T) {
	log := NewLog(failing{})
	log.Record(start, "test", &End{})
	if err := log.Flush(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Flush() = %v", err)
	}
	if len(log.Events()) != 1 {
		t.Error("the run must go on in memory")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestUnknownPayloadDoesNotVanish(t *testing.T) {
	log := NewLog(nil)
	log.Record(start, "test", 42)
	if e := log.Events()[0]; e.End == nil || e.End.Complete || !strings.Contains(e.End.Problem, "int") {
		t.Errorf("recorded %+v", e)
	}
}

func TestInTime(t *testing.T) {
	events := []Event{{Seq: 1, At: start.Add(2)}, {Seq: 3, At: start}, {Seq: 2, At: start}}
	var got []int64
	for _, e := range InTime(events) {
		got = append(got, e.Seq)
	}
	if !reflect.DeepEqual(got, []int64{2, 3, 1}) || events[0].Seq != 1 {
		t.Errorf("in time %v, and the argument must not change", got)
	}
}

// FuzzRead: what Read accepts it reads again, unchanged, after being written.
func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	log := NewLog(&file)
	for _, p := range payloads() {
		log.Record(start, "test", p)
	}
	if err := log.Flush(); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"kind":"run","run":{"schema":"` + Schema + `","timing":{"interval":1000000000}},"at":"9999-12-31T23:59:59Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := Read(bytes.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		var out bytes.Buffer
		log := NewLog(&out)
		for _, e := range events {
			log.Append(e)
		}
		if err := log.Flush(); err != nil {
			return // a time that JSON cannot write
		}
		again, err := Read(&out)
		if err != nil || len(again) != len(events) {
			t.Fatalf("read again: %d of %d events, %v", len(again), len(events), err)
		}
	})
}
