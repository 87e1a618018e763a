package sim

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	fake "github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	record "github.com/kmsharness/kmsharness/harness/record/journal"
)

// call is one RPC of a plugin. Its socket is on the same machine: what is sent arrives at once.
type call struct {
	p        *kmsPlugin
	method   fault.Method
	req      any             // as the plugin gets it
	ctx      context.Context // of the honest answer, which never waits
	plan     fault.Plan
	began    time.Time // zero until the plugin has it
	hold     int       // of the plan: the one that it waits in
	waits    *kernel.Timer
	deadline *kernel.Timer
	over     bool
	done     func(response)
}

// response is what the caller gets: a message, or a code and a text.
type response struct {
	resp       any
	code, text string
}

// call asks the plugin, for at most timeout. done is called once, unless the caller gives up before.
func (p *kmsPlugin) call(method fault.Method, req any, timeout time.Duration, done func(response)) *call {
	c := &call{p: p, method: method, req: req, done: done}
	c.deadline = p.w.k.After(timeout, func() {
		c.giveUp(codes.DeadlineExceeded)
		c.end(response{code: codes.DeadlineExceeded.String(), text: "context deadline exceeded"})
	})
	p.w.k.After(0, c.connect)
	return c
}

// connect finds what is at the socket's path.
func (c *call) connect() {
	if c.over {
		return
	}
	switch problem, silent := c.p.refuses(); {
	case problem != "":
		c.end(response{code: codes.Unavailable.String(), text: problem})
	case !silent:
		c.p.Enter(c.p.incarnation, c.serve)
	}
}

// refuses says why nobody can be connected to the socket; silent is one that accepts and never says a word.
func (p *kmsPlugin) refuses() (problem string, silent bool) {
	const dial = `connection error: desc = "transport: Error while dialing: dial unix /var/run/kmsplugin/kms-`
	refused := func(why string) string { return dial + p.keyID + ".sock: connect: " + why + `"` }
	if p.phase != running {
		if p.stale {
			return refused("connection refused"), false
		}
		return refused("no such file or directory"), false
	}
	switch s := p.program.Socket(); {
	case s.HangUp:
		return "connection error: desc = \"error reading server preface: EOF\"", false
	case s.File == fault.FileSilent: // accepted, and never answered
		return "", true
	case s.File == fault.FileMissing:
		return refused("no such file or directory"), false
	case s.File != fault.FileServed:
		return refused("connection refused"), false
	case s.Mode != nil && *s.Mode&0o222 == 0:
		return refused("permission denied"), false
	}
	return "", false
}

// serve begins to work on it, unless the caller has gone.
func (c *call) serve() {
	if c.over {
		return
	}
	c.began = c.p.w.k.Now()
	c.p.calls = append(c.p.calls, c)
	c.plan = c.p.program.Plan(c.method)
	c.ctx, c.req = fake.Received(c.p.w.ctx, c.plan, c.req)
	c.waits = c.p.after(c.p.w.k.Between(leastAnswer, mostAnswer), c.holds)
}

// holds waits as long as the plan says, one hold after another.
func (c *call) holds() {
	c.waits = nil
	if c.over {
		return
	}
	if c.hold == len(c.plan.Holds) {
		c.answer()
		return
	}
	if h := c.plan.Holds[c.hold]; h.For > 0 {
		c.waits = c.p.after(h.For, c.next)
	}
	c.checkRelease()
}

func (c *call) next() { c.hold++; c.holds() }

// checkRelease ends a hold whose fault was released.
func (c *call) checkRelease() {
	if c.over || c.hold >= len(c.plan.Holds) {
		return
	}
	select {
	case <-c.plan.Holds[c.hold].Released:
		c.waits.Stop()
		c.next()
	default:
	}
}

// answer is what the plan makes of the honest answer.
func (c *call) answer() {
	p := c.p
	switch {
	case c.plan.Crash != nil:
		c.conclude(fake.Answer{Err: broken(), Outcome: journal.Crashed})
		p.faultsChanged()
		return
	case c.plan.Reset != nil:
		c.waits = p.after(c.plan.Reset.After, func() { c.conclude(fake.Answer{Err: broken(), Outcome: journal.Reset}) })
		return
	}
	c.conclude(fake.Conclude(c.plan, p.service.KEKID, c.honest))
}

func broken() error { return status.Error(codes.Unavailable, "the plugin broke the connection") }

func (c *call) honest() (any, error) {
	switch req := c.req.(type) {
	case *kmsapi.EncryptRequest:
		return c.p.service.Encrypt(c.ctx, req)
	case *kmsapi.DecryptRequest:
		return c.p.service.Decrypt(c.ctx, req)
	default:
		return c.p.service.Status(c.ctx, &kmsapi.StatusRequest{})
	}
}

// conclude writes the journal and tells the caller.
func (c *call) conclude(a fake.Answer) {
	if c.over {
		return
	}
	line := c.journal(a)
	if line.Code != codes.OK.String() {
		c.end(response{code: line.Code, text: line.Detail})
		return
	}
	c.end(response{resp: a.Resp, code: line.Code})
}

func (c *call) journal(a fake.Answer) journal.Call {
	line := journal.Call{Node: c.p.node, KeyID: c.p.keyID, Method: string(c.method), Began: c.began.UTC(), Ended: c.p.w.k.Now().UTC(), Faults: c.plan.Faults}
	a.Describe(&line, c.req, fake.Unreadable(a.Resp))
	if written := c.p.w.hooks.Written; written != nil {
		written(&line, c.req)
	}
	if c.method != fault.Status { // which has nothing to give away
		c.p.w.secrecy.Line(c.p.w.logName(c.p.source), line.AppendJSON(nil))
	}
	c.p.w.record(c.p.source, record.CallOf(line))
	return line
}

// giveUp is the plugin learning that the caller has gone; one that stands still learns it later.
func (c *call) giveUp(code codes.Code) {
	if c.over || c.began.IsZero() {
		return
	}
	c.p.Enter(c.p.incarnation, func() {
		c.journal(fake.Answer{Err: status.Error(code, "the caller gave up"), Outcome: journal.Abandoned})
	})
}

// cancel is a caller that goes away.
func (c *call) cancel() {
	c.giveUp(codes.Canceled)
	c.done = func(response) {}
	c.end(response{})
}

// lose is the end of its connection, of which the plugin has no more to say.
func (c *call) lose(text string) {
	c.end(response{code: codes.Unavailable.String(), text: text})
}

func (c *call) end(r response) {
	if c.over {
		return
	}
	c.over = true
	c.deadline.Stop()
	c.waits.Stop()
	c.p.calls = slices.DeleteFunc(c.p.calls, func(o *call) bool { return o == c })
	c.done(r)
}
