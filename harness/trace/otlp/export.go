package otlp

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/trace"
)

// Write writes every operation of t as a trace of its own, on one line. A trace's id comes from its uid alone, so that two exports, and
// the exports of two recordings of one cluster, agree. Each party is a service; a span without a parent is the operation as a whole.
func Write(w io.Writer, t *trace.Trace) error {
	byService := map[service][]span{}
	for n := range t.Operations {
		add(byService, &t.Operations[n], n)
	}
	out := traces{ResourceSpans: []resourceSpans{}}
	for _, s := range slices.SortedFunc(maps.Keys(byService), service.compare) {
		out.ResourceSpans = append(out.ResourceSpans, resourceSpans{
			Resource:   resource{attributes("service.name", s.name, "host.name", s.node, "kmsharness.scenario", t.Scenario, "kmsharness.backend", t.Backend)},
			ScopeSpans: []scopeSpans{{scope{"github.com/kmsharness/kmsharness/harness/trace"}, byService[s]}},
		})
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
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
func add(by map[service][]span, o *trace.Operation, number int) {
	seed := o.UID
	if seed == "" { // its own all the same
		seed = fmt.Sprintf("without a uid %d %d", number, o.Hops[0].Seq)
	}
	traceID := id(traceIDBytes, "trace", seed)
	root := span{TraceID: traceID, SpanID: id(spanIDBytes, "span", seed, o.Op), Name: "kms " + o.Op, Kind: kindClient, Start: nanos(o.Began), End: nanos(o.Began.Add(o.Took)),
		Attributes: attributes("kms.uid", o.UID, "kms.key_id", o.KEKID, "kms.socket.key_id", o.KeyID, "kms.dek_source", o.Source, "k8s.object", o.Object, "k8s.audit_id", o.Request),
		Status:     statusOf(o.OK, o.Error)}
	for _, g := range o.Gaps {
		root.Events = append(root.Events, event{nanos(o.Began), "not joined", attributes("party", g.Party, "reason", string(g.Reason), "text", g.Text)})
	}
	for _, u := range o.Sealed {
		root.Events = append(root.Events, event{nanos(u.At), "key used", attributes("k8s.object", u.Object, "verb", u.Verb, "host.name", u.Node)})
	}
	by[service{trace.APIServer, o.Node}] = append(by[service{trace.APIServer, o.Node}], root)
	parent := root.SpanID
	for i, h := range o.Hops {
		if h.Party == trace.APIServer {
			continue
		}
		s := hop(root, parent, o, h, i)
		at := service{h.Party, o.Node}
		if h.Party == trace.RemoteKMS {
			at.node = ""
		} else {
			parent = s.SpanID
		}
		by[at] = append(by[at], s)
	}
}

func hop(root span, parent string, o *trace.Operation, h trace.Hop, i int) span {
	return span{TraceID: root.TraceID, SpanID: id(spanIDBytes, "span", root.SpanID, h.Party, fmt.Sprint(i)), ParentSpanID: parent, Name: h.Party + " " + o.Op, Kind: kindServer,
		Start: nanos(h.Began), End: nanos(h.Began.Add(max(h.Took, time.Duration(0)))),
		Attributes: attributes("kms.uid", o.UID, "kms.key_id", o.KEKID, "text", h.Text), Status: statusOf(h.OK, h.Text)}
}

func statusOf(ok bool, text string) status {
	if ok {
		return status{Code: statusOK}
	}
	return status{statusError, text}
}
