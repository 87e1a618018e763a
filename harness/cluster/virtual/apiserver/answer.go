package apiserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	storageerrors "k8s.io/apiserver/pkg/storage/errors"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// answer carries out a request that is no watch. Encryption may call a plugin, which takes virtual time, so that is done
// before the store is locked: a goroutine that waits for a mutex in a bubble stops the clock for all. made is the
// version that there is then.
func (s *Server) answer(q *Request) (out any, made *store.Version, err error) {
	if err := s.reach(q); err != nil {
		return nil, nil, err
	}
	switch q.Verb {
	case "get":
		out, err = s.get(q)
		return out, nil, err
	case "list":
		if out, err = s.list(q); err == nil && q.asTable() {
			out, err = s.table(q, out)
		}
		return out, nil, err
	case "deletecollection":
		out, err = s.removeAll(q)
		return out, nil, err
	case "create", "update", "patch", "delete":
	default:
		return nil, nil, apierrors.NewMethodNotSupported(q.Key().Resource.GroupResource(), q.Verb)
	}
	if special := s.Special[q.Resource+"/"+q.Subresource]; special != nil && q.Verb == "create" {
		out, err = special(q)
		return out, nil, err
	}
	if q.Verb == "delete" && q.ignoresReadErrors() {
		out, err = s.removeUnreadable(q)
		return out, nil, err
	}
	if made, err = s.change(q); err != nil {
		return nil, nil, err
	}
	out, err = s.Cluster.shown(made, q.partial)
	return out, made, err
}

// requestTimeout is kube-apiserver's --request-timeout, for clients that name none.
const requestTimeout = time.Minute

// reach waits until etcd can be reached. Its error is what kube-apiserver answers after the request's time-out, which is
// the smaller one of its own and the "timeout" parameter (client-go sends rest.Config.Timeout there).
func (s *Server) reach(q *Request) error {
	if s.Storage == nil {
		return nil
	}
	limit := requestTimeout
	if asked, err := time.ParseDuration(q.HTTP.URL.Query().Get("timeout")); err == nil && asked > 0 {
		limit = min(limit, asked)
	}
	ctx, cancel := context.WithTimeout(q.HTTP.Context(), limit)
	defer cancel()
	began := time.Now()
	err := s.Storage(ctx)
	if !time.Now().Equal(began) { // otherwise all that have waited would go on in one instant, in any order
		time.Sleep(q.id.Number(3).Below(moreWork))
	}
	if err != nil && ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout - "+ctx.Err().Error(), 0)
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// The whole of it, admission included, is one transaction of the store: the optimistic concurrency of etcd, and its
// retries in GuaranteedUpdate, are not needed.
func (s *Server) change(q *Request) (*store.Version, error) {
	if err := s.rest.mayWrite(q); err != nil {
		return nil, err
	}
	v, err := s.Cluster.change(func(st *store.Store) (*store.Version, error) {
		st.Admit = func(was, will *store.Version) error { return s.admit(q, was, will) }
		defer func() { st.Admit = nil }()
		before := st.Revision()
		v, err := s.write(st, q)
		if err == nil && q.Verb != "delete" {
			err = s.rest.encrypt(q.HTTP.Context(), v, st.Revision() != before)
		}
		return v, err
	})
	if dry := (dryRun{}); errors.As(err, &dry) {
		return dry.will, nil
	}
	return v, err
}

// admit is an error for what is not to be done.
func (s *Server) admit(q *Request, was, will *store.Version) error {
	if s.Admit != nil {
		if err := s.Admit(q, was, will); err != nil {
			return err
		}
	}
	if q.dry {
		return dryRun{cmp.Or(will, was)}
	}
	return nil
}

// dryRun ends a change that was only to be tried.
type dryRun struct{ will *store.Version }

func (dryRun) Error() string { return "dry run" }

// removeAll deletes what a list would show, one object after another, as kube-apiserver does: it is not atomic.
func (s *Server) removeAll(q *Request) (any, error) {
	all, _, err := s.listed(q)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		one := *q
		one.Verb, one.Namespace, one.Name = "delete", v.Key.Namespace, v.Key.Name
		if _, err := s.change(&one); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

func (s *Server) get(q *Request) (any, error) {
	s.Cluster.mu.Lock()
	v, err := s.Cluster.store.Get(q.Key())
	s.Cluster.mu.Unlock()
	if err == nil {
		err = storageerrors.InterpretGetError(s.rest.decrypt(q.HTTP.Context(), v.Key), v.Key.Resource.GroupResource(), v.Key.Name)
	}
	if err != nil {
		return nil, err
	}
	return s.Cluster.shown(v, q.partial)
}

func (s *Server) list(q *Request) (any, error) {
	all, revision, err := s.listed(q)
	if err != nil {
		return nil, err
	}
	var items [][]byte
	var unreadable []error
	for _, v := range all {
		if err := s.rest.decrypt(q.HTTP.Context(), v.Key); err != nil {
			if unreadable = append(unreadable, err); len(unreadable) == maxUnreadable || q.HTTP.Context().Err() != nil {
				break
			}
			continue
		}
		shown, err := s.Cluster.shown(v, q.partial)
		if err != nil {
			return nil, err
		}
		items = append(items, shown)
	}
	if len(unreadable) > 0 {
		return nil, storeReadError(q.Key().Resource.GroupResource(), unreadable)
	}
	kind, version := s.kind(q)
	return json.RawMessage(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, kind+"List", version, revision, bytes.Join(items, []byte(",")))), nil
}

// listed is what a list or a watch is about, and the revision at which it is so.
func (s *Server) listed(q *Request) (out []*store.Version, revision int64, err error) {
	s.Cluster.mu.Lock()
	all, revision, err := s.Cluster.store.List(q.Key().Resource, q.Namespace)
	s.Cluster.mu.Unlock()
	for _, v := range all {
		if q.wants(v) {
			out = append(out, v)
		}
	}
	return out, revision, err
}

// kind is what a client gets of a resource.
func (s *Server) kind(q *Request) (kind, apiVersion string) {
	if q.partial {
		return "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	if t := s.Cluster.types.Get(q.Key().Resource); t != nil {
		return t.Kind.Kind, t.Kind.GroupVersion().String()
	}
	return "", ""
}

func (s *Server) write(st *store.Store, q *Request) (*store.Version, error) {
	now, k := time.Now(), q.Key()
	o := store.UpdateOptions{Manager: q.manager, Subresource: q.Subresource}
	switch q.Verb {
	case "create":
		u, err := s.object(q, q.Body)
		if err != nil {
			return nil, err
		}
		if base := u.GetGenerateName(); u.GetName() == "" && base != "" {
			u.SetName(base + suffix(st.Revision()))
		}
		return st.Create(now, k.Resource, u, q.manager)
	case "update":
		u, err := s.object(q, q.Body)
		if err != nil {
			return nil, err
		}
		return update(st, now, k, u, o)
	case "delete":
		return s.remove(st, now, q)
	}
	switch q.patchType() {
	case types.JSONPatchType:
		v, err := st.JSONPatch(now, k, q.Body, o)
		if err != nil {
			return nil, err
		}
		return ended(st, k, v)
	case types.ApplyYAMLPatchType:
		u, err := s.object(q, q.Body)
		if err != nil {
			return nil, err
		}
		return st.Apply(now, k.Resource, u, store.ApplyOptions{Manager: q.manager, Force: q.HTTP.URL.Query().Get("force") == "true", Subresource: q.Subresource})
	case types.MergePatchType, types.StrategicMergePatchType: // of what the store has the two differ in lists that nobody patches
		u, err := s.merged(st, k, q.Body)
		if err != nil {
			return nil, err
		}
		return update(st, now, k, u, o)
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", k.Resource.GroupResource(), k.Name, "the body of the request was in an unknown format", 0, true)
}

// object is a body with what its path says: the kind, which typed clients leave out, and the namespace.
func (s *Server) object(q *Request, body []byte) (*unstructured.Unstructured, error) {
	u, err := object(body)
	if err != nil {
		return nil, err
	}
	if u.GetKind() == "" {
		if t := s.Cluster.types.Get(q.Key().Resource); t != nil {
			u.SetGroupVersionKind(t.Kind)
		}
	}
	if q.Namespace != "" && u.GetNamespace() == "" {
		u.SetNamespace(q.Namespace)
	}
	if q.Name != "" && u.GetName() == "" {
		u.SetName(q.Name)
	}
	if q.Name != "" && u.GetName() != q.Name {
		return nil, apierrors.NewBadRequest("the name of the object (" + u.GetName() + ") does not match the name on the URL (" + q.Name + ")")
	}
	return u, nil
}

// merged is the object as a merge patch leaves it.
func (s *Server) merged(st *store.Store, k store.Key, patch []byte) (*unstructured.Unstructured, error) {
	live, err := st.Get(k)
	if err != nil {
		return nil, err
	}
	changes, err := object(patch)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: merge(live.Object().Object, changes.Object)}, nil
}

// merge is RFC 7386 on decoded objects: through their text, a megabyte that nobody changes would be encoded and decoded twice. It changes target.
func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for field, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, field)
		case map[string]any:
			inner, _ := target[field].(map[string]any)
			target[field] = merge(inner, value)
		default:
			target[field] = value
		}
	}
	return target
}

func update(st *store.Store, now time.Time, k store.Key, u *unstructured.Unstructured, o store.UpdateOptions) (*store.Version, error) {
	v, err := st.Update(now, k.Resource, u, o)
	if err != nil {
		return nil, err
	}
	return ended(st, k, v)
}

// ended removes an object that is being deleted and has no finalizers any more.
func ended(st *store.Store, k store.Key, v *store.Version) (*store.Version, error) {
	if live := (&unstructured.Unstructured{Object: v.Body()}); live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0 {
		return st.Delete(k, store.Preconditions{})
	}
	return v, nil
}

// remove deletes an object, or marks one that has finalizers.
func (s *Server) remove(st *store.Store, now time.Time, q *Request) (*store.Version, error) {
	var o metav1.DeleteOptions
	if len(q.Body) > 0 {
		if err := json.Unmarshal(q.Body, &o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	q.dry = q.dry || len(o.DryRun) > 0
	var p store.Preconditions
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		p.UID = *o.Preconditions.UID
	}
	if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
		p.ResourceVersion = *o.Preconditions.ResourceVersion
	}
	v, err := st.Get(q.Key())
	if err != nil {
		return nil, err
	}
	if err := st.Admit(v, nil); err != nil {
		return nil, err
	}
	if len((&unstructured.Unstructured{Object: v.Body()}).GetFinalizers()) > 0 {
		return st.MarkDeleted(now, q.Key(), p)
	}
	if v, err = st.Delete(q.Key(), p); err == nil {
		delete(s.Cluster.stored, q.Key())
	}
	return v, err
}

// suffix stands for the random suffix of generateName. It has the same alphabet and length
// (k8s.io/apimachinery/pkg/util/rand), and depends on the revision alone, which no other object has.
func suffix(n int64) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	var b strings.Builder
	for range 5 {
		b.WriteByte(alphabet[n%int64(len(alphabet))])
		n /= int64(len(alphabet))
	}
	return b.String()
}
