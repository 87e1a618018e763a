package otlp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/trace"
	"github.com/kmsharness/kmsharness/harness/trace/otlp"
)

var start = time.Date(2026, 5, 8, 12, 0, 0, 123456789, time.UTC)

// recorded is one whole operation, one that failed, and one without a uid.
func recorded() *trace.Trace {
	log := history.NewLog(nil)
	call := func(uid, outcome, code string) *history.Call {
		return &history.Call{Node: "cp-1", KeyID: "1", Method: "Encrypt", UID: uid, Began: start.Add(time.Millisecond), Ended: start.Add(3 * time.Millisecond), Took: 2 * time.Millisecond, Outcome: outcome, Code: code, KEKID: "kek-1"}
	}
	log.Record(start, "log/cp-1", &history.Envelope{Hop: trace.APIServer, Op: "encrypt", UID: "u1", Node: "cp-1", OK: true})
	log.Record(start.Add(2*time.Millisecond), "kms", &history.Envelope{Hop: trace.RemoteKMS, Op: "encrypt", UID: "u1", Node: "cp-1", KeyID: "1", OK: true, Took: time.Millisecond})
	log.Record(start.Add(3*time.Millisecond), "journal", call("u1", "ok", "OK"))
	log.Record(start.Add(4*time.Millisecond), "log/cp-1", &history.Envelope{Hop: trace.APIServer, Op: "use", UID: "u1", Node: "cp-1", Object: "/registry/secrets/ns/a", OK: true})
	log.Record(start.Add(3*time.Millisecond), "journal", call("u2", "error", "Internal"))
	log.Record(start.Add(3*time.Millisecond), "journal", call("", "ok", "OK"))
	return trace.Join(log.Events())
}

func write(t *testing.T, tr *trace.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := otlp.Write(&out, tr); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read is what OpenTelemetry's own types make of it. OTLP/JSON differs from protobuf's in one point: ids are hex, not base64.
func read(t *testing.T, text []byte) *tracepb.TracesData {
	t.Helper()
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	ids(t, tree)
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	data := &tracepb.TracesData{}
	if err := protojson.Unmarshal(text, data); err != nil { // unknown fields are errors
		t.Fatal(err)
	}
	return data
}

func ids(t *testing.T, tree any) {
	switch x := tree.(type) {
	case []any:
		for _, v := range x {
			ids(t, v)
		}
	case map[string]any:
		for k, v := range x {
			text, isText := v.(string)
			if !isText || !strings.HasSuffix(k, "Id") {
				ids(t, v)
				continue
			}
			b, err := hex.DecodeString(text)
			if err != nil {
				t.Fatalf("%s %q: %v", k, text, err)
			}
			x[k] = base64.StdEncoding.EncodeToString(b)
		}
	}
}

func TestOpenTelemetryReadsIt(t *testing.T) {
	text := write(t, recorded())
	if bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("the file exporter writes one line, this is %d", bytes.Count(text, []byte("\n")))
	}
	spans, services := map[string]*tracepb.Span{}, map[string]string{}
	for _, r := range read(t, text).ResourceSpans {
		for _, s := range r.ScopeSpans[0].Spans {
			id := string(s.SpanId)
			if spans[id] != nil || len(s.SpanId) != 8 || len(s.TraceId) != 16 {
				t.Errorf("span id %x, trace id %x", s.SpanId, s.TraceId)
			}
			spans[id], services[id] = s, r.Resource.Attributes[0].Value.GetStringValue()
		}
	}
	byService := map[string]int{}
	for id, s := range spans {
		byService[services[id]]++
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < uint64(start.UnixNano()) {
			t.Errorf("%s from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		if len(s.ParentSpanId) == 0 {
			continue
		}
		parent := spans[string(s.ParentSpanId)]
		if parent == nil || !bytes.Equal(parent.TraceId, s.TraceId) {
			t.Errorf("%s has no parent in its trace", s.Name)
		}
	}
	if byService[trace.APIServer] != 3 || byService[trace.Plugin] != 3 || byService[trace.RemoteKMS] != 1 {
		t.Errorf("%v", byService)
	}
}

func TestFailuresGapsAndUsesAreToldOf(t *testing.T) {
	failed, notJoined, used := 0, 0, 0
	for _, r := range read(t, write(t, recorded())).ResourceSpans {
		for _, s := range r.ScopeSpans[0].Spans {
			if s.Status.Code == tracepb.Status_STATUS_CODE_ERROR {
				failed++
			}
			for _, e := range s.Events {
				switch e.Name {
				case "not joined":
					notJoined++
				case "key used":
					used++
				}
			}
		}
	}
	if failed != 2 || notJoined < 2 || used != 1 {
		t.Errorf("%d failed, %d gaps, %d uses", failed, notJoined, used)
	}
}

// The same recording gives the same bytes, and a uid the same trace id in any recording.
func TestIdsComeFromTheUID(t *testing.T) {
	if a, b := write(t, recorded()), write(t, recorded()); !bytes.Equal(a, b) {
		t.Error("two exports differ")
	}
	alone := recorded()
	alone.Operations = alone.Operations[:1]
	all, one := read(t, write(t, recorded())), read(t, write(t, alone))
	if !bytes.Equal(all.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId, one.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId) {
		t.Error("another trace id beside other operations")
	}
}

func TestNothingIsStillAnExport(t *testing.T) {
	if text := write(t, trace.Join(nil)); string(text) != "{}\n" || len(read(t, text).ResourceSpans) != 0 { // an empty message
		t.Errorf("%s", text)
	}
}
