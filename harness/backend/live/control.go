package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	controlclient "github.com/kmsharness/kmsharness/fakeplugin/control/client"
)

// control is the control API of one plugin.
type control struct{ *controlclient.Client }

func newControl(socket string) (*control, error) {
	c, err := controlclient.New("unix://"+socket, "")
	if err != nil {
		return nil, fmt.Errorf("control API of a plugin: %w", err)
	}
	return &control{c}, nil
}

// inject puts a fault in force; params are the scenario's, with durations resolved.
func (c *control) inject(ctx context.Context, name, method string, params map[string]any) error {
	written := maps.Clone(params)
	if written == nil {
		written = map[string]any{}
	}
	for k, v := range written {
		if d, ok := v.(time.Duration); ok {
			written[k] = d.String()
		}
	}
	if method != "" {
		written["method"] = method
	}
	_, err := c.Inject(ctx, name, written)
	return err
}

// release ends the faults of a name and on a method; empty means any.
func (c *control) release(ctx context.Context, name, method string) error {
	if method == "" || method == "all" {
		if name == "" {
			return c.releaseAll(ctx)
		}
		_, err := c.ReleaseName(ctx, name)
		return err
	}
	faults, err := c.Faults(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range faults {
		if (name == "" || f.Name == name) && strikes(f, method) {
			errs = append(errs, c.Release(ctx, f.ID))
		}
	}
	return errors.Join(errs...)
}

// strikes says whether a fault has one of the methods (joined with +).
func strikes(f controlclient.Fault, methods string) bool {
	of := "+" + fmt.Sprint(f.Params["method"]) + "+"
	for _, m := range strings.Split(methods, "+") {
		if of == "+all+" || strings.Contains(of, "+"+m+"+") {
			return true
		}
	}
	return false
}

func (c *control) releaseAll(ctx context.Context) error {
	_, err := c.ReleaseAll(ctx)
	return err
}
