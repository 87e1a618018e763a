package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// EnvControl names the control API's endpoint where --control is not given.
const EnvControl = "KMSHARNESS_PLUGIN_CONTROL"

// requestTimeout bounds one request to the control API; the plugin answers at once or not at all.
const requestTimeout = 10 * time.Second

// target is the plugin that a verb drives.
type target struct{ endpoint, tokenFile string }

// NewPluginCommand has the verbs that drive a plugin which runs.
func NewPluginCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Watch a fake plugin and make it misbehave",
		Long: `Drive a fake plugin through its control API. Its endpoint is --control, or ` + EnvControl + `.
kmsharness up prints the endpoints of an environment's plugins.`,
	}
	cmd.AddCommand(verbs(&t)...)
	t.register(cmd)
	return cmd
}

func (t *target) register(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&t.endpoint, "control", os.Getenv(EnvControl), "endpoint of the control API: unix:///PATH, unix:///@NAME or tcp://HOST:PORT (default: $"+EnvControl+")")
	cmd.PersistentFlags().StringVar(&t.tokenFile, "control-token-file", "", "file with the control API's bearer token")
}

// verbs are the commands themselves, for a program that has them beside others.
func verbs(t *target) []*cobra.Command {
	return []*cobra.Command{t.status(), t.inject(), t.release(), t.rotate(), t.notice(), t.lag(), t.profile(), t.journal(), t.keys(), t.faults(), NewCatalogueCommand(), NewProfilesCommand(), kmsCommand()}
}

// do connects, asks and closes.
func (t *target) do(cmd *cobra.Command, f func(context.Context, *client.Client) error) error {
	if t.endpoint == "" {
		return errors.New("--control is missing: expected the endpoint of the plugin's control API, or " + EnvControl)
	}
	token, err := readToken(t.tokenFile)
	if err != nil {
		return err
	}
	c, err := client.New(t.endpoint, token)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	defer c.Close()
	return f(cmd.Context(), c)
}

// ask is do with a deadline, for everything but streams; the answer is printed as JSON.
func (t *target) ask(cmd *cobra.Command, f func(context.Context, *client.Client) (any, error)) error {
	return t.do(cmd, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		answer, err := f(ctx, c)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), answer)
	})
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (t *target) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the plugin, its KEK and the faults in force", Args: cobra.NoArgs,
		Example: "  kmsharness plugin status --control unix:///run/control-1.sock",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Status(ctx) })
		},
	}
}

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

func (t *target) faults() *cobra.Command {
	return &cobra.Command{
		Use: "faults", Short: "List the faults in force", Args: cobra.NoArgs, Example: "  kmsharness plugin faults",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) { return c.Faults(ctx) })
		},
	}
}

// NewCatalogueCommand needs no plugin: it is what this program knows.
func NewCatalogueCommand() *cobra.Command {
	return &cobra.Command{
		Use: "catalogue [FAULT]", Short: "List every fault, or the parameters of one", Args: cobra.MaximumNArgs(1),
		Example: "  kmsharness plugin catalogue\n  kmsharness plugin catalogue delay",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printFault(cmd.OutOrStdout(), args[0])
			}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "FAULT\tWHAT IT DOES")
			for _, d := range fault.Catalogue() {
				fmt.Fprintf(tab, "%s\t%s\n", d.Name, d.Summary)
			}
			return tab.Flush()
		},
	}
}

func printFault(w io.Writer, name string) error {
	d, err := fault.Lookup(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", d.Name, d.Summary)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "PARAMETER\tKIND\tDEFAULT\tMEANING")
	for _, p := range append(append([]fault.Param{}, d.Params...), d.Bounds()...) {
		def := ""
		if p.Default != nil {
			def = fmt.Sprint(p.Default)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.Name, p.Kind, def, p.Summary)
	}
	return tab.Flush()
}
