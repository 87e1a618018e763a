package live

import (
	"context"
	"crypto/rand"
	"fmt"

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

// Check implements operator.Executor. It takes operated.Check at most.
func (p inPlace) Check(ctx context.Context, c config.Plugin, hash string) core.Preflight {
	if why := operated.CannotStart("", c.Image); why != "" {
		return core.Preflight{Hash: hash, Message: why}
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
	conn, err := grpc.NewClient("passthrough:///"+g.Socket, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()), dialer(p.e.controlPlane, "unix"))
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
