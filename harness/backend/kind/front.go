package kind

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
)

const (
	// frontProgram adds Alt-Svc to the responses of the API server behind it. It is a unit of the node's systemd, so that it outlives the API
	// server's pod and starts again with the node.
	frontProgram = "kmsharness-front"
	// portFront is where it listens on every node.
	portFront = "6444"
	frontUnit = "/etc/systemd/system/" + frontProgram + ".service"
)

// programsOf are those of this project that nodes run outside pods, or below which their pods run.
func programsOf(s pool.Shape) []string {
	all := []string{supervisorProgram, proxyProgram}
	if s.Advertises {
		all = append(all, frontProgram)
	}
	return all
}

// frontService is the unit of systemd.
func frontService() string {
	return `[Unit]
Description=Alt-Svc in the responses of kube-apiserver
StartLimitIntervalSec=0
[Service]
ExecStart=` + filepath.Join(inNodeShared, frontProgram) + ` --listen=:` + portFront + ` --upstream=` + ownAPIServer + `
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`
}

// startFronts puts a front before the API server of every node, and makes the load balancer lead there, if the API servers are to send Alt-Svc.
func (p *controlPlane) startFronts(ctx context.Context, nodes []*cluster.Node) error {
	if !p.shape.Advertises {
		return nil
	}
	start := func(ctx context.Context, n *cluster.Node) error { return startFront(ctx, p.container(n.Name)) }
	if err := cluster.EachNode(ctx, nodes, start); err != nil {
		return err
	}
	return p.lb.lead(ctx, membership{p}.serving())
}

// startFront puts a front before the API server of a node.
func startFront(ctx context.Context, c container) error {
	if err := c.write(ctx, frontUnit, frontUnit+".next", []byte(frontService())); err != nil {
		return err
	}
	if _, err := c.exec(ctx, "sh", "-c", "systemctl daemon-reload && systemctl enable --now "+frontProgram); err != nil {
		return fmt.Errorf("start %s: %w", frontProgram, err)
	}
	return nil
}
