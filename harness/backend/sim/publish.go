package sim

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// publisher writes a reporter's reports: one connection to the API server of its node, or to any, given up with a write that failed.
type publisher struct {
	r            *reporter
	alternatives *alternatives // nil: there are none
	c            *conn
	credential   int       // that it made the connection with, or, of a service account, that it read last
	read         time.Time // when
	transition   publish.Transition
	attempt      int // counts writes: what belongs to one that was given up is ignored
}

// apply carries out a write and calls done at its deadline at the latest.
func (p *publisher) apply(a core.Action, done func(error)) {
	p.attempt++
	this := p.attempt
	var deadline *kernel.Timer
	end := func(err error) {
		if p.attempt != this {
			return
		}
		p.attempt++
		deadline.Stop()
		if err != nil || p.r.w.hooks.ConnectEachTime {
			p.disconnect()
		}
		done(err)
	}
	deadline = p.r.at(a.Until, func() { end(errTimeout) })
	current := func(f func()) func() {
		return p.r.bind(func() {
			if p.attempt == this {
				f()
			}
		})
	}
	p.connect(nil, current, end, func() { p.write(a, current, end) })
}

// connect dials unless there is a connection. A write tried some alternatives already, and could not be sent to them.
func (p *publisher) connect(tried []string, current func(func()) func(), end func(error), then func()) {
	to := p.alternatives.next(tried)
	if p.c != nil && !p.c.broken && (p.alternatives == nil || p.alternatives.used == to) {
		then()
		return
	}
	p.dial(to, func(c *conn, err error) {
		current(func() {
			switch {
			case err != nil && to != "" && p.alternatives.failed(to):
				p.connect(append(tried, to), current, end, then)
				return
			case err != nil:
				end(err)
				return
			}
			p.disconnect()
			p.c, p.credential, p.read = c, p.r.credential(), p.r.w.k.Now()
			if p.alternatives != nil {
				p.alternatives.used = to
			}
			then()
		})()
	})
}

// dial connects to an alternative, to the API server of its node, or through the load balancer: a connection to any of several that comes too late is
// another's to make anew.
func (p *publisher) dial(to string, done func(*conn, error)) {
	n, this := p.r.node, p.attempt
	wanted := func(c *conn, err error) {
		if p.attempt != this && c != nil {
			c.fail(errReset)
			return
		}
		done(c, err)
	}
	if to != "" {
		p.alternatives.dial(to, wanted)
		return
	}
	if n.reports.id.To == history.RoleAPIServer {
		p.r.w.dialNode(n.reports, n.server, done)
		return
	}
	p.r.w.balancer.dialBalanced(n.reports, wanted)
}

// ask sends a request on the connection.
func (p *publisher) ask(r request, current func(func()) func(), answered func(reply)) {
	var from string
	if p.alternatives != nil {
		from = p.alternatives.used
	}
	p.c.ask(r, func(rep reply) {
		current(func() {
			p.alternatives.heard(from, rep)
			answered(rep)
		})()
	})
}

func (p *publisher) write(a core.Action, current func(func()) func(), end func(error)) {
	if body, ok, err := publish.Body(p.r.op.reporter, p.r.w.form, a, &p.transition); ok {
		p.send(body, err, a, current, end)
		return
	}
	p.ask(p.request(request{verb: verbGet}), current, func(rep reply) {
		body, err := []byte(nil), rep.problem()
		if err == nil {
			body, err = bodyOf(rep.version)
		}
		if err := p.transition.Read(p.r.node.name, body, rep.code, err, p.r.node.clock()); err != nil {
			end(err)
			return
		}
		p.write(a, current, end)
	})
}

// bodyOf is the text of an object.
func bodyOf(v *objects.Version) ([]byte, error) { return json.Marshal(contentOf(v)) }

// send applies a body, unless its deadline passed while the reporter stood still.
func (p *publisher) send(body []byte, err error, a core.Action, current func(func()) func(), end func(error)) {
	left := a.Until.Sub(p.r.w.k.Now())
	if err == nil && left < 0 {
		err = errTimeout
	}
	if err != nil {
		end(err)
		return
	}
	r := p.request(request{verb: verbPatch, subresource: "status", manager: contract.FieldManager(p.r.node.name), force: true,
		contentType: audit.ContentTypeApply, body: body, timeout: max(left, time.Millisecond)})
	p.ask(r, current, func(rep reply) { end(rep.problem()) })
}

func (p *publisher) request(r request) request {
	p.r.w.asReporter(p.r.node.name, &r)
	r.agent, r.key = "kms-health-reporter", p.r.op.crKey()
	if now := p.r.w.k.Now(); p.r.w.serviceAccount() && now.Sub(p.read) >= tokenPeriod {
		p.credential, p.read = p.r.credential(), now
	}
	r.credential = p.credential
	return p.r.w.hooks.sent(p.r.node.name, r)
}

// disconnect closes the connection: the server learns that nobody waits.
func (p *publisher) disconnect() {
	if c := p.c; c != nil {
		p.c = nil
		c.fail(errors.New("closed by the client"))
	}
}

func sortedMetrics(list []history.PluginMetrics) []history.PluginMetrics {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b history.PluginMetrics) int { return strings.Compare(a.KeyID, b.KeyID) })
	return out
}
