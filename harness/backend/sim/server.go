package sim

import (
	"net/http"
	"slices"
	"time"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// server is a kube-apiserver, or an aggregated API server, which answers nobody but the aggregation layer and the harness.
type server struct {
	proc
	node     *node
	auditLog string        // the source of its requests in a history
	lag      time.Duration // of its watch cache behind etcd
	watchers []*watcher
	open     []*history.Request // writes under way, in the order of their arrival
	envelope *envelope
	cpu      processor
}

// Measured on the local backend: how long an API server boots, how much longer if it waits for a dead plugin, and how long it
// drains when it is asked to end.
const (
	leastBoot, mostBoot                     = 1500 * time.Millisecond, 2600 * time.Millisecond
	leastAggregatedBoot, mostAggregatedBoot = 350 * time.Millisecond, 750 * time.Millisecond // of k8s.io/sample-apiserver

	deadPluginBoot    = 8 * time.Second
	drainTime         = time.Second
	leastLag, mostLag = 200 * time.Microsecond, 4 * time.Millisecond
)

func newServer(w *world, n *node) *server {
	s := &server{proc: proc{w: w, id: history.Process{Role: history.RoleAPIServer, APIServer: w.apiServer, Node: n.name}}, node: n, auditLog: "audit/" + n.name}
	s.envelope, s.cpu = newEnvelope(s), processor{s: s, cores: w.cpus}
	s.init = func() { s.lag = w.k.Between(leastLag, mostLag) }
	s.boot = func(ready func()) {
		s.after(s.boots(), func() { s.awaitEtcd(func() { s.awaitKube(func() { s.envelope.prime(); s.awaitPlugins(ready) }) }) })
	}
	s.up = func() { s.envelope.prime(); w.observer.show() }
	s.gone = s.drop
	s.term = func(ended func()) {
		s.phase = draining
		s.writeConfig(history.ProcessStopping, "")
		s.after(drainTime, ended)
	}
	return s
}

// boots is how long it starts, if nothing keeps it.
func (s *server) boots() time.Duration {
	if s.w.apiServer != "" {
		return s.w.k.Between(leastAggregatedBoot, mostAggregatedBoot)
	}
	return s.w.k.Between(leastBoot, mostBoot)
}

// awaitEtcd tries until etcd answers.
func (s *server) awaitEtcd(then func()) {
	s.w.etcd.access(s, defaultTimeout, func(ok bool) {
		if !ok {
			s.awaitEtcd(then)
			return
		}
		then()
	})
}

func (s *server) awaitPlugins(then func()) {
	wait := time.Duration(0)
	for _, g := range s.node.plugins {
		if !g.runs() {
			wait = deadPluginBoot
		}
	}
	began := s.w.k.Now()
	s.after(wait, func() { s.awaitStorage(began.Add(storageInitialization), then) })
}

// storageInitialization is how long an API server waits for its storage to be readable, before it goes on without. It looks every
// storagePoll.
const (
	storageInitialization = time.Minute
	storagePoll           = 100 * time.Millisecond
)

// awaitStorage waits until every object can be read: the caches begin with a list of all.
func (s *server) awaitStorage(until time.Time, then func()) {
	if s.readable() || !s.w.k.Now().Before(until) {
		then()
		return
	}
	s.after(storagePoll, func() { s.awaitStorage(until, then) })
}

// readable says whether every plugin has been there under whose key an object lies.
func (s *server) readable() bool {
	keyless := map[string]bool{}
	for _, p := range s.envelope.loaded.providers {
		keyless[p.keyID] = p.key == nil
	}
	for _, stored := range s.w.secrets {
		if keyless[stored.keyID] {
			return false
		}
	}
	return true
}

// accepts says whether it takes connections. One that stands still does: the kernel accepts for it.
func (s *server) accepts() bool { return s.phase == running }

// drop is its end: who was connected notices, and what was under way may or may not have been done.
func (s *server) drop() {
	for _, r := range s.open {
		r.Code, r.Message, r.Completed = 0, "the API server ended before it logged an answer", r.Received
		s.w.log.Record(r.Received, s.auditLog, r)
	}
	s.open, s.watchers = nil, nil
	s.cpu = processor{s: s, cores: s.w.cpus}
	s.envelope.forget()
	for _, c := range slices.Clone(s.w.conns) {
		if c.server == s {
			c.fail(errReset)
		}
	}
}

// service is a request that an API server works on; wanted says whether its client still waits.
type service struct {
	s      *server
	r      *request
	entry  *history.Request
	wanted func() bool
	answer func(reply)
}

// receive works on a request.
func (s *server) receive(r *request, wanted func() bool, answer func(reply)) {
	if r.parsed == nil {
		r.parsed = &parsed{}
	}
	x := &service{s: s, r: r, entry: s.note(r), wanted: wanted, answer: answer}
	if s.phase == draining {
		x.finish(reply{code: http.StatusServiceUnavailable, text: "apiserver is shutting down"})
		return
	}
	s.after(s.w.k.Between(leastServe, mostServe), x.begin)
}

func (x *service) finish(rep reply) { x.s.finish(x.entry, rep, x.answer) }

// begin is when it knows who asks for what.
func (x *service) begin() {
	if x.s.w.unauthorized(x.r) {
		x.finish(reply{code: http.StatusUnauthorized, reason: "Unauthorized", text: "Unauthorized"})
		return
	}
	if why := x.s.w.forbids(x.r); why != "" {
		x.finish(reply{code: http.StatusForbidden, text: why})
		return
	}
	if f := x.s.w.refusing(x.s, x.r); f != nil {
		x.finish(x.s.w.refuse(f, x.r))
		return
	}
	limit := x.r.limit()
	if x.r.merges() {
		newMerging(x.s, *x.r, x.wanted, x.finish).begin(limit)
		return
	}
	x.s.w.etcd.access(x.s, limit, x.stored)
}

// stored is etcd's answer.
func (x *service) stored(ok bool) {
	switch {
	case !ok:
		x.finish(timedOut(*x.r))
	case !x.wanted():
		x.finish(canceled())
	default:
		x.finish(x.s.perform(x.r))
	}
}

// timedOut is the answer to a request that took too long. One whose client named the limit is answered by another part of the API
// server than one that has none.
func timedOut(r request) reply {
	text := "Timeout: request did not complete within requested timeout - context deadline exceeded"
	if r.limit() < defaultTimeout {
		text = "Timeout: request did not complete within the allotted timeout"
	}
	return reply{code: http.StatusGatewayTimeout, text: text}
}

// canceled is for one that nobody waits for any more.
func canceled() reply {
	return reply{code: http.StatusGatewayTimeout, text: "Timeout: request did not complete within requested timeout - context canceled"}
}

// perform carries out a request at once.
func (s *server) perform(r *request) (rep reply) {
	now, store := s.node.clock(), s.w.store
	defer s.w.committed()
	switch r.verb {
	case verbGet:
		return replyOf(store.Get(r.key))
	case verbList:
		list, revision, err := store.List(r.key.Resource, r.key.Namespace)
		rep = replyOf(nil, err)
		rep.list, rep.revision = named(list, r.key.Name), revision
		return rep
	case verbDelete:
		return replyOf(store.Delete(r.key, objects.Preconditions{}))
	}
	if r.contentType == audit.ContentTypeJSONPatch {
		return replyOf(store.JSONPatch(now, r.key, r.body, objects.UpdateOptions{Manager: r.manager, Subresource: r.subresource}))
	}
	u, err := r.object()
	if err != nil {
		return reply{code: http.StatusBadRequest, text: err.Error()}
	}
	switch {
	case r.verb == verbCreate:
		rep = replyOf(store.Create(now, r.key.Resource, u, r.manager))
		if rep.code == http.StatusOK {
			rep.code = http.StatusCreated
		}
		return rep
	case r.verb == verbUpdate:
		return replyOf(store.Update(now, r.key.Resource, u, objects.UpdateOptions{Manager: r.manager, Subresource: r.subresource, Given: true}))
	case r.contentType == audit.ContentTypeApply:
		return replyOf(store.Apply(now, r.key.Resource, u, objects.ApplyOptions{Manager: r.manager, Force: r.force, Subresource: r.subresource, Given: true}))
	}
	return reply{code: http.StatusUnsupportedMediaType, text: r.contentType + " is not modelled"}
}

// named is the objects of a name; all if it is empty.
func named(list []*objects.Version, name string) []*objects.Version {
	if name == "" {
		return list
	}
	return slices.DeleteFunc(list, func(v *objects.Version) bool { return v.Key.Name != name })
}
