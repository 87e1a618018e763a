package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// cluster is what all API servers of a simulation share.
type cluster struct {
	main       *world   // kube-apiserver's
	aggregated []*world // those of the API servers beside it

	k         *kernel.Kernel
	ctx       context.Context // of calls that never wait
	log       *history.Log
	timing    contract.Timing
	election  election
	initially encryption.Type // of the cluster's configuration
	form      publish.Form
	union     contract.Union   // of the aggregators
	profile   *profile.Profile // of the plugins; may be nil
	cores     Cores
	hooks     TestHooks

	store       *objects.Store
	published   int64 // revision up to which everybody was told
	observer    *observer
	etcd        *etcd
	kms         *kms
	balancer    *balancer
	front       *link // from the aggregators to the load balancer
	conns       []*conn
	refusals    []*refusal
	credentials map[string]credentials   // by node; one that is not there has never expired
	late        map[string]time.Duration // how late the watches of a node's API server are
	secrecy     *secrecy.Recorder

	ahead      time.Duration // the aggregators' clock, of the true time
	cpus       int           // of each API server; 0: work takes no time
	kms2       kmsTimes
	unhealthy  Unhealthy
	kmsAhead   time.Duration // of the clock that keys expire by, as in tests of Kubernetes
	legacyKeys bool          // API servers make keys as before Kubernetes 1.29

	pids     int
	requests int
	// resources are the names of what requests were about.
	resources map[schema.GroupVersionResource]string
}

// world is an API server, kube-apiserver or one beside it, with what is its own, and what it shares with the others.
type world struct {
	*cluster
	apiServer      string // a further one; empty: kube-apiserver
	operator       operator
	connectivity   string // of its reporters
	encrypts       encrypts
	keyIDs         []string          // of the plugins, the write key first
	named          map[string]string // keys in the remote KMS that an operator chose, by keyID
	nodes          []*node
	aggregators    []*aggregator
	secrets        map[string]*secret
	secretRevision int64
	addresses      int                 // that nodes had
	member         int                 // next one behind its Service
	changed        func(objects.Event) // its operator's watch; nil: there is none
}

// balancer is the load balancer in front of the API servers.
type balancer struct {
	proc
	next  int     // member that is tried first
	stale []*node // the members while the list is not updated; nil: it is
}

// epoch is when every simulation begins. Nothing depends on which instant it is.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newWorld(seed int64, log *history.Log, timing contract.Timing, kept *objects.Store) (*world, error) {
	w := &world{encrypts: encryptedSecrets(), secrets: map[string]*secret{}, cluster: &cluster{k: kernel.New(epoch(), seed), ctx: context.Background(), log: log,
		timing: timing, election: electionFor(timing), store: kept, resources: map[schema.GroupVersionResource]string{}, cpus: defaultCPUs,
		kms2: realKMSTimes(), initially: encryption.KMS}}
	w.main = w
	w.kms2.filePoll = localFilePoll
	w.published = w.store.Revision()
	w.observer = &observer{w: w, sequence: watch.NewSequence(log), pictures: map[watch.Target]*picture{}}
	w.secrecy = &secrecy.Recorder{Sink: log, Now: w.k.Now}
	w.etcd = newEtcd(w)
	w.balancer = &balancer{proc: proc{w: w, id: history.Process{Role: history.RoleLoadBalancer}}}
	w.balancer.boot = func(ready func()) { w.k.After(leastPluginBoot, ready) }
	w.balancer.gone = func() {
		for _, c := range slices.Clone(w.conns) {
			if c.through == &w.balancer.proc {
				c.fail(errReset)
			}
		}
	}
	w.front = newLink(w, history.RoleAggregator, history.RoleLoadBalancer, "")
	var err error
	w.kms, err = newKMS(w)
	return w, err
}

// record adds an event. What is about a further API server says so.
func (w *world) record(source string, payload any) {
	if w.apiServer != "" {
		source, payload = w.logName(source), history.Of{APIServer: w.apiServer, Payload: payload}
	}
	w.log.Record(w.k.Now(), source, payload)
}

// logName is what a log is called among those of all API servers.
func (w *world) logName(name string) string {
	if w.apiServer == "" {
		return name
	}
	return w.apiServer + "/" + name
}

// uid is a new one for an envelope operation.
func (w *world) uid() string {
	r := w.k.Rand()
	return w.hooks.uid(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()>>16, r.Uint32()>>20, r.Uint32()>>20, r.Uint64()>>16))
}
