package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// EnvRemoteKMS names the remote KMS's endpoint where --remote is not given.
const EnvRemoteKMS = "KMSHARNESS_REMOTE_KMS"

// kms is the remote KMS that its verbs administer.
type kms struct{ endpoint string }

// kmsCommand has the verbs that administer the remote KMS behind the plugins.
func kmsCommand() *cobra.Command {
	var k kms
	cmd := &cobra.Command{
		Use: "kms", Short: "Administer the remote KMS that the plugins share",
		Long: "Administer the remote KMS (fake-kms-plugin remote). Its endpoint is --remote, or " + EnvRemoteKMS + ".",
		Example: `  kmsharness plugin kms keys --remote unix:///run/kms.sock
  kmsharness plugin kms rule 'cp-1/*' --cut-off hang`,
	}
	cmd.PersistentFlags().StringVar(&k.endpoint, "remote", os.Getenv(EnvRemoteKMS), "endpoint of the remote KMS, unix:///PATH (default: $"+EnvRemoteKMS+")")
	cmd.AddCommand(k.keys(), k.rotate(), k.state(), k.rules(), k.rule(), k.unrule(), k.journal())
	return cmd
}

func (k *kms) do(cmd *cobra.Command, f func(context.Context, *remotekms.Client) error) error {
	if k.endpoint == "" {
		return fmt.Errorf("--remote is missing: expected the endpoint of the remote KMS, or %s", EnvRemoteKMS)
	}
	at, err := endpoint.Parse(k.endpoint)
	if err != nil {
		return fmt.Errorf("--remote: %w", err)
	}
	c := remotekms.NewClient(at)
	defer c.Close()
	return f(cmd.Context(), c)
}

func (k *kms) ask(cmd *cobra.Command, f func(context.Context, *remotekms.Client) (any, error)) error {
	return ask(cmd, k.do, f)
}

func (k *kms) keys() *cobra.Command {
	return &cobra.Command{
		Use: "keys", Short: "List every key with its KEKs", Args: cobra.NoArgs, Example: "  kmsharness plugin kms keys",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.ask(cmd, func(ctx context.Context, c *remotekms.Client) (any, error) { return c.Keys(ctx) })
		},
	}
}

func (k *kms) rotate() *cobra.Command {
	var reuse int
	cmd := &cobra.Command{
		Use: "rotate KEY", Short: "Make a new KEK of a key current", Args: cobra.ExactArgs(1), Example: "  kmsharness plugin kms rotate key-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.ask(cmd, func(ctx context.Context, c *remotekms.Client) (any, error) { return c.Rotate(ctx, args[0], reuse) })
		},
	}
	cmd.Flags().IntVar(&reuse, "reuse", 0, "make this old version current again instead")
	return cmd
}

func (k *kms) state() *cobra.Command {
	var deny []string
	cmd := &cobra.Command{
		Use: "state KEY VERSION enabled|disabled|deleted", Short: "Say what a KEK may be used for", Args: cobra.ExactArgs(3),
		Example: "  kmsharness plugin kms state key-1 1 disabled\n  kmsharness plugin kms state key-1 1 enabled --deny decrypt",
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := strconv.Atoi(args[1])
			if err != nil {
				return fmt.Errorf("VERSION %q: expected a number", args[1])
			}
			var denied []keyring.Operation
			for _, op := range deny {
				denied = append(denied, keyring.Operation(op))
			}
			return k.ask(cmd, func(ctx context.Context, c *remotekms.Client) (any, error) {
				return c.SetState(ctx, args[0], version, keyring.State(args[2]), denied)
			})
		},
	}
	cmd.Flags().StringSliceVar(&deny, "deny", nil, "operations to refuse: encrypt, decrypt")
	return cmd
}

func (k *kms) rules() *cobra.Command {
	return &cobra.Command{
		Use: "rules", Short: "List how callers are treated", Args: cobra.NoArgs, Example: "  kmsharness plugin kms rules",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.ask(cmd, func(ctx context.Context, c *remotekms.Client) (any, error) { return c.Rules(ctx) })
		},
	}
}

func (k *kms) rule() *cobra.Command {
	var r remotekms.Rule
	var latency time.Duration
	cmd := &cobra.Command{
		Use: "rule CALLER", Short: "Cut callers off, slow them down or deny them; CALLER is a pattern over NODE/KEYID", Args: cobra.ExactArgs(1),
		Example: "  kmsharness plugin kms rule 'cp-1/*' --cut-off refuse\n  kmsharness plugin kms rule '*/*' --latency 200ms\n  kmsharness plugin kms rule cp-1/2 --deny",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Caller, r.Latency = args[0], remotekms.Duration(latency)
			return k.ask(cmd, func(ctx context.Context, c *remotekms.Client) (any, error) { return r, c.SetRule(ctx, r) })
		},
	}
	cmd.Flags().StringVar(&r.CutOff, "cut-off", "", "refuse (the connection breaks) or hang (no answer)")
	cmd.Flags().DurationVar(&latency, "latency", 0, "added to every answer")
	cmd.Flags().BoolVar(&r.Deny, "deny", false, "answer access denied to every Encrypt and Decrypt")
	return cmd
}

func (k *kms) unrule() *cobra.Command {
	return &cobra.Command{
		Use: "unrule CALLER", Short: "End the rule for a pattern", Args: cobra.ExactArgs(1), Example: "  kmsharness plugin kms unrule 'cp-1/*'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.do(cmd, func(ctx context.Context, c *remotekms.Client) error { return c.DeleteRule(ctx, args[0]) })
		},
	}
}

func (k *kms) journal() *cobra.Command {
	var q journal.Query
	cmd := &cobra.Command{
		Use: "journal", Short: "Print the operations of the KMS as JSON lines", Args: cobra.NoArgs,
		Example: "  kmsharness plugin kms journal --follow",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.do(cmd, func(ctx context.Context, c *remotekms.Client) error {
				lines, err := c.Journal(ctx, q)
				if err != nil {
					return err
				}
				defer lines.Close()
				if _, err = io.Copy(cmd.OutOrStdout(), lines); ctx.Err() != nil {
					return nil
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on with new operations")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most so many; 0 is all that is in memory")
	cmd.Flags().Uint64Var(&q.After, "after", 0, "only operations with a higher number")
	return cmd
}
