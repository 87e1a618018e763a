package local

import (
	"context"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// aggregated is a further API server as a unit whose start waits for what can be had, as apiServer is.
type aggregated struct {
	*controlplane.Aggregated
	aggregatedServers *aggregatedServers
}

var _ live.Server = aggregated{}

// Start implements live.Unit.
func (s aggregated) Start(ctx context.Context) error {
	if err := s.Aggregated.Start(ctx, controlplane.Live); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, live.ReadyGrace)
	defer cancel()
	_ = s.Ready(ready) // with a dead plugin it never is
	return ctx.Err()
}

// Kill implements live.Unit.
func (s aggregated) Kill(context.Context) error { return s.Aggregated.Kill() }

// Resume implements live.Unit.
func (s aggregated) Resume(context.Context) error { return s.Aggregated.Resume() }

// Status implements live.Unit.
func (s aggregated) Status() live.Status { return live.StatusOf(s.Process()) }

// Ready implements live.Server.
func (s aggregated) Ready(ctx context.Context) error { return s.WaitReady(ctx, controlplane.Ready) }

// AuditLog implements live.Server: the requests that matter are in those of the kube-apiservers.
func (s aggregated) AuditLog() string { return "" }

// SetEncryption implements live.Server.
func (s aggregated) SetEncryption(told live.Encryption) (hash string, err error) {
	if err := s.Aggregated.SetEncryption(s.aggregatedServers.encryption(s.Name(), told)); err != nil {
		return "", err
	}
	return hashOfFile(s.EncryptionFile())
}

// RollOut implements live.Server: the sockets are in the pod's own folder.
func (s aggregated) RollOut(file []byte) (hash string, err error) {
	if err := s.Aggregated.SetEncryptionText(inDir(file, s.aggregatedServers.nodeDir(s.Name()))); err != nil {
		return "", err
	}
	return hashOfFile(s.EncryptionFile())
}
