// Package otlp writes traces in OTLP's JSON encoding, one ExportTraceServiceRequest on each line, like OpenTelemetry's
// file exporter, so that any tracing backend can read them.
//
// The few required types are handwritten, because protojson would write ids in base64 and OTLP/JSON requires hex. Tests
// read the output with OpenTelemetry's own types. Joining operations is in harness/trace.
package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Kinds of spans, and codes of their status.
const (
	kindServer = 2
	kindClient = 3

	statusOK    = 1
	statusError = 2
)

type traces struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name string `json:"name"`
}

// span as OTLP/JSON has it: ids in hex, 64-bit numbers as strings, enums as numbers.
type span struct {
	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        string      `json:"startTimeUnixNano"`
	End          string      `json:"endTimeUnixNano"`
	Attributes   []attribute `json:"attributes,omitempty"`
	Events       []event     `json:"events,omitempty"`
	Status       status      `json:"status"`
}

type event struct {
	Time       string      `json:"timeUnixNano"`
	Name       string      `json:"name"`
	Attributes []attribute `json:"attributes,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String string `json:"stringValue"`
}

// attributes of pairs; those without a value are left out.
func attributes(pairs ...string) []attribute {
	var out []attribute
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, attribute{pairs[i], value{pairs[i+1]}})
		}
	}
	return out
}

// Sizes of ids, in bytes.
const (
	traceIDBytes = 16
	spanIDBytes  = 8
)

// id is made of texts, always the same of the same. All zeros would be no id.
func id(size int, texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		_, _ = h.Write([]byte(strconv.Itoa(len(t)) + ":" + t)) // a hash takes everything
	}
	sum := h.Sum(nil)[:size]
	sum[0] |= 1
	return hex.EncodeToString(sum)
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
