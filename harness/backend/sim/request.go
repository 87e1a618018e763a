package sim

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Verbs of requests, as an audit log names them.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbDelete = "delete"
)

// request is one request to an API server.
type request struct {
	user, agent string
	byHarness   bool   // with the credential of user
	tokenNode   string // that the token of user names
	credential  int    // of user, by number
	verb        string
	key         objects.Key
	subresource string
	manager     string
	force       bool
	contentType string // of a patch
	body        []byte // as it was sent
	parsed      *parsed
	timeout     time.Duration
	relayed     string // node whose report an aggregator writes with it; empty: it is the aggregator's own, or a reporter's
	patient     bool   // it goes on for as long as Retry-After says, instead of until a deadline
}

// defaultTimeout is how long an API server works on a request whose client named no limit.
const defaultTimeout = 34 * time.Second

// limit is how long an API server works on it.
func (r request) limit() time.Duration {
	if r.timeout > 0 && r.timeout < defaultTimeout {
		return r.timeout
	}
	return defaultTimeout
}

// reply is what comes back: an answer of the API server, or the error of a client that got none.
type reply struct {
	code     int
	text     string
	reason   string
	causes   []history.Cause
	again    time.Duration // Retry-After; 0 where the answer has none
	version  *objects.Version
	list     []*objects.Version
	revision int64
	err      error
}

// size is how many bytes it takes.
func (r reply) size() int {
	bytes := smallMessage
	if r.version != nil {
		bytes += r.version.Size()
	}
	for _, v := range r.list {
		bytes += v.Size()
	}
	return bytes
}

// problem is why a reply is no success.
func (r reply) problem() error {
	switch {
	case r.err != nil:
		return r.err
	case r.code >= http.StatusBadRequest:
		return fmt.Errorf("%d %s: %s", r.code, http.StatusText(r.code), r.text)
	}
	return nil
}

func replyOf(v *objects.Version, err error) reply {
	if err == nil {
		return reply{code: http.StatusOK, version: v}
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		rep := reply{code: int(s.Code), text: s.Message, reason: string(s.Reason)}
		if s.Details != nil {
			for _, c := range s.Details.Causes {
				rep.causes = append(rep.causes, history.Cause{Reason: string(c.Type), Message: c.Message, Field: c.Field})
			}
		}
		return rep
	}
	return reply{code: http.StatusInternalServerError, text: err.Error()}
}

// resourceName is "plural.group".
func resourceName(r schema.GroupVersionResource) string { return r.GroupResource().String() }

// resourceName is that, made once: every request has one.
func (w *world) resourceName(r schema.GroupVersionResource) string {
	name, ok := w.resources[r]
	if !ok {
		name = resourceName(r)
		w.resources[r] = name
	}
	return name
}

// ask sends a request on a connection; done is called once, unless the caller cancels before.
func (c *conn) ask(r request, done func(reply)) (cancel func()) {
	st := c.open(func(err error) { done(reply{err: err}) })
	sent := &r
	c.carry(0, smallMessage+len(r.body), c.atServer(func() {
		c.server.receive(sent, func() bool { return !st.over }, func(rep reply) {
			c.carry(1, rep.size(), func() {
				if !st.over {
					st.close()
					done(rep)
				}
			})
		})
	}))
	return st.close
}

// atServer makes something that happens at the server if it still is the one that accepted the connection.
func (c *conn) atServer(f func()) func() {
	if c.server == nil {
		return func() {}
	}
	return c.server.bind(f)
}
