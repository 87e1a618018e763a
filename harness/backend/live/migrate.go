package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// migrationRetry is how long an object waits that could not be written, because an API server has just been killed, say.
const migrationRetry = 100 * time.Millisecond

// pace is how fast objects are written anew.
type pace struct {
	// writers is how many objects are written at once.
	writers int
	// limit is for all of them. None: as fast as API servers answer.
	limit flowcontrol.RateLimiter
}

// inHaste is the pace of a migration that is not under test.
func inHaste() pace { return pace{writers: 8} }

// asInOpenShift is the pace of OpenShift's kube-storage-version-migrator: one object after another, with client-go's default of five
// requests a second. A hundred Secrets take 20 s there, in which pods can change.
func asInOpenShift() pace {
	return pace{writers: 1, limit: flowcontrol.NewTokenBucketRateLimiter(rest.DefaultQPS, rest.DefaultBurst)}
}

// place says where an object is, and which version of it was seen.
type place struct {
	namespace, name string
	uid             types.UID
	version         string
}

// migrator writes objects of an API server anew, so that they lie under its newest key.
type migrator struct{ e *apiServer }

// migrate writes every secret anew, as a storage migration does: by a patch that changes nothing. An API server answers
// it without a write to etcd if the stored bytes are as it would write them now, and writes them if they are stale
// (another key). All API servers encrypt alike by now, so what is created from here on needs no migration.
func (m migrator) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := m.rewriteAll(ctx, m.e.Encrypted.Resource, inHaste()); err != nil {
		return fmt.Errorf("migrate the data: %w", err)
	}
	m.e.record(&history.Encryption{State: history.EncryptionMigrated, Providers: m.e.encrypting.current().Providers.Names()})
	return nil
}

func (m migrator) rewriteAll(ctx context.Context, resource schema.GroupVersionResource, at pace) error {
	all, err := m.listAll(ctx, resource)
	if err != nil {
		return err
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(at.writers)
	for i, p := range all {
		if skip := m.e.opts.Skip; skip != nil && skip(m.e.Name, p.name) {
			continue
		}
		if at.limit != nil {
			if err := at.limit.Wait(writing); err != nil {
				group.Go(func() error {
					return fmt.Errorf("wait until %s/%s/%s may be written: %w", resource.GroupResource(), p.namespace, p.name, err)
				})
				break
			}
		}
		group.Go(func() error { return m.rewrite(writing, resource, i, p) })
	}
	return group.Wait()
}

// listAll lists every object of a resource, until an API server answers.
func (m migrator) listAll(ctx context.Context, resource schema.GroupVersionResource) (all []place, err error) {
	for try := 0; ; try++ {
		var list *metav1.PartialObjectMetadataList
		err := m.e.through(ctx, try, func(ctx context.Context, c *cluster.Client) (err error) {
			list, err = c.Metadata.Resource(resource).List(ctx, metav1.ListOptions{})
			return err
		})
		switch {
		case err == nil:
			for _, o := range list.Items {
				all = append(all, place{o.Namespace, o.Name, o.UID, o.ResourceVersion})
			}
			return all, nil
		case apierrors.IsNotFound(err) || poll.Pause(ctx, migrationRetry) != nil: // not found: the version is not served
			return nil, fmt.Errorf("list the %s: %w", resource.GroupResource(), err)
		}
	}
}

// rewrite writes one object anew. One that has changed meanwhile is read again, one that has gone needs nothing, and one that an
// API server could not write waits a moment for the next. One that may not be written fails.
func (m migrator) rewrite(ctx context.Context, resource schema.GroupVersionResource, try int, p place) error {
	for ; ; try++ {
		err := m.e.through(ctx, try, func(ctx context.Context, c *cluster.Client) error { return touch(ctx, c, resource, p) })
		if apierrors.IsConflict(err) {
			err = m.e.through(ctx, try, func(ctx context.Context, c *cluster.Client) error { return readVersion(ctx, c, resource, &p) })
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err) || poll.Pause(ctx, migrationRetry) != nil:
			return fmt.Errorf("%s/%s/%s: %w", resource.GroupResource(), p.namespace, p.name, err)
		}
	}
}

// touch is a write without a change. With the UID and the resourceVersion that were seen it cannot bring back an object
// that was deleted, or overwrite one that changed: those answer 409.
func touch(ctx context.Context, c *cluster.Client, r schema.GroupVersionResource, p place) error {
	body, err := json.Marshal(cluster.Object{"metadata": cluster.Object{"uid": p.uid, "resourceVersion": p.version}})
	if err != nil {
		return err
	}
	_, err = c.Metadata.Resource(r).Namespace(p.namespace).Patch(ctx, p.name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// see reads the UID and the resourceVersion that an object has now.
func readVersion(ctx context.Context, c *cluster.Client, r schema.GroupVersionResource, p *place) error {
	o, err := c.Metadata.Resource(r).Namespace(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err == nil {
		p.uid, p.version = o.UID, o.ResourceVersion
	}
	return err
}

// persist makes a request until it succeeds, through one API server after another: any of them may just have been killed.
func (e *apiServer) persist(ctx context.Context, ask func(context.Context, *cluster.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, persistTimeout)
	defer cancel()
	for try := 0; ; try++ {
		err := e.through(ctx, try, ask)
		if err == nil || poll.Pause(ctx, migrationRetry) != nil {
			return err
		}
	}
}

// through makes a request through one of the API servers that run, another one at each try.
func (e *apiServer) through(ctx context.Context, try int, ask func(context.Context, *cluster.Client) error) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return errors.New("no API server runs")
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	return ask(ctx, nodes[try%len(nodes)].Admin)
}
