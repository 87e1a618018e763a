package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

func (t *target) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the plugin, its KEK and the faults in force", Args: cobra.NoArgs,
		Example: "  kmsharness plugin status --control unix:///run/control-1.sock",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Status(ctx) })
		},
	}
}

func (t *target) rotate() *cobra.Command {
	var req control.RotateRequest
	cmd := &cobra.Command{
		Use: "rotate", Short: "Rotate the key in the remote KMS, for every plugin that uses it", Args: cobra.NoArgs,
		Example: "  kmsharness plugin rotate\n  kmsharness plugin rotate --reuse 1   # bring back the first KEK under its old id, which no KMS should do",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Rotate(ctx, req) })
		},
	}
	cmd.Flags().IntVar(&req.Reuse, "reuse", 0, "make this old version current again instead")
	cmd.Flags().BoolVar(&req.Notice, "notice", false, "this plugin notices at once, whatever its lag")
	return cmd
}

func (t *target) notice() *cobra.Command {
	return &cobra.Command{
		Use: "notice", Short: "Make the plugin notice a rotation now", Args: cobra.NoArgs, Example: "  kmsharness plugin notice",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Notice(ctx) })
		},
	}
}

func (t *target) lag() *cobra.Command {
	return &cobra.Command{
		Use: "lag DURATION", Short: "Say how late the plugin notices a rotation from now on", Args: cobra.ExactArgs(1), Example: "  kmsharness plugin lag 30s",
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := time.ParseDuration(args[0])
			if err != nil {
				return fmt.Errorf("lag %q: expected a duration such as 30s", args[0])
			}
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) {
				return control.NoticeLag{Lag: d.String()}, c.SetNoticeLag(ctx, d)
			})
		},
	}
}

func (t *target) journal() *cobra.Command {
	var q journal.Query
	var method string
	cmd := &cobra.Command{
		Use: "journal", Short: "Print the plugin's calls as JSON lines", Args: cobra.NoArgs,
		Example: "  kmsharness plugin journal --follow --method Status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.do(cmd, func(ctx context.Context, c *client.Client) error {
				lines, err := c.Journal(ctx, q, method)
				if err != nil {
					return err
				}
				defer lines.Close()
				_, err = io.Copy(cmd.OutOrStdout(), lines)
				if ctx.Err() != nil {
					return nil // Ctrl-C is how one stops following
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on with new calls")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most so many; 0 is all that is in memory")
	cmd.Flags().Uint64Var(&q.After, "after", 0, "only calls with a higher number")
	cmd.Flags().StringVar(&method, "method", "", "Status, Encrypt or Decrypt; empty is all")
	return cmd
}

func (t *target) keys() *cobra.Command {
	return &cobra.Command{
		Use: "keys", Short: "Show what the plugin knows of its remote key", Args: cobra.NoArgs, Example: "  kmsharness plugin keys",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Keys(ctx) })
		},
	}
}
