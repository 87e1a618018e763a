package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
)

func (t *target) inject() *cobra.Command {
	return &cobra.Command{
		Use: "inject FAULT [k=v...]", Short: "Put a fault in force", Args: cobra.MinimumNArgs(1),
		Long: "Put a fault in force until it is released, or until its bound (for=, count=) is over. `catalogue` lists faults and parameters.",
		Example: `  kmsharness plugin inject hang method=Status for=30s
  kmsharness plugin inject grpc-status code=PermissionDenied text='access denied' count=3
  kmsharness plugin inject delay by=200ms probability=0.5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := parseParams(args[1:])
			if err != nil {
				return err
			}
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Inject(ctx, args[0], params) })
		},
	}
}

// parseParams reads k=v; the values stay texts, which the fault catalogue converts.
func parseParams(args []string) (map[string]any, error) {
	params := make(map[string]any, len(args))
	for _, arg := range args {
		k, v, ok := strings.Cut(arg, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("parameter %q: expected NAME=VALUE", arg)
		}
		if _, twice := params[k]; twice {
			return nil, fmt.Errorf("parameter %q: stands twice", k)
		}
		params[k] = v
	}
	return params, nil
}

func (t *target) release() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "release [ID]", Short: "End one fault, the faults of a name, or all", Args: cobra.MaximumNArgs(1),
		Example: "  kmsharness plugin release\n  kmsharness plugin release --name hang\n  kmsharness plugin release f-3",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && name != "" {
				return errors.New("an ID and --name: expected one of them")
			}
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) {
				if len(args) == 1 {
					return control.Released{Released: args}, c.Release(ctx, args[0])
				}
				return released(ctx, c, name)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "end every fault of this name")
	return cmd
}

func released(ctx context.Context, c *client.Client, name string) (any, error) {
	var ids []string
	var err error
	if name != "" {
		ids, err = c.ReleaseName(ctx, name)
	} else {
		ids, err = c.ReleaseAll(ctx)
	}
	return control.Released{Released: ids}, err
}

func (t *target) faults() *cobra.Command {
	return &cobra.Command{
		Use: "faults", Short: "List the faults in force", Args: cobra.NoArgs, Example: "  kmsharness plugin faults",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Faults(ctx) })
		},
	}
}
