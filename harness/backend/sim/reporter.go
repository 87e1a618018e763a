package sim

import (
	"slices"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// reporter is the loop around reporter/core.
type reporter struct {
	proc
	node       *node
	op         operator // that it was told
	state      core.State
	keyIDs     []string // of its flags
	calls      []*call
	pub        publisher
	stream     *streamer // with connectivity stream
	publish    Publish
	read       int                     // the credential that was in its file when it started
	seen       []history.PluginMetrics // what its metrics say
	configured []history.PluginMetrics // at the last scrape that was recorded
}

const leastReporterBoot, mostReporterBoot = 20 * time.Millisecond, 60 * time.Millisecond

func newReporter(w *world, n *node) *reporter {
	r := &reporter{proc: proc{w: w, id: history.Process{Role: history.RoleReporter, APIServer: w.apiServer, Node: n.name}}, node: n}
	r.init = func() {
		r.op = w.configured(history.RoleReporter)
		r.state, r.keyIDs = core.State{}, append([]string(nil), n.reported()...)
		r.pub = publisher{r: r, alternatives: alternativesOf(r)}
		apply := r.pub.apply
		if r.stream = nil; r.w.connectivity == history.ConnectStream {
			r.stream = newStreamer(r)
			apply = r.stream.apply
			if w.hooks.Streams.WritesItself {
				apply = func(a core.Action, done func(error)) {
					r.pub.apply(a, func(error) {})
					r.stream.apply(a, done)
				}
			}
		}
		r.read = w.credentials[n.name].file
		r.publish = w.hooks.publisher(n.name, apply)
		r.seen, r.configured = make([]history.PluginMetrics, len(r.keyIDs)), nil
		for i, k := range r.keyIDs {
			r.seen[i].KeyID = k
		}
	}
	r.boot = func(ready func()) { r.after(w.k.Between(leastReporterBoot, mostReporterBoot), ready) }
	r.up = func() {
		begin := func() { r.step(r.timer()) }
		switch {
		case r.stream == nil:
			begin()
		case w.hooks.Streams.ProbeUnheard:
			r.stream.begin(nil)
			begin()
		default:
			r.stream.begin(begin)
		}
		r.scrape()
	}
	r.gone = func() {
		for _, c := range r.calls {
			c.cancel()
		}
		r.calls = nil
		r.pub.disconnect()
		if r.stream != nil {
			r.stream.disconnect()
		}
	}
	return r
}

func (r *reporter) timer() core.Event {
	j := r.w.timing.Jitter
	return core.Event{Kind: core.Timer, Now: r.w.k.Now(), Jitter: r.w.hooks.jitter(r.w.k.Between(-j, j))}
}

// step asks the core what to do, and does it.
func (r *reporter) step(ev core.Event) {
	var a core.Action
	r.state, a = r.w.cores.Step(core.Config{Node: r.node.name, Timing: r.w.timing}, r.state, ev)
	switch a.Kind {
	case core.Probe:
		r.probe()
	case core.Write:
		wrote := r.bind(func() { r.step(core.Event{Kind: core.Wrote, Now: r.w.k.Now()}) })
		r.publish(a, func(error) { wrote() })
	default:
		r.at(a.Until, func() { r.step(r.timer()) })
	}
}

// probe asks every plugin at once, each with its own deadline.
func (r *reporter) probe() {
	if r.w.hooks.ScanSockets {
		r.scan()
	}
	results := make([]core.Result, len(r.keyIDs))
	r.calls = make([]*call, 0, len(r.keyIDs))
	left := len(r.keyIDs)
	var ask func(i int)
	ask = func(i int) {
		began := r.w.k.Now()
		results[i] = core.Result{KeyID: r.keyIDs[i], Started: r.node.clock()}
		answered := func(resp response) {
			r.Enter(r.incarnation, func() {
				results[i].Duration = r.w.k.Now().Sub(began)
				results[i].Answer, results[i].Failure = outcomeOf(resp)
				r.count(i, results[i])
				if left--; left == 0 {
					r.calls = nil
					r.step(core.Event{Kind: core.Probed, Now: r.w.k.Now(), Results: results})
				} else if r.w.hooks.OneByOne {
					ask(i + 1)
				}
			})
		}
		timeout := r.w.hooks.probeTimeout(r.w.timing.ProbeTimeout)
		r.calls = append(r.calls, r.node.probed().plugin(r.keyIDs[i]).call(fault.Status, &kmsapi.StatusRequest{}, timeout, answered))
	}
	for i := range r.keyIDs {
		if ask(i); r.w.hooks.OneByOne {
			return
		}
	}
}

// scan adds the plugins of its node that it was not given.
func (r *reporter) scan() {
	for _, p := range r.node.plugins {
		if !slices.Contains(r.keyIDs, p.keyID) {
			r.keyIDs, r.seen = append(r.keyIDs, p.keyID), append(r.seen, history.PluginMetrics{KeyID: p.keyID})
		}
	}
}

// credential is what it makes a connection with: that in its file.
func (r *reporter) credential() int {
	if r.w.hooks.KeepCredential {
		return r.read
	}
	return r.w.credentials[r.node.name].file
}

// outcomeOf is a response as the prober hands it on. A message without content is a nil response.
func outcomeOf(r response) (*core.Answer, *core.Failure) {
	if r.code != "OK" {
		return nil, &core.Failure{Code: r.code, Text: contract.SafeDetail(r.text)}
	}
	if s, ok := r.resp.(*kmsapi.StatusResponse); ok {
		return &core.Answer{Version: s.Version, Healthz: s.Healthz, KeyID: s.KeyId}, nil
	}
	return &core.Answer{}, nil
}

// count is what the reporter's metrics count of a probe.
func (r *reporter) count(i int, result core.Result) {
	m, e := &r.seen[i], result.Entry(r.w.timing.Interval)
	healthy := e.Status == contract.StatusHealthy
	m.Calls++
	m.Seconds += result.Duration.Seconds()
	m.Healthy = &healthy
	if e.Status == contract.StatusError {
		m.Errors++
	}
}

// scrape records the metrics twice an interval, when they have changed.
func (r *reporter) scrape() {
	r.after(r.w.timing.Interval/2, r.scrape)
	changed := r.configured == nil
	for i := range r.configured {
		changed = changed || r.configured[i].Calls != r.seen[i].Calls
	}
	if !changed {
		return
	}
	r.configured = append([]history.PluginMetrics{}, r.seen...)
	r.w.record("metrics/"+r.node.name, &history.Metrics{Node: r.node.name, Plugins: sortedMetrics(r.configured)})
}
