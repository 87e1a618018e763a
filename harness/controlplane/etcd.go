package controlplane

import (
	"context"
	"path/filepath"
)

// Etcd is the control plane's store. It keeps its port and data across restarts.
type Etcd struct {
	unit
	port  *port
	probe *prober
}

func newEtcd(opts Options) (*Etcd, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	return &Etcd{unit: unit{name: "etcd", opts: opts}, port: p, probe: newProber(nil, nil)}, nil
}

// Addr is where clients connect to (host:port), without TLS.
func (e *Etcd) Addr() string { return e.port.addr() }

// Start starts etcd unless it runs, and returns when it answers.
func (e *Etcd) Start(ctx context.Context) error {
	p, err := e.run(ctx, e.opts.Binaries.Etcd, e.args(), nil)
	if err != nil {
		return err
	}
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error {
		return e.probe.ask(ctx, "http://"+e.Addr()+"/health")
	})
}

// Restart stops etcd and starts it again with its data.
func (e *Etcd) Restart(ctx context.Context) error {
	if err := e.Stop(ctx); err != nil {
		return err
	}
	return e.Start(ctx)
}

// args make etcd fast instead of safe: its data need to survive a killed process, not a power failure, and the only
// member need not wait long before it elects itself. A heartbeat of 10 ms would cost 2 % of a processor for as long as etcd runs.
func (e *Etcd) args() []string {
	url := "http://" + e.Addr()
	return []string{
		"--name=etcd",
		"--data-dir=" + filepath.Join(e.opts.Dir, "etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--socket-reuse-port=true", // see port
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync=true",
		"--heartbeat-interval=50",
		"--election-timeout=250",
		"--log-level=warn",
	}
}

func (e *Etcd) close() error {
	e.probe.close()
	return e.port.free()
}
