// Package observe records the history of a cluster that it only reads. It has the sources (watches, and a request per second that shows whether an API
// server answers) and the conversion of what they show; it starts, changes and judges nothing.
package observe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator/revision"
)

const (
	// begin bounds the time until everything has been listed once.
	begin = 30 * time.Second
	// probeEvery is how often the API server is asked whether it serves. A probe without an answer after probeTimeout is an outage.
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
	// patience is for how long a broken watch is left alone: others use the cluster, too.
	patience = time.Second
)

// Options of Record.
type Options struct {
	REST     *rest.Config
	Operator core.Operator
	// NodeSelector has the nodes that should report.
	NodeSelector string
	// LeaseNamespace and LeaseName are of the aggregator's lease, whose holders show when it starts; an empty name: it has none.
	LeaseNamespace, LeaseName string
	// Run is what the history says of itself: timing, tolerance, contract, profile.
	Run history.Run
	// Progress receives a line for each resource that the cluster does not have.
	Progress func(string)
}

// caches are the local copies of what is not recorded state by state.
type caches struct {
	nodes, kubeadmPods, openshiftPods *informer.Cache
	config, leases, keys              *informer.Cache // nil: the cluster does not have them, or they are not to be read
	migrations                        []*informer.Cache
}

func (c caches) all() []*informer.Cache {
	all := append([]*informer.Cache{c.nodes, c.kubeadmPods, c.openshiftPods, c.config, c.leases, c.keys}, c.migrations...)
	return slices.DeleteFunc(all, func(c *informer.Cache) bool { return c == nil })
}

// Record records until ctx ends. An error means that nothing could be recorded.
func Record(ctx context.Context, o Options, log *history.Log) error {
	r, err := newRecorder(o, log)
	if err != nil {
		return err
	}
	targets, err := r.targets(ctx)
	if err != nil {
		return err
	}
	states := watch.NewSequence(r)
	watcher := watch.New(states, clock.RealClock{}, targets...)
	watcher.RetryEvery = patience
	run := o.Run
	run.Schema, run.Observed, run.Operator, run.ClusterOperator = history.Schema, true, o.Operator.Resource, o.Operator.ClusterOperator
	log.Record(time.Now(), source, &run)
	log.Record(time.Now(), source, &history.Phase{Name: history.PhaseSteps})
	var work sync.WaitGroup
	following, stop := context.WithCancel(ctx)
	for _, c := range r.caches.all() {
		work.Go(func() { c.Run(following) })
	}
	if err = r.synced(ctx); err == nil {
		work.Go(func() { r.probe(following) })
		work.Go(func() { r.scrape(following) })
		watcher.Add(following, "cluster", r.dynamic)
		<-ctx.Done()
	}
	stop()
	watcher.Close()
	work.Wait()
	if err != nil {
		return err
	}
	end := &history.End{Complete: true}
	if problem := states.Problem(); problem != nil {
		end.Complete, end.Problem = false, problem.Error()
	}
	log.Record(time.Now(), source, &history.Phase{Name: history.PhaseEnd})
	log.Record(time.Now(), source, end)
	return log.Flush()
}

func newRecorder(o Options, log *history.Log) (*recorder, error) {
	r := &recorder{options: o, sink: log, reports: map[string]string{}, up: map[history.Process]bool{}}
	config := watch.Impatient(o.REST)
	var err error
	if r.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	if r.dynamic, err = dynamic.NewForConfigAndClient(config, r.http); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	if r.rest, err = rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), r.http); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), r.http)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	r.caches.nodes = r.cache(informer.Of("nodes", &unstructured.Unstructured{}, r.dynamic.Resource(v1.WithResource("nodes"))), o.NodeSelector, "")
	pods := informer.Of("pods of API servers", &unstructured.Unstructured{}, r.dynamic.Resource(v1.WithResource("pods")))
	r.caches.kubeadmPods, r.caches.openshiftPods = r.cache(pods, "component=kube-apiserver", ""), r.cache(pods, "app=openshift-kube-apiserver", "")
	r.keys = m.Resource(v1.WithResource("secrets")).Namespace(revision.Namespace)
	if o.LeaseName != "" {
		leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		r.caches.leases = r.cache(informer.Of("leases", &unstructured.Unstructured{}, r.dynamic.Resource(leases).Namespace(o.LeaseNamespace)), "", "metadata.name="+o.LeaseName)
	}
	return r, nil
}

func (r *recorder) cache(s informer.Source, labels, fields string) *informer.Cache {
	s.Labels, s.Fields = labels, fields
	return informer.New(s, r.update)
}

// targets are the objects whose states are recorded. What the cluster does not have is no error, except the CR.
func (r *recorder) targets(ctx context.Context) ([]watch.Target, error) {
	op := r.options.Operator
	cr := watch.Target{GVR: schema.GroupVersionResource{Group: core.OperatorGroup, Version: core.OperatorVersion, Resource: op.Resource}, Name: core.OperatorObject}
	all := []watch.Target{
		{GVR: schema.GroupVersionResource{Group: core.ConfigGroup, Version: core.ConfigVersion, Resource: "clusteroperators"}, Name: op.ClusterOperator},
		{GVR: schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}, Name: op.Name},
	}
	served, err := r.serves(ctx, cr.GVR)
	if err == nil && !served {
		err = fmt.Errorf("nothing to observe: the cluster has no %s", cr.Resource())
	}
	if err != nil {
		return nil, err
	}
	found := []watch.Target{cr}
	for _, t := range all {
		if served, err = r.serves(ctx, t.GVR); err != nil {
			return nil, err
		}
		if served {
			found = append(found, t)
		} else {
			r.options.Progress("not observed, because the cluster has no " + t.Resource())
		}
	}
	if served, err = r.serves(ctx, revision.Configurations()); served {
		r.caches.config = r.cache(informer.Of("configuration", &unstructured.Unstructured{}, r.dynamic.Resource(revision.Configurations())), "", "metadata.name="+core.OperatorObject)
	}
	if err == nil {
		err = r.findKeys(ctx)
	}
	return found, err
}

// findKeys looks for the names and annotations of keys, with which the API server sends no data, and for what rewrites objects under them.
func (r *recorder) findKeys(ctx context.Context) error {
	of := metav1.ListOptions{Limit: 1, LabelSelector: revision.ComponentLabel + "=" + string(component(r.options.Operator))}
	found, err := r.readable(ctx, "key Secrets in "+revision.Namespace, func(ctx context.Context) error {
		_, err := r.keys.List(ctx, of)
		return err
	})
	if err != nil || !found {
		return err
	}
	r.caches.keys = r.cache(informer.Of("keys", &metav1.PartialObjectMetadata{}, r.keys), of.LabelSelector, "")
	for _, gvr := range revision.Migrators() {
		migrations := r.dynamic.Resource(gvr)
		found, err := r.readable(ctx, gvr.GroupResource().String(), func(ctx context.Context) error {
			_, err := migrations.List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
		if err != nil {
			return err
		}
		if found {
			r.caches.migrations = append(r.caches.migrations, r.cache(informer.Of(gvr.Resource, &unstructured.Unstructured{}, migrations), "", ""))
		}
	}
	return nil
}

// readable reports whether the cluster has something that may be read. Who observes need not be allowed to read everything.
func (r *recorder) readable(ctx context.Context, what string, read func(context.Context) error) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, begin)
	defer cancel()
	return r.answered(what, read(ctx))
}

// answered reports whether something could be read, by the error of who tried. It is an error unless it is forbidden or is not there.
func (r *recorder) answered(what string, err error) (bool, error) {
	switch {
	case apierrors.IsForbidden(err):
		r.options.Progress("not observed, because it is forbidden: " + what)
		return false, nil
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("observe %s: %w", what, err)
	default:
		return err == nil, nil
	}
}

// serves reports whether the cluster has a resource.
func (r *recorder) serves(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, begin)
	defer cancel()
	_, err := r.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("observe %s, with a ClusterRole as in ci/manifests/observe-job.yaml: %w", gvr.GroupResource(), err)
	}
	return true, nil
}

// synced waits until every cache has been filled, and records what they show.
func (r *recorder) synced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, begin)
	defer cancel()
	for _, c := range r.caches.all() {
		if err := c.WaitSynced(ctx); err != nil {
			return fmt.Errorf("observe, with a ClusterRole as in ci/manifests/observe-job.yaml: %w", err)
		}
	}
	r.mu.Lock()
	r.began = true
	r.mu.Unlock()
	r.update()
	return nil
}

// probe records when the API server does not serve: what happens then is seen late, and programs may not reach it either.
func (r *recorder) probe(ctx context.Context) {
	outage := history.Refusal{Mode: history.RefuseUnavailable, Code: history.RefusalCode(history.RefuseUnavailable), Over: true}
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		asked := time.Now()
		if serves := r.answers(ctx); serves != outage.Over && ctx.Err() == nil {
			if outage.Over = serves; serves {
				asked = time.Now()
			}
			now := outage
			r.sink.Record(asked, source, &now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// answers reports whether the API server answers, also that it refuses to.
func (r *recorder) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	code := 0
	r.rest.Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
	return code != 0 && code < http.StatusInternalServerError
}
