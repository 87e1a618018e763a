package live

import (
	"context"
	"errors"
	"fmt"

	controlclient "github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/host"
)

// control is the control API of one plugin.
type control struct{ *controlclient.Client }

func newControl(h host.Host, socket string) (*control, error) {
	c, err := controlclient.New(h, "unix://"+socket, "")
	if err != nil {
		return nil, fmt.Errorf("control API of a plugin: %w", err)
	}
	return &control{c}, nil
}

// inject puts a fault in force. The plugin knows its parameters, since it may be a fault of another module.
func (c *control) inject(ctx context.Context, a *scenario.Inject) error {
	_, err := c.Inject(ctx, a.Fault, a.FaultParams())
	return err
}

// release ends the faults of a name that strike at one of the methods; an empty name means any, no methods mean all.
func (c *control) release(ctx context.Context, name string, methods []fault.Method) error {
	switch {
	case len(methods) > 0:
	case name == "":
		return c.releaseAll(ctx)
	default:
		_, err := c.ReleaseName(ctx, name)
		return err
	}
	faults, err := c.Faults(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range faults {
		if (name == "" || f.Fault.Name == name) && f.Fault.Strikes(methods) {
			errs = append(errs, c.Release(ctx, f.ID))
		}
	}
	return errors.Join(errs...)
}

func (c *control) releaseAll(ctx context.Context) error {
	_, err := c.ReleaseAll(ctx)
	return err
}
