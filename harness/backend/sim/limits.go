package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Limit is how many nodes can report to one object.
type Limit struct {
	Servers int
	Jitter  time.Duration
	Start   string // how the reporters began
	Nodes   int    // the most of which no write failed
	Next    int    // one more than that: what failed of its writes
	Failed  string
}

// limitSettle and limitFor are the intervals of each try.
const limitSettle, limitFor = 10, 10

// maxLimit ends the search: past it an object is too large anyway.
const maxLimit = 2048

// Limit finds the most nodes whose reporters can write one object through some API servers without a failed write.
func (b *Backend) Limit(ctx context.Context, servers int, timing contract.Timing) (Limit, error) {
	out := Limit{Servers: servers, Jitter: timing.Jitter, Start: "anywhere in an interval"}
	load := Load{Servers: servers, Timing: timing, For: limitFor, Settle: limitSettle, Seed: 1}
	if timing.Jitter == 0 {
		out.Start, load.Together, load.Settle, load.For = "all together", true, 1, 3 // every tick is like the first
	}
	fails := func(nodes int) (LoadResult, error) {
		load.Nodes = nodes
		return b.Load(ctx, load)
	}
	below, above := 0, 8
	for {
		r, err := fails(above)
		if err != nil {
			return out, err
		}
		if r.Failed > 0 || above >= maxLimit {
			break
		}
		below, above = above, 2*above
	}
	for above-below > 1 {
		middle := (below + above) / 2
		r, err := fails(middle)
		if err != nil {
			return out, err
		}
		if r.Failed == 0 {
			below = middle
			continue
		}
		above, out.Failed = middle, fmt.Sprintf("%d of %d", r.Failed, r.Writes)
	}
	out.Nodes, out.Next = below, above
	return out, nil
}

// SizeLimit is how many nodes fit into one object, with healthy reports of so many plugins and with the longest that the contract
// allows, and how etcd refuses one more.
func (b *Backend) SizeLimit(ctx context.Context, plugins int, detail string) (nodes int, refusal error, err error) {
	f, err := b.Fill(ctx, 2*maxLimit, plugins, publish.Conditions, detail)
	return f.Nodes, f.Refusal, err
}

// Filled is an operator's CR with reports of many nodes.
type Filled struct {
	Nodes   int
	Refusal error // of one more node; nil: all fit
	// Bytes of the object as etcd stores it, and those of them that are managedFields; Body those of the last apply.
	Bytes, ManagedFields, Body int
}

// Fill writes reports of nodes into one object, each under a field manager of its own, until one is refused.
func (b *Backend) Fill(ctx context.Context, nodes, plugins int, form publish.Form, detail string) (out Filled, err error) {
	types, err := b.types[""]()
	if err != nil {
		return out, fmt.Errorf("sim backend: %w", err)
	}
	w, err := newWorld(1, history.NewLog(nil), contract.DefaultTiming(), store.New(types, store.Options{SSA: store.Model}))
	if err != nil {
		return out, err
	}
	if w.operator, err = operatorNamed(""); err != nil {
		return out, err
	}
	if err := w.populate(); err != nil {
		return out, err
	}
	transition := publish.TransitionAt(w.k.Now())
	for out.Nodes < nodes && out.Refusal == nil {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		name := fmt.Sprintf("node-%04d", out.Nodes+1)
		body, _, err := publish.Body(publish.KubeAPIServer, form, core.Action{Report: fillerReport(name, plugins, detail, w.k.Now())}, &transition)
		if err != nil {
			return out, err
		}
		rep := (&server{proc: proc{w: w}, node: &node{w: w}}).perform(&request{verb: verbPatch, key: w.crKey(), subresource: "status", force: true,
			manager: contract.FieldManager(name), contentType: audit.ContentTypeApply, body: body})
		if rep.code >= http.StatusBadRequest {
			out.Refusal = errors.New(rep.text)
			break
		}
		out.Nodes++
		out.Body = len(body)
	}
	v, err := w.store.Get(w.crKey())
	if err != nil {
		return out, err
	}
	out.Bytes = v.Size()
	managed, err := json.Marshal(v.ManagedFields())
	out.ManagedFields = len(managed)
	return out, err
}

func fillerReport(node string, plugins int, detail string, at time.Time) contract.Report {
	r := contract.Report{Node: node}
	for i := range plugins {
		e := contract.Entry{KeyID: fmt.Sprint(i + 1), KEKID: "kek-0123456789abcdef", Status: contract.StatusHealthy, LastChecked: at}
		if detail != "" {
			e.Status, e.Detail = contract.StatusUnhealthy, detail
		}
		r.Entries = append(r.Entries, e)
	}
	return r
}

// LongestDetail is a detail as long as the contract allows.
func LongestDetail() string { return strings.Repeat("x", contract.MaxDetailChars) }
