package sim

import (
	"errors"
	"net/http"
	"time"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/reporter/core"
	streaming "github.com/kmsharness/kmsharness/reporter/stream"
)

// streamer keeps a reporter's stream to the aggregator up, as Publisher of reporter/stream does.
type streamer struct {
	r      *reporter
	rounds streaming.Rounds
	outbox streaming.Outbox
	c      *conn // of the stream, or of the one that is being begun
	to     *aggregator
	stands bool
	done   func(error)
	sent   time.Time     // of what was sent last: when its first plugin was asked
	limit  *kernel.Timer // of the newest report
	ready  func()        // what waits for the first stream
}

func newStreamer(r *reporter) *streamer {
	return &streamer{r: r, outbox: streaming.Outbox{KeyIDs: r.keyIDs, Timing: r.w.timing}}
}

// begin connects, and calls then once the first stream stands.
func (t *streamer) begin(then func()) {
	t.ready = then
	t.dial()
}

func (t *streamer) dial() {
	replicas := t.r.w.aggregators
	i := t.rounds.Next(len(replicas))
	if i < 0 {
		t.again()
		return
	}
	t.to = replicas[i]
	incarnation := t.r.incarnation
	t.r.w.dialStream(t.r.node.reports, t.to, &t.r.proc, t.r.w.timing.DialTimeout(), func(c *conn, err error) {
		if t.r.incarnation != incarnation {
			if c != nil {
				c.fail(errReset)
			}
			return
		}
		t.r.Enter(incarnation, func() {
			if err != nil {
				t.again()
				return
			}
			t.connected(c)
		})
	})
}

// connected asks for a stream on a new connection.
func (t *streamer) connected(c *conn) {
	if c.broken {
		t.again()
		return
	}
	t.c = c
	c.ended = t.r.bind(func() { t.ended(c) })
	to, incarnation := t.to, t.to.incarnation
	c.toServer(func() { to.Enter(incarnation, func() { to.reports.accept(c, t, t.shown()) }) })
	t.r.after(streaming.GreetingTimeout(t.r.w.timing), func() {
		if t.c == c && !t.stands {
			c.fail(errTimeout)
		}
	})
}

// shown is what the reporter shows of itself: its certificate.
func (t *streamer) shown() shown { return shown{node: t.r.node.name, credential: t.r.credential()} }

// refused changes nothing: whatever the reason, the reporter tries the next replica.
func (t *streamer) refused(error) {}

// ended is the end of a stream.
func (t *streamer) ended(c *conn) {
	if t.c != c {
		return
	}
	t.c, t.stands = nil, false
	t.again()
}

// again tries the next replica.
func (t *streamer) again() {
	t.r.after(t.rounds.Failed(max(len(t.r.w.aggregators), 1)), t.dial)
}

// receive is a message of the aggregator.
func (t *streamer) receive(c *conn, r *healthv1.ReportResponse) {
	t.r.Enter(t.r.incarnation, func() {
		if t.c != c {
			return
		}
		if !t.stands {
			t.stands = true
			t.rounds.Stood()
			t.outbox.Stood()
		}
		switch x := r.GetContent().(type) {
		case *healthv1.ReportResponse_Configuration:
			t.outbox.Configured(x.Configuration)
		case *healthv1.ReportResponse_Acknowledgement:
			t.acknowledged(x.Acknowledgement)
		}
		if ready := t.ready; ready != nil {
			t.ready = nil
			ready()
		}
		t.send()
	})
}

func (t *streamer) send() {
	if !t.stands {
		return
	}
	request, ok := t.outbox.Next(t.r.w.k.Now())
	if !ok {
		return
	}
	hooks := t.r.w.hooks.Streams
	asked := request.GetPlugins()[0].GetLastChecked().AsTime()
	if hooks.ForgetOnReconnect && asked.Equal(t.sent) {
		t.acknowledged(&healthv1.Acknowledgement{Sequence: request.GetSequence(), Code: http.StatusOK})
		return
	}
	t.sent = asked
	if hooks.Request != nil {
		hooks.Request(request)
	}
	c, to, incarnation := t.c, t.to, t.to.incarnation
	c.toServer(func() { to.Enter(incarnation, func() { to.reports.receive(c, request) }) })
}

func (t *streamer) acknowledged(a *healthv1.Acknowledgement) {
	if newest, err := t.outbox.Acknowledged(a); newest {
		t.end(err)
	}
}

// apply carries out a write and calls done at its deadline at the latest.
func (t *streamer) apply(a core.Action, done func(error)) {
	t.outbox.Put(a)
	t.done = done
	t.limit = t.r.at(a.Until, func() {
		if c := t.c; c != nil && t.stands {
			c.fail(errUnacknowledged)
		}
		t.end(errTimeout)
	})
	t.send()
}

// end is the end of the newest report's write.
func (t *streamer) end(err error) {
	done := t.done
	if done == nil {
		return
	}
	t.done = nil
	t.limit.Stop()
	done(err)
}

// disconnect ends the stream with the reporter.
func (t *streamer) disconnect() {
	if c := t.c; c != nil {
		t.c = nil
		c.fail(errors.New("closed by the client"))
	}
}
