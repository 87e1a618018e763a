package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

// imageTrial is how long a kubelet may take to start a container, or to say that it cannot: it tries twice, 10 s apart.
const imageTrial = time.Minute

// checkLimit bounds a pre-flight check.
func (p *pods) checkLimit() time.Duration {
	if p.installer == nil {
		return operated.Check
	}
	return imageTrial + operated.Check
}

// Check implements operator.Executor. It takes checkLimit at most.
func (p inPlace) Check(ctx context.Context, c config.Plugin, hash string) core.Preflight {
	if err := p.tryImage(ctx, c.Image); err != nil {
		return core.Preflight{Hash: hash, Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, operated.Check)
	defer cancel()
	client, end, err := p.try(ctx, c)
	if err != nil {
		return core.Preflight{Hash: hash, Message: err.Error()}
	}
	defer end()
	return preflight.Check(ctx, client, hash, preflight.Options{Time: preflight.Real(clock.RealClock{}), Random: rand.Reader, UID: uuid.NewString,
		Pause: exchange.Pause, Call: exchange.CheckCall(operated.Check)})
}

// tryImage returns why a plugin with an image does not start anywhere, in the words of a kubelet: of a real one where there is one, which then runs
// it in a pod.
func (p inPlace) tryImage(ctx context.Context, image string) error {
	if p.installer == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if why := p.images.CannotStart("", image); why != "" {
			return errors.New(why)
		}
		return nil
	}
	if !slices.Contains(operated.NamedImages(p.e.scenario), image) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, imageTrial)
	defer cancel()
	fault := p.fault("", image)
	for _, n := range p.e.serving() {
		if p.fault(n.Name, image) != fault {
			continue
		}
		pod, err := p.installer.roller.TryImage(ctx, n, PluginImage{image, fault})
		if err != nil {
			return fmt.Errorf("try the image %s on %s: %w", image, n.Name, err)
		}
		p.recordWaiting(n, pod, 0)
		if len(pod.Waiting) > 0 {
			return errors.New(pod.Waiting[0].Reason)
		}
		return nil
	}
	return fmt.Errorf("try the image %s: no API server runs on a node without a fault of its own", image)
}

// try starts a plugin process of its own, on no node, at a socket of its own; end stops it.
func (p inPlace) try(ctx context.Context, c config.Plugin) (kmsapi.KeyManagementServiceClient, func(), error) {
	p.mu.Lock()
	p.tries++
	keyID := fmt.Sprintf("try-%d", p.tries)
	p.mu.Unlock()
	if err := p.introduce(ctx, Preflight, keyID, c); err != nil {
		return nil, nil, err
	}
	g, err := p.e.controlPlane.TryPlugin(ctx, keyID)
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StartTimeout)
		defer cancel()
		_ = g.close(ctx) // what does not end is ended with the plane
	}
	if err := p.e.recorder.followPlugin(g, tail.FromStart); err != nil {
		end()
		return nil, nil, err
	}
	p.e.changes.recordReady(&g.Target)
	conn, err := grpc.NewClient("unix://"+g.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("try plugin %s: %w", keyID, err)
	}
	return kmsapi.NewKeyManagementServiceClient(conn), func() { conn.Close(); end() }, nil
}

// Rewrite implements operator.Executor, and looks at the outcome in etcd. All API servers encrypt alike by now.
func (p inPlace) Rewrite(ctx context.Context, _ uint64) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := p.e.data.rewriteAll(ctx, p.e.objects.Resource, inHaste()); err != nil {
		return fmt.Errorf("migrate the data: %w", err)
	}
	p.e.record(&history.Encryption{State: history.EncryptionMigrated, Providers: p.newest().providers})
	return p.e.data.takeInventory(ctx)
}
