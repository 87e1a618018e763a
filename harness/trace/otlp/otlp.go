// Package otlp writes traces in OTLP's JSON encoding, one ExportTraceServiceRequest on each line, like OpenTelemetry's
// file exporter, so that any tracing backend can read them. Joining operations is in harness/trace.
package otlp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kmsharness/kmsharness/harness/trace"
)

// Write writes every operation of t as a trace of its own, on one line. A trace's id comes from its uid alone, so that two exports, and
// the exports of two recordings of one cluster, agree. Each party is a service; a span without a parent is the operation as a whole.
func Write(w io.Writer, t *trace.Trace) error {
	byService := map[service][]*spans.Span{}
	for n := range t.Operations {
		add(byService, &t.Operations[n], n)
	}
	out := &spans.TracesData{}
	for _, s := range slices.SortedFunc(maps.Keys(byService), service.compare) {
		out.ResourceSpans = append(out.ResourceSpans, &spans.ResourceSpans{
			Resource:   &resource.Resource{Attributes: attributes("service.name", s.name, "host.name", s.node, "kmsharness.scenario", t.Scenario, "kmsharness.backend", t.Backend)},
			ScopeSpans: []*spans.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "github.com/kmsharness/kmsharness/harness/trace"}, Spans: byService[s]}},
		})
	}
	text, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode OTLP: %w", err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil { // protojson adds spaces at random
		return fmt.Errorf("encode OTLP: %w", err)
	}
	line.WriteByte('\n')
	if _, err := line.WriteTo(w); err != nil {
		return fmt.Errorf("write OTLP: %w", err)
	}
	return nil
}

type service struct{ name, node string }

func (s service) compare(o service) int {
	return strings.Compare(s.name+"\x00"+s.node, o.name+"\x00"+o.node)
}

// add makes spans of an operation: one of the API server around all, and below it one of the plugin and one of its KMS. The API server
// logs the beginning only, so its span ends with the last hop.
func add(by map[service][]*spans.Span, o *trace.Operation, number int) {
	seed := o.UID
	if seed == "" { // its own all the same
		seed = fmt.Sprintf("without a uid %d %d", number, o.Hops[0].Seq)
	}
	root := spanOf("kms "+o.Op, spans.Span_SPAN_KIND_CLIENT, o.Began, o.Took, o.OK, o.Error)
	root.TraceId, root.SpanId = id(traceIDBytes, "trace", seed), id(spanIDBytes, "span", seed, o.Op)
	root.Attributes = attributes("kms.uid", o.UID, "kms.key_id", o.KEKID, "kms.socket.key_id", o.KeyID, "kms.dek_source", o.Source, "k8s.object", o.Object, "k8s.audit_id", o.Request)
	for _, g := range o.Gaps {
		root.Events = append(root.Events, &spans.Span_Event{TimeUnixNano: nanos(o.Began), Name: "not joined", Attributes: attributes("party", g.Party, "reason", string(g.Reason), "text", g.Text)})
	}
	for _, u := range o.Sealed {
		root.Events = append(root.Events, &spans.Span_Event{TimeUnixNano: nanos(u.At), Name: "key used", Attributes: attributes("k8s.object", u.Object, "verb", u.Verb, "host.name", u.Node)})
	}
	by[service{trace.APIServer, o.Node}] = append(by[service{trace.APIServer, o.Node}], root)
	parent := root.SpanId
	for i, h := range o.Hops {
		if h.Party == trace.APIServer {
			continue
		}
		s := spanOf(h.Party+" "+o.Op, spans.Span_SPAN_KIND_SERVER, h.Began, max(h.Took, 0), h.OK, h.Text)
		s.TraceId, s.ParentSpanId, s.SpanId = root.TraceId, parent, id(spanIDBytes, "span", text(root.SpanId), h.Party, fmt.Sprint(i))
		s.Attributes = attributes("kms.uid", o.UID, "kms.key_id", o.KEKID, "text", h.Text)
		at := service{h.Party, o.Node}
		if h.Party == trace.RemoteKMS {
			at.node = ""
		} else {
			parent = s.SpanId
		}
		by[at] = append(by[at], s)
	}
}

func spanOf(name string, kind spans.Span_SpanKind, began time.Time, took time.Duration, ok bool, problem string) *spans.Span {
	s := &spans.Span{Name: name, Kind: kind, StartTimeUnixNano: nanos(began), EndTimeUnixNano: nanos(began.Add(took)), Status: &spans.Status{Code: spans.Status_STATUS_CODE_OK}}
	if !ok {
		s.Status = &spans.Status{Code: spans.Status_STATUS_CODE_ERROR, Message: problem}
	}
	return s
}

// attributes of pairs; those without a value are left out.
func attributes(pairs ...string) (out []*common.KeyValue) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			out = append(out, &common.KeyValue{Key: pair[0], Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: pair[1]}}})
		}
	}
	return out
}

// Sizes of ids, in bytes.
const (
	traceIDBytes = 16
	spanIDBytes  = 8
)

// id is made of texts, always the same of the same. All zeros would be no id. OTLP/JSON has ids in hex, and protojson writes all bytes in base64: so
// these are the bytes that have the hex digits as their base64.
func id(size int, texts ...string) []byte {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	sum := h.Sum(nil)[:size]
	sum[0] |= 1
	out, _ := base64.StdEncoding.DecodeString(hex.EncodeToString(sum)) // a multiple of four of its digits
	return out
}

// text is the hex digits of an id.
func text(id []byte) string { return base64.StdEncoding.EncodeToString(id) }

func nanos(t time.Time) uint64 { return uint64(t.UnixNano()) }
