package live

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

// trials start plugins for checks of what they are configured with.
type trials struct {
	e      *apiServer
	logIns *pluginLogIns
	count  atomic.Int64
}

// checkTimeout bounds a pre-flight check: long enough for a plugin to start on a busy machine.
const checkTimeout = 8 * time.Second

// Check implements operand.Pods. It takes checkTimeout at most.
func (p *trials) Check(ctx context.Context, c config.Plugin) core.Preflight {
	if why := operand.CannotStart("", c.Image); why != "" {
		return core.Preflight{Message: why}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	client, end, err := p.try(ctx, c)
	if err != nil {
		return core.Preflight{Message: err.Error()}
	}
	defer end()
	return preflight.Check(ctx, client, "", preflight.Options{Clock: clock.RealClock{}, Random: rand.Reader, UID: uuid.NewString,
		Pause: lifecycle.Pause, Call: checkTimeout / 3})
}

// try starts a plugin process of its own, on no node, at a socket of its own; end stops it.
func (p *trials) try(ctx context.Context, c config.Plugin) (kmsapi.KeyManagementServiceClient, func(), error) {
	keyID := fmt.Sprintf("try-%d", p.count.Add(1))
	if err := p.logIns.introduce(ctx, Preflight, keyID, c); err != nil {
		return nil, nil, err
	}
	g, err := p.e.Plugins.TryPlugin(ctx, keyID)
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
	conn, err := grpc.NewClient("passthrough:///"+g.Socket, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()), dialer(p.e.traits.Host, "unix"))
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("try plugin %s: %w", keyID, err)
	}
	return kmsapi.NewKeyManagementServiceClient(conn), func() { conn.Close(); end() }, nil
}
