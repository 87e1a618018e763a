package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/internal/host"
)

// EnvRemoteKMS names the remote KMS's endpoint where --remote is not given.
const EnvRemoteKMS = "KMSHARNESS_REMOTE_KMS"

// kmsCommand has the verbs that administer the remote KMS behind the plugins.
func kmsCommand() *cobra.Command {
	var remote, tokenFile string
	cmd := &cobra.Command{
		Use: "kms", Short: "Administer the remote KMS that the plugins share",
		Long: "Administer the remote KMS (fake-kms-plugin remote). Its endpoint is --remote, or " + EnvRemoteKMS + ".",
		Example: `  fake-kms-plugin kms keys --remote unix:///run/kms.sock
  fake-kms-plugin kms rule 'cp-1/*' --cut-off hang`,
	}
	cmd.PersistentFlags().StringVar(&remote, "remote", os.Getenv(EnvRemoteKMS),
		"endpoint of the remote KMS, unix:///PATH (default: $"+EnvRemoteKMS+")")
	remoteTokenFlag(cmd.PersistentFlags(), &tokenFile)
	to := connect[*remotekms.Client](func() (*remotekms.Client, error) {
		if remote == "" {
			return nil, fmt.Errorf("--remote is missing: expected the endpoint of the remote KMS, or %s", EnvRemoteKMS)
		}
		at, err := endpoint.Parse(remote)
		if err != nil {
			return nil, fmt.Errorf("--remote: %w", err)
		}
		token, err := readToken(tokenFile)
		return remotekms.NewClient(host.Host{}, at, token), err
	})
	cmd.AddCommand(
		to.verb("keys", "List every key with its KEKs", "  fake-kms-plugin kms keys",
			cobra.NoArgs, func(ctx context.Context, c *remotekms.Client, _ []string) (any, error) { return c.Keys(ctx) }),
		to.verb("log-ins", "Print how many log-ins it has seen", "  fake-kms-plugin kms log-ins",
			cobra.NoArgs, func(ctx context.Context, c *remotekms.Client, _ []string) (any, error) { return c.LogIns(ctx) }),
		rotateKeyCommand(to), stateCommand(to),
		to.verb("rules", "List how callers are treated", "  fake-kms-plugin kms rules",
			cobra.NoArgs, func(ctx context.Context, c *remotekms.Client, _ []string) (any, error) { return c.Rules(ctx) }),
		ruleCommand(to),
		to.verb("unrule CALLER", "End the rules for a pattern, and for the callers that it covers", "  fake-kms-plugin kms unrule 'cp-1/*'", cobra.ExactArgs(1),
			func(ctx context.Context, c *remotekms.Client, args []string) (any, error) {
				return nil, c.DeleteRule(ctx, args[0])
			}),
		to.journal("Print the operations of the KMS as JSON lines", "  fake-kms-plugin kms journal --follow", "operations",
			func(ctx context.Context, c *remotekms.Client, q journal.Query) (io.ReadCloser, error) {
				return c.Journal(ctx, q)
			}),
	)
	return cmd
}

func rotateKeyCommand(to connect[*remotekms.Client]) *cobra.Command {
	var reuse int
	cmd := to.verb("rotate KEY", "Make a new KEK of a key current", "  fake-kms-plugin kms rotate key-1", cobra.ExactArgs(1),
		func(ctx context.Context, c *remotekms.Client, args []string) (any, error) {
			return c.Rotate(ctx, args[0], reuse)
		})
	cmd.Flags().IntVar(&reuse, "reuse", 0, "make this old version current again instead")
	return cmd
}

func stateCommand(to connect[*remotekms.Client]) *cobra.Command {
	var deny []string
	var version int
	parse := func(_ *cobra.Command, args []string) (err error) {
		if version, err = strconv.Atoi(args[1]); err != nil {
			return fmt.Errorf("VERSION %q: expected a number", args[1])
		}
		return nil
	}
	cmd := to.verb("state KEY VERSION enabled|disabled|deleted", "Say what a KEK may be used for",
		"  fake-kms-plugin kms state key-1 1 disabled\n  fake-kms-plugin kms state key-1 1 enabled --deny decrypt",
		cobra.MatchAll(cobra.ExactArgs(3), parse), func(ctx context.Context, c *remotekms.Client, args []string) (any, error) {
			var denied []keyring.Operation
			for _, op := range deny {
				denied = append(denied, keyring.Operation(op))
			}
			return c.SetState(ctx, args[0], version, keyring.State(args[2]), denied)
		})
	cmd.Flags().StringSliceVar(&deny, "deny", nil, "operations to refuse: encrypt, decrypt")
	return cmd
}

func ruleCommand(to connect[*remotekms.Client]) *cobra.Command {
	var r remotekms.Rule
	cmd := to.verb("rule CALLER", "Cut callers off, slow them down or deny them; CALLER is a pattern over NODE/KEYID",
		`  fake-kms-plugin kms rule 'cp-1/*' --cut-off refuse
  fake-kms-plugin kms rule '*/*' --latency 200ms
  fake-kms-plugin kms rule cp-1/2 --deny`,
		cobra.ExactArgs(1), func(ctx context.Context, c *remotekms.Client, args []string) (any, error) {
			r.Caller = args[0]
			return r, c.SetRule(ctx, r)
		})
	cmd.Flags().StringVar(&r.CutOff, "cut-off", "", "refuse (the connection breaks) or hang (no answer)")
	cmd.Flags().DurationVar((*time.Duration)(&r.Latency), "latency", 0, "added to every answer")
	cmd.Flags().StringVar(&r.LogIn, "log-in", "", "refuse log-ins in the words of this failure of the caller's profile; refused: of the one that the profile names")
	cmd.Flags().StringVar(&r.By, "by", "", "with --log-in: of log-ins by appRole or by certificate alone")
	cmd.Flags().BoolVar(&r.Revoke, "revoke", false, "end the leases that there are")
	cmd.Flags().IntVar(&r.LogInsPerMinute, "log-ins-per-minute", 0, "refuse further log-ins of a caller; 0: no limit")
	cmd.Flags().IntVar(&r.CallsPerSecond, "calls-per-second", 0, "refuse further Encrypts and Decrypts of a caller; 0: no limit")
	cmd.Flags().BoolVar(&r.Deny, "deny", false, "answer access denied to every Encrypt and Decrypt")
	return cmd
}

// NewRemoteCommand serves the remote KMS that the plugins of all nodes share, on a host.
func NewRemoteCommand(h host.Host) *cobra.Command {
	var listen, tokenFile, file, state, format string
	cmd := &cobra.Command{
		Use:   "remote",
		Short: "Serve the model of the remote KMS that several plugins share",
		Example: `  fake-kms-plugin remote --listen unix:///run/kms.sock --state /run/kms.json
  fake-kms-plugin serve --listen unix:///run/cp-1/kms-1.sock --node cp-1 --remote unix:///run/kms.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" {
				return errors.New("--listen is missing: expected unix:///PATH, or tcp://HOST:PORT")
			}
			at, err := endpoint.Parse(listen)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			token, err := listenToken("listen", at, tokenFile)
			if err != nil {
				return err
			}
			log, err := newLog(cmd.ErrOrStderr(), format)
			if err != nil {
				return err
			}
			operations, closeJournal, err := openJournal[remotekms.Operation](h, file)
			if err != nil {
				return err
			}
			defer closeJournal()
			kms, err := remotekms.New(remotekms.Options{Clock: h.Clock(), Journal: operations, Log: log, StateFile: state})
			if err != nil {
				return fmt.Errorf("--state: %w", err)
			}
			l, err := endpoint.Listen(h, at, endpoint.DefaultMode)
			if err != nil {
				return fmt.Errorf("listen at %s: %w", at, err)
			}
			log.Info("serving the remote KMS", "listen", at.String())
			return httpjson.Serve(cmd.Context(), h, l, remotekms.Handler(kms, token))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "endpoint, unix:///PATH, unix:///@NAME or tcp://HOST:PORT (required)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the bearer token that clients need; required with tcp")
	cmd.Flags().StringVar(&file, "journal", "", "file that every operation is appended to as a JSON line")
	cmd.Flags().StringVar(&state, "state", "", "file that keys and rules are kept in, so that a killed KMS can go on; they protect test data only")
	cmd.Flags().StringVar(&format, "log-format", "json", "json or text")
	return cmd
}
