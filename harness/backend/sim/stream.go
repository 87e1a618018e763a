package sim

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/aggregator/streams"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/contract/healthproto"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// reports serves the streams of reporters, as reportServer of aggregator/controller does.
type reports struct {
	a        *aggregator
	sessions *streams.Sessions
	open     []*reportStream
	relaying int                 // reports that are being written
	removing bool                // entries are being removed from the CR, or wait for the reports that are being written
	held     []func()            // what waits for the one or the other
	writing  map[string]bool     // nodes of which a report is being written
	queue    map[string][]func() // by node: what waits for that
	config   *healthv1.Configuration
}

// reportStream is one stream, as its server has it.
type reportStream struct {
	of         *reports
	client     streamClient
	c          *conn
	shown      shown
	node       string
	id         streams.ID
	stands     bool
	transition publish.Transition
	cancel     func() // of the report that is being written; nil if there is none
}

// streamClient receives what an aggregator sends on a stream, and why it ends it.
type streamClient interface {
	receive(c *conn, r *healthv1.ReportResponse)
	refused(err error)
}

// shown is what a client shows of itself when it opens a stream.
type shown struct {
	node        string // of its certificate
	credential  int    // which of the node's certificates
	certificate string // in place of such a certificate (scenario.CertificateNone …); empty: none other
	claims      string // the node that it calls its own besides
}

// identify is the node that a client speaks for, as nodeOfPeer of aggregator/controller says after TLS.
func (s *reports) identify(x shown) (node string, err error) {
	hooks := s.a.w.hooks.Streams
	switch {
	case x.certificate == scenario.CertificateForged && hooks.AnyAuthority:
	case x.certificate == scenario.CertificateForeign:
		return "", status.Error(codes.Unauthenticated, "the user is not the reporter of a node")
	case x.certificate != "":
		return "", status.Error(codes.Unavailable, "tls: the certificate is refused: "+x.certificate)
	case s.a.w.unauthorized(&request{user: contract.ReporterIdentity(x.node), credential: x.credential}):
		return "", status.Error(codes.Unauthenticated, "the certificate has expired")
	}
	if hooks.BelieveClaims && x.claims != "" {
		return x.claims, nil
	}
	return x.node, nil
}

// lead begins a term.
func (s *reports) lead() { *s = reports{a: s.a, sessions: &streams.Sessions{}} }

// rest ends a term: every stream ends.
func (s *reports) rest() {
	for _, x := range slices.Clone(s.open) {
		x.end(status.Error(codes.FailedPrecondition, "this replica is not the leader any more"))
	}
	*s = reports{a: s.a}
}

// accept begins a stream of a reporter on a connection of its own.
func (s *reports) accept(c *conn, client streamClient, by shown) {
	node, err := s.identify(by)
	x := &reportStream{of: s, client: client, c: c, node: node, shown: by}
	switch {
	case err != nil:
		x.refuse(err)
		return
	case !s.a.leading && !s.a.w.hooks.Streams.AnyReplica:
		x.refuse(status.Error(codes.FailedPrecondition, "this replica is not the leader"))
		return
	case s.sessions == nil:
		s.lead()
		s.sessions.Expect(slices.Collect(maps.Keys(s.a.nodes.created()))) // no pass does
	}
	id, surplus, err := s.sessions.Open(node)
	if err != nil {
		x.refuse(status.Error(codes.NotFound, err.Error()))
		return
	}
	x.id = id
	if old := s.stream(surplus); old != nil {
		old.end(status.Errorf(codes.ResourceExhausted, "the node has more than %d streams", streams.MaxStreams))
	}
	s.open = append(s.open, x)
	c.open(func(err error) { s.a.Enter(s.a.incarnation, func() { x.end(err) }) })
	s.a.after(reconcile.GreetingTimeout, func() {
		if !x.stands {
			x.end(status.Error(codes.Unavailable, "the stream could not be shown on the EncryptionHealth in time"))
		}
	})
	s.a.changed()
	if !s.a.leading { // and none shows the stream
		x.stand()
	}
}

func (s *reports) stream(id streams.ID) *reportStream {
	if i := slices.IndexFunc(s.open, func(x *reportStream) bool { return x.id == id }); i >= 0 {
		return s.open[i]
	}
	return nil
}

// refuse answers a stream that was not begun, or ends one.
func (x *reportStream) refuse(err error) {
	c, client := x.c, x.client
	c.toClient(func() {
		client.refused(err)
		c.fail(err)
	})
}

func (x *reportStream) end(err error) {
	if !slices.Contains(x.of.open, x) {
		return
	}
	x.of.open = slices.DeleteFunc(x.of.open, func(o *reportStream) bool { return o == x })
	x.refuse(err)
	if x.cancel != nil {
		x.cancel()
	}
	if !x.of.a.w.hooks.Streams.DeafToDisconnects && x.of.sessions.Close(x.node, x.id) {
		x.of.a.changed()
	}
}

// passed carries out what a pass says of streams.
func (s *reports) passed(done reconcile.Action) {
	if s.sessions == nil {
		return
	}
	config := s.configuration()
	changed := s.config == nil || s.config.GetGeneration() != config.GetGeneration()
	s.config = config
	for _, id := range done.Ended {
		if x := s.stream(id); x != nil {
			x.end(status.Error(codes.NotFound, streams.ErrNotExpected.Error()))
		}
	}
	for _, x := range slices.Clone(s.open) {
		if slices.Contains(done.Standing, x.id) || changed && x.stands {
			x.stand()
		}
	}
}

// stand sends the configuration: the stream stands.
func (x *reportStream) stand() {
	x.stands = true
	x.send(&healthv1.ReportResponse{Content: &healthv1.ReportResponse_Configuration{Configuration: x.of.configuration()}})
}

func (s *reports) configuration() *healthv1.Configuration {
	if v := s.a.health.latest(); v != nil {
		return &healthv1.Configuration{Generation: v.Generation}
	}
	return &healthv1.Configuration{}
}

func (x *reportStream) send(r *healthv1.ReportResponse) {
	x.c.toClient(func() { x.client.receive(x.c, r) })
}

// relay writes a report to the operator's CR, and acknowledges it. It may be under way until an instant.
func (x *reportStream) relay(r *healthv1.ReportRequest, until time.Time) {
	s, now := x.of, x.of.a.w.k.Now()
	again := func() { x.relay(r, until) }
	switch wait := s.sessions.Decided(x.node).Sub(s.a.clock()); {
	case s.removing:
		s.held = append(s.held, again)
		return
	case s.writing[x.node]:
		s.queue[x.node] = append(s.queue[x.node], again)
		return
	case wait > 0:
		s.begin(x.node)
		s.a.after(wait, s.inTerm(func() { s.written(x.node, again) }))
		return
	case !now.Before(until):
		x.acknowledge(r, 0, "an earlier report is not decided yet")
		return
	}
	report, last, err := healthproto.Report(x.node, r.GetPlugins())
	if err != nil {
		x.acknowledge(r, http.StatusBadRequest, err.Error())
		return
	}
	replica, err := streams.Replica(report, r.GetObservedGeneration())
	if err != nil {
		x.acknowledge(r, http.StatusBadRequest, err.Error())
		return
	}
	if !s.sessions.Current(x.node, x.id) {
		x.acknowledge(r, http.StatusConflict, "the stream does not speak for its node any more")
		return
	}
	if _, known := x.transition.Known(); !known {
		x.transition = publish.TransitionAt(s.transitionOf(x.node))
	}
	body, _, err := publish.Body(s.a.op.reporter, s.a.w.form, core.Action{Report: report, LastKEKID: last}, &x.transition)
	if err != nil {
		x.acknowledge(r, http.StatusBadRequest, err.Error())
		return
	}
	limit := until.Sub(now)
	apply := request{verb: verbPatch, key: s.a.cr.key, subresource: "status", manager: contract.FieldManager(x.node), force: true,
		contentType: audit.ContentTypeApply, body: body, timeout: limit, relayed: x.node}
	s.begin(x.node)
	s.relaying++
	undecided := func() { s.sessions.Unanswered(x.node, s.a.clock().Add(until.Sub(s.a.w.k.Now()))) }
	var question *question
	question = s.a.askWithin(limit, apply, s.inTermReply(func(rep reply) {
		x.cancel = nil
		s.relayed()
		err := rep.problem()
		switch {
		case err != nil:
			if rep.code == 0 {
				question.cancel() // what is sent on the same connection afterwards comes with the word of it
				undecided()
			}
			if s.a.w.hooks.Streams.RetryRelay {
				s.a.after(reconcile.WriteRetryMin, func() { s.insist(apply) })
			}
			x.acknowledge(r, int32(rep.code), err.Error())
		default:
			if s.sessions.Reported(x.id, replica) {
				s.a.changed()
			}
			x.acknowledge(r, http.StatusOK, "")
		}
		s.written(x.node, nil)
	}))
	x.cancel = func() {
		x.cancel = nil
		question.cancel()
		undecided()
		s.relayed()
		s.written(x.node, nil)
	}
}

// insist tries a write until it is done.
func (s *reports) insist(apply request) {
	s.a.ask(apply, func(rep reply) {
		if rep.problem() != nil {
			s.a.after(reconcile.WriteRetryMin, func() { s.insist(apply) })
		}
	})
}

func (x *reportStream) acknowledge(r *healthv1.ReportRequest, code int32, text string) {
	x.send(&healthv1.ReportResponse{Content: &healthv1.ReportResponse_Acknowledgement{
		Acknowledgement: &healthv1.Acknowledgement{Sequence: r.GetSequence(), Code: code, Message: text}}})
}

// begin takes the turn of a node, whose reports are written one after another, and written gives it to the next.
func (s *reports) begin(node string) {
	if s.writing == nil {
		s.writing, s.queue = map[string]bool{}, map[string][]func(){}
	}
	s.writing[node] = true
}

func (s *reports) written(node string, first func()) {
	delete(s.writing, node)
	queue := s.queue[node]
	delete(s.queue, node)
	if first != nil {
		first()
	}
	for _, f := range queue {
		f()
	}
}

// relayed is the end of a write of a report.
func (s *reports) relayed() {
	if s.relaying--; s.relaying == 0 {
		s.release()
	}
}

// inTerm is what happens in the present term or never.
func (s *reports) inTerm(f func()) func() {
	if s.a.w.hooks.Streams.OutlivesTerm {
		return s.a.bind(f)
	}
	return s.a.inTerm(f)
}

// inTermReply is what becomes of an answer in the term of its request.
func (s *reports) inTermReply(f func(reply)) func(reply) {
	if s.a.w.hooks.Streams.OutlivesTerm {
		return f
	}
	return s.a.inTermReply(f)
}

// transitionOf is the lastTransitionTime of a node's condition, which must not move; now if there is no such condition.
func (s *reports) transitionOf(node string) time.Time {
	var t publish.Transition
	body, err := bodyOf(s.a.cr.latest())
	if t.Read(node, body, http.StatusOK, err, s.a.clock()) != nil {
		return s.a.clock()
	}
	at, _ := t.Known()
	return at
}

// remove waits until no report is being written, and lets none be written until done is called.
func (s *reports) remove(then func(done func())) {
	s.removing = true
	remove := func() {
		then(func() {
			s.removing = false
			s.release()
		})
	}
	if s.relaying > 0 {
		s.held = append([]func(){remove}, s.held...)
		return
	}
	remove()
}

func (s *reports) release() {
	held := s.held
	s.held = nil
	for _, f := range held {
		f()
	}
}

func healthKey(o operator) objects.Key {
	return objects.Key{Resource: healthObjects(), Name: o.core.Name}
}

// receive is a request that arrives.
func (s *reports) receive(c *conn, r *healthv1.ReportRequest) {
	if i := slices.IndexFunc(s.open, func(x *reportStream) bool { return x.c == c }); i >= 0 {
		x, now := s.open[i], s.a.w.k.Now()
		until := now.Add(min(reconcile.RequestTimeout, r.GetTimeout().AsDuration()))
		switch at, ok := s.sessions.Admit(x.node, s.a.w.timing.Interval, now, until); {
		case !ok:
			x.acknowledge(r, http.StatusTooManyRequests, "the node sends too many reports")
		case at.After(now):
			s.a.after(at.Sub(now), s.inTerm(func() { x.relay(r, until) }))
		default:
			x.relay(r, until)
		}
	}
}

var errUnacknowledged = errors.New("a report was not acknowledged in time")

// accepts reports whether the aggregator takes connections.
func (a *aggregator) accepts() bool { return a.phase == running }

// dialStream connects a reporter to a replica of the aggregator.
func (w *world) dialStream(l *link, a *aggregator, client *proc, limit time.Duration, done func(*conn, error)) {
	var late *kernel.Timer
	over := false
	once := func(c *conn, err error) {
		switch {
		case !over:
			over = true
			late.Stop()
			done(c, err)
		case c != nil:
			c.fail(errReset)
		}
	}
	late = w.k.After(limit, func() { once(nil, errTimeout) })
	switch l.state {
	case history.LinkReset:
		w.k.After(leastLatency, func() { once(nil, errReset) })
		return
	case history.LinkMute: // accepted, and nothing is ever answered
		return
	}
	l.send(0, func() {
		if !a.accepts() {
			l.send(1, func() { once(nil, errRefused) })
			return
		}
		a.Enter(a.incarnation, func() { // one that is paused does not answer
			l.send(1, func() { once(w.connect(&conn{links: []*link{l}, through: &a.proc, client: client}), nil) })
		})
	})
}

// expire ends the streams of a node whose certificate has expired.
func (w *world) expire(node string) {
	for _, a := range w.aggregators {
		for _, x := range slices.Clone(a.reports.open) {
			if x.shown.node == node && x.shown.credential < w.credentials[node].oldest {
				x.end(status.Error(codes.Unauthenticated, "the certificate has expired"))
			}
		}
	}
}
