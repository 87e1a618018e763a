package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/fakeplugin/upstream"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Instance is a plugin under test on a node: the values of its placeholders.
type Instance map[string]string

// PluginState and PluginShared are the folders below which the plugins under test have their own.
const PluginState, PluginShared = "plugin-state", "plugin-shared"

// NewInstance gives the plugin of an identity its socket in a folder, and its other folders: one below a folder of its own, and one below a
// folder of all nodes.
func NewInstance(p history.Process, sockets, own, all string) (Instance, error) {
	at, err := endpoint.ParseUnix("unix://" + filepath.Join(sockets, "real-"+p.KeyID+".sock"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", NameOf(p), err)
	}
	state, shared := p.Node+"-"+p.KeyID, p.KeyID
	if p.APIServer != "" {
		state, shared = p.APIServer+"-"+state, p.APIServer+"-"+shared
	}
	return Instance{
		undertest.PlaceSocket: at.Address, undertest.PlaceEndpoint: at.String(), undertest.PlaceNode: p.Node, undertest.PlaceKeyID: p.KeyID,
		undertest.PlaceState: filepath.Join(own, PluginState, state), undertest.PlaceShared: filepath.Join(all, PluginShared, shared),
	}, nil
}

// MakeFolders makes the folders of an instance whose paths are those of this machine. No other user can enter them.
func (i Instance) MakeFolders() error {
	var errs []error
	for _, dir := range []string{filepath.Dir(i[undertest.PlaceSocket]), i[undertest.PlaceState], i[undertest.PlaceShared]} {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	return errors.Join(errs...)
}

// probeTimeout bounds one question whether a plugin answers.
const probeTimeout = 2 * time.Second

// Answers is nil if an instance whose paths are those of this machine answers Status, whatever the answer.
func (i Instance) Answers(ctx context.Context) error {
	at := i[undertest.PlaceEndpoint]
	to, err := endpoint.ParseUnix(at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err = upstream.New(host.Host{}, to).Notice(ctx)
	if errors.Is(err, server.ErrGone) || ctx.Err() != nil {
		return fmt.Errorf("it does not answer Status at %s: %w", at, err)
	}
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return nil // it is up, and cannot use its KMS
	}
	return err
}
