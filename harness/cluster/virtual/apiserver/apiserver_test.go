package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	storagevalue "k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is one API server, in a bubble.
type world struct {
	*testing.T
	network *network.Network
	cluster *apiserver.Cluster
	server  *apiserver.Server
	audit   bytes.Buffer
}

func in(t *testing.T, f func(ctx context.Context, w *world), change ...func(*apiserver.Options)) (log string) {
	t.Helper()
	types, err := store.LoadTypes(crds.Default)
	if err != nil {
		t.Fatal(err)
	}
	bubble.Test(t, 1, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		w := &world{T: t, network: network.New(1), cluster: apiserver.NewCluster(types)}
		o := apiserver.Options{Name: "cp-1", Cluster: w.cluster, Seed: 1, Audit: &w.audit}
		for _, c := range change {
			c(&o)
		}
		w.server = apiserver.New(o)
		l, err := w.network.Host("cp-1").Listen(ctx, "tcp", "cp-1:6443")
		if err != nil {
			t.Fatal(err)
		}
		w.server.Serve(l, nil)
		defer func() {
			end()
			w.server.Close()
			w.network.Close()
			log = w.audit.String()
		}()
		f(ctx, w)
	})
	return log
}

func (w *world) config(user string) *rest.Config {
	return &rest.Config{Host: "http://cp-1:6443", BearerToken: user, Dial: w.network.Host(user).DialFunc, QPS: -1}
}

func (w *world) client(user string) dynamic.Interface {
	w.Helper()
	c, err := dynamic.NewForConfig(w.config(user))
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func configMap(name, value string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": value}}}
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func value(u *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(u.Object, "data", "value")
	return v
}

func TestObjects(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		c := w.client("admin").Resource(configMaps).Namespace("default")
		made, err := c.Create(ctx, configMap("a", "1", nil), metav1.CreateOptions{FieldManager: "m"})
		if err != nil || made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetNamespace() != "default" {
			w.Fatalf("%v, %v", made, err)
		}
		if _, err := c.Create(ctx, configMap("a", "1", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			w.Error(err)
		}
		generated := configMap("", "g", nil)
		generated.SetGenerateName("made-")
		if g, err := c.Create(ctx, generated, metav1.CreateOptions{}); err != nil || !strings.HasPrefix(g.GetName(), "made-") || len(g.GetName()) != 10 {
			w.Errorf("%v, %v", g, err)
		}
		for kind, patch := range map[types.PatchType]string{types.MergePatchType: `{"data":{"value":"2"}}`, types.JSONPatchType: `[{"op":"replace","path":"/data/value","value":"2"}]`} {
			if got, err := c.Patch(ctx, "a", kind, []byte(patch), metav1.PatchOptions{}); err != nil || value(got) != "2" {
				w.Errorf("%s: %v, %v", kind, got, err)
			}
		}
		applied, err := c.Apply(ctx, "a", configMap("a", "3", nil), metav1.ApplyOptions{FieldManager: "other"})
		if !apierrors.IsConflict(err) {
			w.Errorf("applied what others own: %v, %v", applied, err)
		}
		if applied, err = c.Apply(ctx, "a", configMap("a", "3", nil), metav1.ApplyOptions{FieldManager: "other", Force: true}); err != nil || value(applied) != "3" {
			w.Errorf("%v, %v", applied, err)
		}
		made.Object["data"] = map[string]any{"value": "late"}
		if _, err := c.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			w.Errorf("an update of an old version: %v", err)
		}
		wrong := types.UID("other")
		if err := c.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
			w.Error(err)
		}
		if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
		if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			w.Error(err)
		}
		if tried, err := c.Create(ctx, configMap("b", "1", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || value(tried) != "1" {
			w.Errorf("a dry run: %v, %v", tried, err)
		}
		if _, err := c.Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			w.Errorf("what was only tried: %v", err)
		}
	})
}

// A typed client that writes protobuf is understood.
func TestProtobuf(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		config := w.config("admin")
		config.ContentType = runtime.ContentTypeProtobuf
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := c.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"a": []byte("b")}}, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		got, err := c.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
		if err != nil || string(got.Data["a"]) != "b" {
			w.Errorf("%v, %v", got, err)
		}
	})
}

// An object with finalizers goes when the last is gone.
func TestFinalizers(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		c := w.client("admin").Resource(configMaps).Namespace("default")
		o := configMap("a", "1", nil)
		o.SetFinalizers([]string{"example.com/f"})
		if _, err := c.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
		if got, err := c.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.GetDeletionTimestamp() == nil {
			w.Errorf("%v, %v", got, err)
		}
		if _, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
		if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	})
}

func TestSelectors(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		c := w.client("admin").Resource(configMaps)
		for n, ns := range []string{"one", "one", "two"} {
			if _, err := c.Namespace(ns).Create(ctx, configMap(fmt.Sprint("m", n), "v", map[string]string{"n": fmt.Sprint(n)}), metav1.CreateOptions{}); err != nil {
				w.Fatal(err)
			}
		}
		names := func(namespace string, o metav1.ListOptions) (out []string) {
			list, err := c.Namespace(namespace).List(ctx, o)
			if err != nil {
				w.Fatal(err)
			}
			for _, i := range list.Items {
				out = append(out, i.GetName())
			}
			return out
		}
		if got := names("", metav1.ListOptions{}); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
			w.Error(got)
		}
		if got := names("one", metav1.ListOptions{LabelSelector: "n in (1,2)"}); !slices.Equal(got, []string{"m1"}) {
			w.Error(got)
		}
		if got := names("", metav1.ListOptions{FieldSelector: "metadata.name=m2"}); !slices.Equal(got, []string{"m2"}) {
			w.Error(got)
		}
		if _, err := c.List(ctx, metav1.ListOptions{FieldSelector: "data.value=1"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported") {
			w.Error(err)
		}
		if _, err := c.List(ctx, metav1.ListOptions{LabelSelector: "!!"}); !apierrors.IsBadRequest(err) {
			w.Error(err)
		}
	})
}

// A watch has what there is and what changes, ends when its time is over, and says so when it asks for what is forgotten.
func TestWatch(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		c := w.client("admin").Resource(configMaps).Namespace("default")
		first, err := c.Create(ctx, configMap("a", "1", map[string]string{"k": "v"}), metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		seconds := int64(90)
		began := time.Now()
		events, err := c.Watch(ctx, metav1.ListOptions{LabelSelector: "k=v", SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
		if err != nil {
			w.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			_, _ = c.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"value":"2"}}`), metav1.PatchOptions{})
			_, _ = c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
		})
		var got []string
		for e := range events.ResultChan() {
			got = append(got, string(e.Type)+" "+value(e.Object.(*unstructured.Unstructured)))
		}
		if want := []string{"ADDED 1", "BOOKMARK ", "MODIFIED 2", "DELETED 2", "BOOKMARK "}; !slices.Equal(got, want) || time.Since(began).Round(time.Second) != 90*time.Second {
			w.Errorf("%v after %v", got, time.Since(began))
		}
		w.cluster.Compact()
		late, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
		if err != nil {
			w.Fatal(err)
		}
		if e := <-late.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			w.Errorf("%v", e)
		}
		late.Stop()
	})
}

// request sends the server one, past the network.
func (w *world) request(ctx context.Context, to http.ResponseWriter, method, path, body string) {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Content-Type", "application/json")
	w.server.ServeHTTP(to, r)
}

func (w *world) create(ctx context.Context, name string) {
	w.request(ctx, httptest.NewRecorder(), http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "`+name+`"}}`)
}

// flushed notes when something was sent last.
type flushed struct {
	*httptest.ResponseRecorder
	at time.Time
}

func (f *flushed) Flush() { f.at = time.Now() }

// A write is answered before watches show what it changed, each at another instant.
func TestWatchesAfterTheAnswer(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		watching, end := context.WithCancel(ctx)
		var all sync.WaitGroup
		var shown [2]flushed
		for i, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/default/configmaps"} {
			shown[i].ResponseRecorder = httptest.NewRecorder()
			all.Go(func() { w.request(watching, &shown[i], http.MethodGet, path+"?watch=true", "") })
		}
		time.Sleep(time.Second)
		w.create(ctx, "a")
		answered := time.Now()
		time.Sleep(time.Second)
		end()
		all.Wait()
		if !shown[0].at.After(answered) || !shown[1].at.After(answered) || shown[0].at.Equal(shown[1].at) {
			w.Errorf("answered at %v, shown at %v and %v, expected three instants, the answer's first", answered, shown[0].at, shown[1].at)
		}
	})
}

// What has waited for etcd goes on at different instants.
func TestEtcdComesBack(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		var all sync.WaitGroup
		var mu sync.Mutex
		answered := map[time.Time]bool{}
		for _, name := range []string{"a", "b", "c"} {
			all.Go(func() {
				w.create(ctx, name)
				mu.Lock()
				defer mu.Unlock()
				answered[time.Now()] = true
			})
		}
		all.Wait()
		if len(answered) != 3 {
			w.Errorf("answered at %v, expected three instants", answered)
		}
	}, func(o *apiserver.Options) {
		back := time.Now().Add(time.Minute)
		o.Storage = func(context.Context) error {
			time.Sleep(time.Until(back))
			return nil
		}
	})
}

// Watches of some users are late until they no longer are, and end: with 410, or without a word.
func TestWatches(t *testing.T) {
	var watches *apiserver.Watches
	in(t, func(ctx context.Context, w *world) {
		admin := w.client("admin").Resource(configMaps).Namespace("default")
		begin := func() watch.Interface {
			events, err := w.client("late").Resource(configMaps).Namespace("default").Watch(ctx, metav1.ListOptions{})
			if err != nil {
				w.Fatal(err)
			}
			return events
		}
		next := func(events watch.Interface, want time.Duration, kind watch.EventType) {
			began := time.Now()
			if e := <-events.ResultChan(); e.Type != kind || time.Since(began).Round(time.Second) != want {
				w.Errorf("%v after %v, expected %s after %v", e, time.Since(began), kind, want)
			}
		}
		put := func(value string) {
			if _, err := admin.Apply(ctx, "a", configMap("a", value, nil), metav1.ApplyOptions{FieldManager: "m", Force: true}); err != nil {
				w.Fatal(err)
			}
		}
		events := begin()
		watches.Delay(time.Minute)
		put("1")
		next(events, time.Minute, watch.Added)
		put("2")
		time.AfterFunc(time.Second, func() { watches.Delay(0) })
		next(events, time.Second, watch.Modified)
		watches.End(true)
		next(events, 0, watch.Error)
		events = begin()
		next(events, 0, watch.Added)
		watches.End(false)
		next(events, 0, "")
	}, func(o *apiserver.Options) {
		watches = apiserver.NewWatches(func(q *apiserver.Request) bool { return q.User.GetName() == "late" })
		o.Watches = watches
	})
}

// An informer follows over the end of its watches, and over the end of the API server.
func TestInformer(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		ctx, end := context.WithCancel(ctx)
		client := w.client("informer")
		informer := dynamicinformer.NewFilteredDynamicInformer(client, configMaps, "", 0, cache.Indexers{}, nil).Informer()
		var running sync.WaitGroup
		running.Go(func() { informer.Run(ctx.Done()) })
		c := w.client("admin").Resource(configMaps).Namespace("default")
		for hour := range 3 {
			if _, err := c.Apply(ctx, "a", configMap("a", fmt.Sprint(hour), nil), metav1.ApplyOptions{FieldManager: "m", Force: true}); err != nil {
				w.Fatal(err)
			}
			time.Sleep(time.Second)
			if kept := informer.GetStore().List(); len(kept) != 1 || value(kept[0].(*unstructured.Unstructured)) != fmt.Sprint(hour) {
				w.Errorf("hour %d: %v", hour, kept)
			}
			w.network.Reset("informer", "cp-1")
			time.Sleep(time.Hour)
		}
		end()
		running.Wait()
	})
}

func TestDiscoveryAndHealth(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		d, err := discovery.NewDiscoveryClientForConfig(w.config("admin"))
		if err != nil {
			w.Fatal(err)
		}
		_, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			w.Fatal(err)
		}
		found := map[string]bool{}
		for _, l := range lists {
			for _, r := range l.APIResources {
				found[l.GroupVersion+" "+r.Name] = true
			}
		}
		for _, want := range []string{"v1 secrets", "operator.openshift.io/v1 kubeapiservers", "operator.openshift.io/v1 kubeapiservers/status", "coordination.k8s.io/v1 leases"} {
			if !found[want] {
				w.Errorf("%s is not among %v", want, found)
			}
		}
		for path, want := range map[string]string{"/livez": "", "/readyz": "kms-1 is not healthy"} {
			text, err := d.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
			if (err != nil) != (want != "") || err != nil && !strings.Contains(string(text)+err.Error(), want) {
				w.Errorf("%s: %s, %v", path, text, err)
			}
		}
	}, func(o *apiserver.Options) {
		o.Ready = func(*http.Request) error { return fmt.Errorf("kms-1 is not healthy") }
	})
}

// Requests that are not allowed get 403, and the audit log records that as the recorder reads it.
func TestRefusals(t *testing.T) {
	var overloaded bool
	log := in(t, func(ctx context.Context, w *world) {
		c := w.client("nobody").Resource(configMaps).Namespace("default")
		if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			w.Error(err)
		}
		admin := w.client("admin").Resource(configMaps).Namespace("default")
		overloaded = true
		time.AfterFunc(3*time.Second, func() { overloaded = false })
		if _, err := admin.Create(ctx, configMap("a", "1", nil), metav1.CreateOptions{FieldManager: "m"}); err != nil { // client-go waits, and tries again
			w.Error(err)
		}
	}, func(o *apiserver.Options) {
		o.Authorize = func(q *apiserver.Request) error {
			if q.User.GetName() == "nobody" {
				return apierrors.NewForbidden(q.Key().Resource.GroupResource(), q.Name, fmt.Errorf("user %q cannot %s", q.User.GetName(), q.Verb))
			}
			return nil
		}
		o.Refuse = func(*apiserver.Request) error {
			if overloaded {
				return apierrors.NewTooManyRequests("the server is overloaded", 1)
			}
			return nil
		}
	})
	var got []string
	for line := range strings.Lines(log) {
		r, ended, err := audit.Decode("cp-1", []byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if ended {
			body, _ := json.Marshal(r.Body)
			got = append(got, fmt.Sprint(r.User, " ", r.Verb, " ", r.Code, " ", r.FieldManager, " ", r.Reason, " ", len(body) > 10))
		}
	}
	want := []string{"nobody get 403  Forbidden false", "admin create 429 m TooManyRequests false", "admin create 429 m TooManyRequests false", "admin create 429 m TooManyRequests false", "admin create 201 m  true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// lostKey encrypts by a prefix, and reads nothing that begins with "old" any more.
type lostKey struct{ writes *string }

func (k lostKey) TransformToStorage(_ context.Context, data []byte, _ storagevalue.Context) ([]byte, error) {
	return append([]byte(*k.writes), data...), nil
}

func (k lostKey) TransformFromStorage(_ context.Context, data []byte, _ storagevalue.Context) ([]byte, bool, error) {
	if bytes.HasPrefix(data, []byte("old")) && *k.writes != "old" {
		return nil, false, errors.New("no matching prefix found")
	}
	return data[3:], false, nil
}

// What cannot be read is named by the error of a list, and deleted with a verb of its own (KEP-3926). A snapshot brings it back.
func TestUnreadable(t *testing.T) {
	writes, yes := "old", true
	in(t, func(ctx context.Context, w *world) {
		admin, deleter := w.client("admin").Resource(configMaps).Namespace("default"), w.client("deleter").Resource(configMaps).Namespace("default")
		for _, name := range []string{"a", "b"} {
			if _, err := admin.Create(ctx, configMap(name, "1", nil), metav1.CreateOptions{}); err != nil {
				w.Fatal(err)
			}
		}
		const from, end = "/registry/configmaps/default/", "/registry/configmaps/default0"
		kept := w.cluster.Keep(apiserver.Registry, "", from, end)
		writes = "new"
		if _, err := admin.Create(ctx, configMap("c", "1", nil), metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		unreadable := func(names ...string) {
			w.Helper()
			_, err := admin.List(ctx, metav1.ListOptions{})
			var status apierrors.APIStatus
			var got []string
			if errors.As(err, &status) && apierrors.IsStoreReadError(err) {
				for _, c := range status.Status().Details.Causes {
					got = append(got, strings.TrimPrefix(c.Field, from))
				}
			}
			if !slices.Equal(got, names) {
				w.Errorf("a list names %q (%v), expected %q", got, err, names)
			}
		}
		unreadable("a", "b")
		unsafe := metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &yes}
		for what, refused := range map[string]bool{
			"without the option":            apierrors.IsInternalError(admin.Delete(ctx, "a", metav1.DeleteOptions{})),
			"without the verb":              apierrors.IsForbidden(deleter.Delete(ctx, "a", unsafe)),
			"of what can be read":           apierrors.IsConflict(admin.Delete(ctx, "c", unsafe)),
			"of what is not there":          apierrors.IsNotFound(admin.Delete(ctx, "d", unsafe)),
			"with options that exclude one": apierrors.IsInvalid(admin.Delete(ctx, "a", metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &yes, GracePeriodSeconds: new(int64)})),
		} {
			if !refused {
				w.Errorf("a deletion %s is not refused as it should be", what)
			}
		}
		if err := admin.Delete(ctx, "a", unsafe); err != nil {
			w.Error(err)
		}
		unreadable("b")
		if err := w.cluster.Restore(apiserver.Registry, "", from, end, kept); err != nil {
			w.Error(err)
		}
		unreadable("a", "b")
		writes = "old"
		if list, err := admin.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
			w.Errorf("%v (%v), expected what was there when the snapshot was made", list, err)
		}
	}, func(o *apiserver.Options) {
		o.Transformer = func(schema.GroupResource) storagevalue.Transformer { return lostKey{&writes} }
		o.Authorize = func(q *apiserver.Request) error {
			if q.User.GetName() == "deleter" && q.Verb != "delete" {
				return errors.New("denied")
			}
			return nil
		}
	})
}

// The same seed gives the same audit log, to the nanosecond.
func TestReproducible(t *testing.T) {
	once := func() string {
		return in(t, func(ctx context.Context, w *world) {
			var all sync.WaitGroup
			for n := range 5 {
				all.Go(func() {
					c := w.client(fmt.Sprint("client-", n)).Resource(configMaps).Namespace("default")
					for k := range 5 {
						if _, err := c.Apply(ctx, fmt.Sprint("m", k), configMap(fmt.Sprint("m", k), fmt.Sprint(n), nil), metav1.ApplyOptions{FieldManager: fmt.Sprint(n), Force: true}); err != nil {
							w.Error(err)
						}
						time.Sleep(time.Second)
					}
				})
			}
			all.Wait()
		})
	}
	first := once()
	for range 3 {
		if again := once(); again != first {
			t.Fatalf("%d and %d bytes of audit log", len(first), len(again))
		}
	}
}

// A request that another API server answers is authorized here, passed on with its body, and in the audit log.
func TestAggregate(t *testing.T) {
	aggregate := func(o *apiserver.Options) {
		o.Aggregate = func(q *apiserver.Request) http.Handler {
			if !strings.HasPrefix(q.Path, "/apis/other.example.com/") {
				return nil
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				http.Error(w, "other: "+string(body), http.StatusTeapot)
			})
		}
		o.Authorize = func(q *apiserver.Request) error {
			if q.User.GetName() == "nobody" {
				return q.Forbidden()
			}
			return nil
		}
	}
	other := schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "things"}
	log := in(t, func(ctx context.Context, w *world) {
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "other.example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}}}
		_, err := w.client("admin").Resource(other).Namespace("default").Create(ctx, thing, metav1.CreateOptions{})
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != http.StatusTeapot || !strings.Contains(fmt.Sprint(status.Status()), `"kind":"Thing"`) {
			w.Errorf("%v", err)
		}
		if _, err := w.client("nobody").Resource(other).Namespace("default").Create(ctx, thing, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			w.Errorf("nobody: %v", err)
		}
		if _, err := w.client("admin").Resource(configMaps).Namespace("default").Create(ctx, configMap("a", "1", nil), metav1.CreateOptions{}); err != nil {
			w.Error(err)
		}
	}, aggregate)
	for _, want := range []string{`"code":418`, `"code":403`, `"code":201`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s:\n%s", want, log)
		}
	}
}
