package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// EnvControl names the control API's endpoint where --control is not given.
const EnvControl = "KMSHARNESS_PLUGIN_CONTROL"

// requestTimeout bounds one request to a control API; the server answers at once or not at all.
const requestTimeout = 10 * time.Second

// connect makes a client of a control API. It does not dial yet.
type connect[C interface{ Close() }] func() (C, error)

// ask sends a request and returns the answer, which is printed as JSON; nil prints nothing.
type ask[C any] func(ctx context.Context, c C, args []string) (any, error)

// verb is a command that sends one request. What args checks is found wrong before anything is connected.
func (to connect[C]) verb(use, short, example string, args cobra.PositionalArgs, do ask[C]) *cobra.Command {
	run := func(cmd *cobra.Command, args []string) error {
		c, err := to()
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
		defer cancel()
		answer, err := do(ctx, c, args)
		if err != nil || answer == nil {
			return err
		}
		return printer.WriteJSON(cmd.OutOrStdout(), answer)
	}
	return &cobra.Command{Use: use, Short: short, Example: example, Args: args, RunE: run}
}

// journal is a command that streams a journal; entries is what its entries are called.
func (to connect[C]) journal(short, example, entries string, open func(context.Context, C, journal.Query) (io.ReadCloser, error)) *cobra.Command {
	var q journal.Query
	cmd := &cobra.Command{Use: "journal", Short: short, Example: example, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := to()
		if err != nil {
			return err
		}
		defer c.Close()
		lines, err := open(cmd.Context(), c, q)
		if err != nil {
			return err
		}
		defer lines.Close()
		if _, err = io.Copy(cmd.OutOrStdout(), lines); cmd.Context().Err() != nil {
			return nil // Ctrl-C is how one stops following
		}
		return err
	}
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on with new "+entries)
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most so many; 0 is all that is in memory")
	cmd.Flags().Uint64Var(&q.After, "after", 0, "only "+entries+" with a higher number")
	return cmd
}

// target is the plugin that a verb drives.
type target struct{ endpoint, tokenFile string }

// NewPluginCommand has the verbs that drive a plugin which runs.
func NewPluginCommand(faults fault.Catalogue) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Watch a fake plugin and make it misbehave",
		Long: `Drive a fake plugin through its control API. Its endpoint is --control, or ` + EnvControl + `.
kmsharness up prints the endpoints of an environment's plugins. The program fake-kms-plugin has more verbs.`,
	}
	to := connect[*client.Client](t.connect)
	cmd.AddCommand(driving(to, faults)...)
	t.register(cmd)
	return cmd
}

func (t *target) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&t.endpoint, "control", os.Getenv(EnvControl),
		"endpoint of the control API: unix:///PATH, unix:///@NAME or tcp://HOST:PORT (default: $"+EnvControl+")")
	flags.StringVar(&t.tokenFile, "control-token-file", "", "file with the control API's bearer token")
}

func (t *target) connect() (*client.Client, error) {
	if t.endpoint == "" {
		return nil, errors.New("--control is missing: expected the endpoint of the plugin's control API, or " + EnvControl)
	}
	token, err := readToken(t.tokenFile)
	if err != nil {
		return nil, err
	}
	c, err := client.New(host.Host{}, t.endpoint, token)
	if err != nil {
		return nil, fmt.Errorf("--control: %w", err)
	}
	return c, nil
}

// driving are the verbs that somebody needs who watches a plugin and breaks it.
func driving(to connect[*client.Client], faults fault.Catalogue) []*cobra.Command {
	return []*cobra.Command{
		to.verb("status", "Show the plugin, its KEK and the faults in force", "  kmsharness plugin status --control unix:///run/control-1.sock",
			cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (any, error) { return c.Status(ctx) }),
		injectCommand(to, faults), releaseCommand(to), rotateCommand(to), journalCommand(to),
	}
}

// further are the other verbs of a plugin.
func further(to connect[*client.Client]) []*cobra.Command {
	return []*cobra.Command{
		to.verb("notice", "Make the plugin notice a rotation now", "  fake-kms-plugin notice",
			cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (any, error) { return c.Notice(ctx) }),
		lagCommand(to),
		to.verb("profile [NAME]", "Make the plugin stand for a provider, or for none",
			"  fake-kms-plugin profile aws\n  fake-kms-plugin inject provider-failure failure=credentials-expired\n  fake-kms-plugin profile",
			cobra.MaximumNArgs(1), func(ctx context.Context, c *client.Client, args []string) (any, error) {
				name := strings.Join(args, "")
				return control.Profile{Profile: name}, c.SetProfile(ctx, name)
			}),
		to.verb("keys", "Show what the plugin knows of its remote key", "  fake-kms-plugin keys",
			cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (any, error) { return c.Keys(ctx) }),
	}
}

func injectCommand(to connect[*client.Client], faults fault.Catalogue) *cobra.Command {
	var params map[string]any
	parse := func(_ *cobra.Command, args []string) (err error) {
		params, err = parseParams(args[1:])
		return err
	}
	cmd := to.verb("inject FAULT [k=v...]", "Put a fault in force", `  kmsharness plugin inject hang method=Status for=30s
  kmsharness plugin inject grpc-status code=PermissionDenied text='access denied' count=3
  kmsharness plugin inject delay by=200ms probability=0.5`,
		cobra.MatchAll(cobra.MinimumNArgs(1), parse), func(ctx context.Context, c *client.Client, args []string) (any, error) {
			return c.Inject(ctx, args[0], params)
		})
	cmd.ValidArgsFunction = completeFirst(faults.Names())
	cmd.Long = "Put a fault in force until it is released, or until its bound (for=, count=) is over. `kmsharness faults` lists faults and parameters."
	return cmd
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
			return nil, fmt.Errorf("parameter %q: occurs twice", k)
		}
		params[k] = v
	}
	return params, nil
}

func releaseCommand(to connect[*client.Client]) *cobra.Command {
	var name string
	valid := func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && name != "" {
			return errors.New("an ID and --name: expected one of them")
		}
		return nil
	}
	cmd := to.verb("release [ID]", "End one fault, the faults of a name, or all",
		"  kmsharness plugin release\n  kmsharness plugin release --name hang\n  kmsharness plugin release f-3",
		cobra.MatchAll(cobra.MaximumNArgs(1), valid), func(ctx context.Context, c *client.Client, ids []string) (_ any, err error) {
			switch {
			case len(ids) == 1:
				err = c.Release(ctx, ids[0])
			case name != "":
				ids, err = c.ReleaseName(ctx, name)
			default:
				ids, err = c.ReleaseAll(ctx)
			}
			return control.Released{Released: ids}, err
		})
	cmd.Flags().StringVar(&name, "name", "", "end every fault of this name")
	return cmd
}

func rotateCommand(to connect[*client.Client]) *cobra.Command {
	var req control.RotateRequest
	cmd := to.verb("rotate", "Rotate the key in the remote KMS, for every plugin that uses it", `  kmsharness plugin rotate
  kmsharness plugin rotate --reuse 1   # the first KEK again, which no KMS should do`,
		cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (any, error) { return c.Rotate(ctx, req) })
	cmd.Flags().IntVar(&req.Reuse, "reuse", 0, "make this old version current again instead")
	cmd.Flags().BoolVar(&req.Notice, "notice", false, "this plugin notices at once, whatever its lag")
	return cmd
}

func lagCommand(to connect[*client.Client]) *cobra.Command {
	var lag time.Duration
	parse := func(_ *cobra.Command, args []string) (err error) {
		if lag, err = time.ParseDuration(args[0]); err != nil {
			return fmt.Errorf("lag %q: expected a duration such as 30s", args[0])
		}
		return nil
	}
	return to.verb("lag DURATION", "Say how late the plugin notices a rotation from now on", "  fake-kms-plugin lag 30s",
		cobra.MatchAll(cobra.ExactArgs(1), parse), func(ctx context.Context, c *client.Client, _ []string) (any, error) {
			return control.NoticeLag{Lag: lag.String()}, c.SetNoticeLag(ctx, lag)
		})
}

func journalCommand(to connect[*client.Client]) *cobra.Command {
	var method string
	cmd := to.journal("Print the plugin's calls as JSON lines", "  kmsharness plugin journal --follow --method Status", "calls",
		func(ctx context.Context, c *client.Client, q journal.Query) (io.ReadCloser, error) {
			return c.Journal(ctx, q, method)
		})
	cmd.Flags().StringVar(&method, "method", "", "Status, Encrypt or Decrypt; empty is all")
	return cmd
}
