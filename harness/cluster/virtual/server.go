package virtual

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/identity"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// securePort of an API server.
const securePort = ":6443"

// server is an API server on a node, with kube-apiserver's own encryption. It stays over several runs of the API server,
// as a static pod does.
type server struct {
	cluster    *ControlPlane
	aggregated *aggregated                                  // nil: it is a kube-apiserver
	kube       authorizationclient.AuthorizationV1Interface // of an aggregated API server: a kube-apiserver
	node       string
	host       string // its machine
	info       cluster.ServerInfo
	watches    *apiserver.Watches // of aggregators
	serving    atomic.Value       // mode of scenario.Serving

	turn turn.Turn // to start it, which takes time

	mu     sync.Mutex
	alive  *served // nil: it does not run
	phase  cluster.Phase
	lives  int
	toEtcd netfault.Fault
}

var _ local.NodeServer = (*server)(nil)

// served is one run of an API server.
type served struct {
	api        *apiserver.Server
	encryption *encryption.Encryption
	end        context.CancelFunc
	programs   sync.WaitGroup
	proxy      *proxy         // nil: there are no aggregated API servers
	audit, log io.WriteCloser // an aggregated API server has no audit log
}

// newServer is a kube-apiserver without aggregated.
func newServer(c *ControlPlane, node string, of *aggregated) (*server, error) {
	s := &server{cluster: c, aggregated: of, node: node, host: "apiserver-" + node, watches: apiserver.NewWatches(ofAggregator), turn: turn.New()}
	var addr string
	if of == nil {
		addr = c.address(node) + securePort
		s.info.AuditLog, s.info.FrontAddr = filepath.Join(c.logs, "audit-"+node+".jsonl"), addr // nothing else advertises API servers here
	} else {
		s.host = of.APIServer + "-" + node
		addr = s.host + securePort
	}
	dir := filepath.Join(c.dir, s.host)
	s.info.Name, s.info.Addr, s.info.URL = node, addr, "https://"+addr
	s.info.LogFile, s.info.EncryptionFile = filepath.Join(c.logs, s.host+".log"), filepath.Join(dir, "encryption.yaml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, file := range []string{s.info.AuditLog, s.info.LogFile} { // readers expect them
		if file == "" {
			continue
		}
		f, err := s.cluster.machine.files.Append(file)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) Info() cluster.ServerInfo { return s.info }

// setEncryption writes the configuration with which it starts.
func (s *server) setEncryption(e controlplane.Encryption) error {
	text, err := e.YAML()
	if err != nil {
		return err
	}
	return s.SetEncryptionText(text)
}

func (s *server) SetEncryptionText(text []byte) error {
	return atomicfile.Write(s.info.EncryptionFile, text, 0o600)
}

// Start starts the API server unless it runs, and returns when it is as ready as asked.
func (s *server) Start(ctx context.Context, until controlplane.Readiness) error {
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("start %s: %w", s.host, err)
	}
	return s.WaitReady(ctx, until)
}

// launch starts an API server unless it runs, from the files that it has now, as a process does. An aggregated one first asks the kube-apiserver of its
// node, as the library does at its start. What it opened before an error is closed again.
func (s *server) launch(ctx context.Context) error {
	if !s.Status().Running() {
		s.cluster.machine.boot(s.host)
		if s.aggregated != nil { // before the lock: it waits
			if err := s.askKube(ctx); err != nil {
				return err
			}
		}
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.Status().Running() {
		return nil
	}
	living, end := context.WithCancel(context.Background())
	one := &served{end: end}
	h := s.cluster.machine.network.Host(s.host)
	var err error
	if one.log, err = s.cluster.machine.files.Append(s.info.LogFile); err == nil && s.aggregated == nil {
		one.audit, err = s.cluster.machine.files.Append(s.info.AuditLog)
	}
	if err == nil {
		one.encryption, err = encryption.Load(living, h, s.info.EncryptionFile, s.node, encryption.Lines{Log: s.cluster.envelopes, To: one.log}, s.cluster.encryption)
	}
	if err != nil {
		end()
		return errors.Join(err, one.close())
	}
	secure := s.secure()
	o := apiserver.Options{Seed: s.cluster.machine.seed, Storage: s.storage, Transformer: s.transformer(one.encryption), Ready: one.encryption.Ready, Metrics: one}
	if s.aggregated == nil {
		s.kubeOptions(&o, one)
	} else {
		s.aggregatedOptions(&o)
	}
	one.api = apiserver.New(o)
	listener, err := h.Listen(ctx, "tcp", s.info.Addr)
	if err != nil {
		end()
		return errors.Join(err, one.close())
	}
	one.programs.Go(func() { one.encryption.Reload(living, s.cluster.encryptionPoll) })
	if one.proxy != nil {
		one.programs.Go(func() { one.proxy.follow(living) })
	}
	pprof.Do(ctx, pprof.Labels("program", history.RoleAPIServer), func(context.Context) { one.api.Serve(listener, secure) })
	s.mu.Lock()
	s.alive, s.phase = one, cluster.Running
	s.lives++
	life := s.lives
	s.mu.Unlock()
	s.record(history.ProcessStarted, life)
	return nil
}

func (s *server) kubeOptions(o *apiserver.Options, one *served) {
	c := s.cluster
	o.Name, o.Cluster, o.Authenticate, o.Authorize, o.Admit, o.Wrap = s.node, c.objects, c.identities.Authenticate, c.access.Authorize, c.access.Admit, s.advertising
	o.Special = map[string]func(*apiserver.Request) (any, error){"serviceaccounts/token": s.token, "subjectaccessreviews/": c.access.Review}
	o.Refuse, o.Watches = func(q *apiserver.Request) error { return c.refused.answer(s.node, q) }, s.watches
	o.Audit, o.AuditPolicy = one.audit, c.audit
	if c.aggregates() {
		one.proxy = &proxy{server: s, routes: map[route]http.RoundTripper{}}
		o.Aggregate = one.proxy.handler
	}
}

func (o *served) close() error {
	var errs []error
	for _, file := range []io.Closer{o.audit, o.log} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// transformer encrypts secrets and configmaps, the resources that scenarios and OpenShift's operators encrypt; all else
// stays as it is, and costs nothing.
func (s *server) transformer(by *encryption.Encryption) func(schema.GroupResource) value.Transformer {
	return func(r schema.GroupResource) value.Transformer {
		if s.aggregated == nil && (r.Group != "" || r.Resource != "secrets" && r.Resource != "configmaps") {
			return nil
		}
		return by.Transformer(r)
	}
}

// ServeHTTP serves the metric by which a reload is waited for.
func (o *served) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "apiserver_encryption_config_controller_last_config_info{apiserver_id_hash=\"\",hash=%q} 1\n", o.encryption.Loaded()) // the client has gone
}

func (s *server) record(state string, life int) {
	p := s.identity()
	p.PID, p.State = life, state
	s.cluster.machine.Record(time.Now(), p)
}

// WaitReady returns when the running API server is as ready as asked.
func (s *server) WaitReady(ctx context.Context, until controlplane.Readiness) error {
	if until == controlplane.Started {
		return nil
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := s.ask(ctx, until)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last answer: %w", s.host, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// ask is nil if it is as ready as asked.
func (s *server) ask(ctx context.Context, until controlplane.Readiness) error {
	s.mu.Lock()
	one := s.alive
	s.mu.Unlock()
	if one == nil {
		return errors.New("it does not run")
	}
	if until != controlplane.Ready {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.info.URL+string(until), nil)
	if err != nil {
		return err
	}
	return one.encryption.Ready(r)
}

// Stop ends it, after the requests that it has begun.
func (s *server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return s.finish(history.ProcessStopped, func(one *served) { one.api.Shutdown(ctx) })
}

func (s *server) Kill(context.Context) error {
	return s.finish(history.ProcessKilled, func(one *served) {
		s.cluster.machine.network.Kill(s.host)
		one.api.Close()
	})
}

func (s *server) finish(state string, end func(*served)) error {
	s.turn.Lock()
	s.mu.Lock()
	one, life := s.alive, s.lives
	s.alive = nil
	if one != nil {
		s.phase = cluster.Ended
	}
	s.mu.Unlock()
	s.turn.Unlock()
	if one == nil {
		return nil
	}
	s.cluster.machine.release(s.host, false)
	end(one)
	one.end()
	one.programs.Wait()
	if one.proxy != nil {
		one.proxy.close()
	}
	s.record(state, life)
	return one.close()
}

// Pause lets all its connections stand still.
func (s *server) Pause(context.Context) error {
	s.hold(cluster.Running, cluster.Paused, history.ProcessPaused, s.cluster.machine.network.Freeze)
	return nil
}

func (s *server) Silence(context.Context) error {
	s.hold(cluster.Running, cluster.Paused, history.ProcessSilenced, s.cluster.machine.network.Silence)
	return nil
}

// Resume ends that.
func (s *server) Resume(context.Context) error {
	s.hold(cluster.Paused, cluster.Running, history.ProcessResumed, s.cluster.machine.release)
	return nil
}

func (s *server) hold(from, to cluster.Phase, state string, hold func(host string, on bool)) {
	s.mu.Lock()
	changes, life := s.phase == from, s.lives
	if changes {
		s.phase = to
	}
	s.mu.Unlock()
	if changes {
		hold(s.host, to == cluster.Paused)
		s.record(state, life)
	}
}

// Status is that of this moment. The number of its life stands for that of a process.
func (s *server) Status() cluster.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster.Status{Phase: s.phase, PID: s.lives}
}

// shortestToken is what kube-apiserver's validation demands of a TokenRequest (pkg/apis/authentication/validation).
const shortestToken = 10 * time.Minute

// token answers a TokenRequest as kube-apiserver does: it lives an hour unless the request says otherwise, at least ten minutes. It names the node of the
// pod that it is bound to, because the admission policy for reporters goes by that.
func (s *server) token(q *apiserver.Request) (any, error) {
	var request authentication.TokenRequest
	if err := yaml.Unmarshal(q.Body, &request); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	life := time.Hour
	if request.Spec.ExpirationSeconds != nil {
		life = time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	}
	if life < shortestToken {
		return nil, apierrors.NewBadRequest("spec.expirationSeconds: may not specify a duration less than 10 minutes")
	}
	bound := identity.Bound{Namespace: q.Namespace, Account: q.Name}
	if ref := request.Spec.BoundObjectRef; ref != nil && ref.Kind == "Pod" {
		pod := s.cluster.objects.Object(store.Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: q.Namespace, Name: ref.Name})
		if pod == nil || ref.UID != "" && pod.GetUID() != ref.UID {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ref.Name)
		}
		bound.Pod, bound.PodUID = ref.Name, pod.GetUID()
		spec, _ := pod.Object["spec"].(map[string]any)
		bound.Node, _ = spec["nodeName"].(string)
	}
	token, expires, err := s.cluster.identities.Token(bound, life)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	request.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}
	request.Status = authentication.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return request, nil
}
