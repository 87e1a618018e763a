package sim

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// streamAttempt is the client of one attempt to stream.
type streamAttempt struct {
	result error // why there is no stream; nil: it stood
	done   func(error)
}

// receive is the first message of an aggregator: the stream stands. The attempt is over.
func (t *streamAttempt) receive(c *conn, _ *healthv1.ReportResponse) {
	t.end(nil)
	c.fail(errReset)
}

func (t *streamAttempt) refused(err error) { t.end(err) }

func (t *streamAttempt) end(err error) {
	if t.done != nil {
		t.result = err
		t.done(nil)
		t.done = nil
	}
}

// attemptStream opens a stream with what a stolen identity of a reporter allows, going round the replicas until one leads, and ends it once it stands.
func (st *statuses) attemptStream(a *scenario.Attempt, as *node) error {
	by := shown{node: as.name, credential: as.reporter.credential(), certificate: a.Certificate, claims: a.Node}
	if a.Certificate == scenario.CertificateForged {
		by.node = orDefault(a.Node, as.name)
	}
	refused := status.New(codes.Unavailable, "there is no aggregator")
	for _, to := range st.w.aggregators {
		if !to.accepts() {
			continue // a replica that does not run refuses nobody
		}
		t := &streamAttempt{}
		err := st.e.within(requestTimeout, func(done func(error)) {
			t.done = done
			st.w.dialStream(as.reports, to, nil, st.w.timing.DialTimeout(), func(c *conn, err error) {
				if err != nil {
					t.end(status.Error(codes.Unavailable, err.Error()))
					return
				}
				c.ended = func() { t.end(status.Error(codes.Unavailable, "the connection broke")) }
				incarnation := to.incarnation
				c.toServer(func() { to.Enter(incarnation, func() { to.reports.accept(c, t, by) }) })
			})
		})
		if err != nil {
			return err
		}
		if refused = status.Convert(t.result); refused.Code() != codes.FailedPrecondition {
			break
		}
	}
	st.w.record("backend", a.History(as.name, refused.Code(), refused.Message()))
	return a.JudgeStream(refused.Code(), refused.Message())
}
