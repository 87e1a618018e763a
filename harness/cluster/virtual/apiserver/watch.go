package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

const (
	// bookmarkInterval is how often a watch that allows bookmarks gets one.
	bookmarkInterval = time.Minute
	// client-go asks for a watch of five to ten minutes, which it draws by chance: the server decides instead.
	leastWatch = 5 * time.Minute
	mostWatch  = 10 * time.Minute
	// defaultWatch is kube-apiserver's --min-request-timeout, half an hour, for clients that name no time.
	defaultWatch = 30 * time.Minute
)

// watch sends what changes until the client goes, the time is over or the server closes. It returns an error only before
// it has answered: after the header 200 a failure is an ERROR event. With sendInitialEvents it begins with all objects
// and a bookmark (streaming lists, KEP-3157).
func (s *Server) watch(w http.ResponseWriter, q *Request) error {
	v := q.HTTP.URL.Query()
	out := &stream{w: w, s: s, q: q}
	initial := v.Get("sendInitialEvents") == "true"
	rv := v.Get("resourceVersion")
	if !initial && rv != "" && rv != "0" {
		var err error
		if out.revision, err = strconv.ParseInt(rv, 10, 64); err != nil {
			return apierrors.NewBadRequest("resourceVersion: Invalid value: " + strconv.Quote(rv))
		}
	}
	var first []*store.Version
	if out.revision == 0 {
		var err error
		if first, out.revision, err = s.listed(q); err != nil {
			return err
		}
	}
	for _, v := range first {
		if err := s.rest.decrypt(q.HTTP.Context(), v.Key); err != nil {
			return err
		}
	}
	s.audit(q, stageStarted, nil, nil)
	defer func() {
		time.Sleep(q.id.Number(2).Below(moreWork)) // the watches of a connection end with it, in any order
		s.audit(q, stageComplete, nil, nil)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, v := range first {
		out.object(watch.Added, v)
	}
	if initial {
		out.bookmark(map[string]any{metav1.InitialEventsAnnotationKey: "true"})
	}
	out.flush()
	out.read = out.revision
	out.follow(s.limit(q), v.Get("allowWatchBookmarks") == "true")
	return nil
}

// limit is how long a watch lasts. client-go asks for 5 to 10 minutes at random; the server replaces that by a value of
// the seed.
func (s *Server) limit(q *Request) time.Duration {
	asked, err := strconv.Atoi(q.HTTP.URL.Query().Get("timeoutSeconds"))
	switch wanted := time.Duration(asked) * time.Second; {
	case err != nil || asked <= 0:
		return defaultWatch
	case wanted < leastWatch || wanted > mostWatch:
		return wanted
	}
	return leastWatch + q.id.Number(1).Below(mostWatch-leastWatch)
}

// stream is one watch. read is ahead of revision by the events that are held: a bookmark must not name a revision whose
// events are not sent.
type stream struct {
	s        *Server
	q        *Request
	w        http.ResponseWriter
	read     int64 // the revision up to which events were read
	held     []held
	revision int64 // up to which they were sent
}

func (o *stream) follow(limit time.Duration, bookmarks bool) {
	over := time.NewTimer(limit)
	defer over.Stop()
	var mark <-chan time.Time
	if bookmarks {
		ticker := time.NewTicker(bookmarkInterval)
		defer ticker.Stop()
		mark = ticker.C
	}
	wake := time.NewTimer(limit)
	defer wake.Stop()
	_, ended, _ := o.s.Watches.mode(o.q)
	for {
		late, _, mode := o.s.Watches.mode(o.q)
		o.s.Cluster.mu.Lock()
		events, err := o.s.Cluster.store.Since(o.read)
		changed := o.s.Cluster.changed
		o.s.Cluster.mu.Unlock()
		if err != nil {
			o.send(watch.Error, statusOf(err))
			return
		}
		if now := o.due(events, late); len(now) > 0 {
			for _, h := range now {
				o.revision = h.Revision
				o.object(h.kind, h.Version)
			}
			o.flush()
		}
		if len(o.held) > 0 {
			wake.Reset(time.Until(o.held[0].at.Add(late)))
		}
		select {
		case <-changed:
		case <-wake.C:
		case <-mode:
		case <-mark:
			o.bookmark(nil)
			o.flush()
		case <-ended:
			if o.s.Watches.lastExpired() {
				time.Sleep(o.q.id.Number(2).Below(moreWork)) // a client draws from chance when it lists again after each of its watches
				o.send(watch.Error, statusOf(apierrors.NewResourceExpired("too old resource version")))
				o.flush()
			}
			return
		case <-over.C:
			return
		case <-o.s.over:
			return
		case <-o.q.HTTP.Context().Done():
			return
		}
	}
}

// held is an event that is not sent yet.
type held struct {
	store.Event
	kind watch.EventType // as the watch shows it
	at   time.Time       // when it is sent, unless the watch is late
}

// due returns the events that are sent now. An event is sent a moment after its write, each watch's at another instant: otherwise the answer to the
// write and the events of several watches would reach a client on one connection in one instant, where it handles them in any order.
func (o *stream) due(events []store.Event, late time.Duration) (now []held) {
	for _, e := range events {
		o.read = e.Revision
		if kind := o.kind(e); kind != "" {
			o.held = append(o.held, held{e, kind, time.Now().Add(o.q.id.Number(e.Revision).Below(moreWork))})
		} else if len(o.held) == 0 {
			o.revision = e.Revision
		}
	}
	for len(o.held) > 0 && !o.held[0].at.Add(late).After(time.Now()) {
		now = append(now, o.held[0])
		o.held = o.held[1:]
	}
	return now
}

// kind is the type of an event as the watch shows it, empty if the watch is not about it. An object that comes to match
// the selector by a change is ADDED, one that matches no longer is DELETED.
func (o *stream) kind(e store.Event) watch.EventType {
	is, was := o.q.wants(e.Version), e.Old != nil && o.q.wants(e.Old)
	switch {
	case !is && !was:
		return ""
	case e.Type == watch.Modified && !was:
		return watch.Added
	case e.Type == watch.Modified && !is:
		return watch.Deleted
	}
	return e.Type
}

func (o *stream) object(kind watch.EventType, v *store.Version) {
	shown, err := o.s.Cluster.shown(v, o.q.partial)
	if err != nil {
		o.send(watch.Error, statusOf(err))
		return
	}
	o.send(kind, shown)
}

func (o *stream) bookmark(annotations map[string]any) {
	kind, version := o.s.kind(o.q)
	meta := map[string]any{"resourceVersion": strconv.FormatInt(o.revision, 10)}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	o.send(watch.Bookmark, map[string]any{"kind": kind, "apiVersion": version, "metadata": meta})
}

func (o *stream) send(kind watch.EventType, object any) {
	text, ok := object.(json.RawMessage)
	if !ok {
		text, _ = json.Marshal(object) // a status, or a bookmark
	}
	_, _ = fmt.Fprintf(o.w, `{"type":%q,"object":%s}`+"\n", kind, text) // a client that has gone ends the context
}

func (o *stream) flush() {
	if f, ok := o.w.(http.Flusher); ok {
		f.Flush()
	}
}

// Watches lets watches of some users be late, or ends them: what an overloaded watch cache and a compacted etcd do to an
// informer. Its zero value does nothing. All its methods may be called on nil.
type Watches struct {
	// Of decides whose watches are meant.
	Of func(*Request) bool

	mu      sync.Mutex
	late    time.Duration
	expired bool
	ended   chan struct{} // is closed when those that are open end
	changed chan struct{} // is closed when late changes
}

// NewWatches is about the watches of the requests that of selects. It is made in the bubble in which it is used.
func NewWatches(of func(*Request) bool) *Watches {
	return &Watches{Of: of, ended: make(chan struct{}), changed: make(chan struct{})}
}

// Delay lets them tell late what changes from now on; with 0 they tell everything now.
func (w *Watches) Delay(late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = late
	close(w.changed)
	w.changed = make(chan struct{})
}

// End ends those that are open: with 410 Gone, or as one ends that was long enough.
func (w *Watches) End(expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = expired
	close(w.ended)
	w.ended = make(chan struct{})
}

// mode returns the delay of a watch, a channel that is closed when the watch must end, and one that is closed when the delay changes.
func (w *Watches) mode(q *Request) (late time.Duration, ended, changed <-chan struct{}) {
	if w == nil || !w.Of(q) {
		return 0, nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late, w.ended, w.changed
}

// lastExpired reports whether the last call of End ended watches with 410 Gone.
func (w *Watches) lastExpired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expired
}
