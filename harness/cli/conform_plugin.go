package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	template "github.com/kmsharness/kmsharness/internal/command"
)

// Flags that conform plugin and preflight have.
const (
	endpointUsage = "where the plugin listens: unix:///PATH or unix:///@NAME"
	commandUsage  = "starts the plugin; {endpoint} or {socket} is where it must listen, {state} a folder for its keys"
)

func newConformPluginCommand() *cobra.Command {
	var f conformFlags
	var subject plugin.Subject
	var callTimeout time.Duration
	var list, withoutWaits bool
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Certify a KMS v2 plugin on its socket, without a cluster",
		Long: `Call a KMS v2 plugin as kube-apiserver does, and as nobody should, and report which rules it breaks, by which source, and what kube-apiserver
would do. Checks that need more than the socket are not supported unless a flag gives it: a command that starts the plugin, hooks that break,
slow, restore and rotate the KMS behind it, the plugin's log. Commands are split at spaces and run without a shell.`,
		Example: `  kmsharness conform plugin --endpoint unix:///run/kms.sock
  kmsharness conform plugin --command 'my-plugin --listen {endpoint} --keys {state}'
  kmsharness conform plugin --endpoint unix:///run/kms.sock --hook-break 'systemctl stop vault' --hook-restore 'systemctl start vault'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return listChecks(cmd, plugin.Catalogue())
			}
			s, err := f.selection()
			if err != nil {
				return err
			}
			timing := plugin.DefaultTiming()
			if callTimeout <= 0 {
				return usage("--call-timeout %v: expected a positive duration", callTimeout)
			}
			timing.Call = callTimeout
			o := plugin.Options{Selection: s, Timing: &timing, Seed: f.seed, WithoutWaits: withoutWaits}
			o.Waiting = printer(cmd.ErrOrStderr())
			o.Progress = func(r conformance.Result) {
				if r.Outcome != conformance.NotSupported { // the end of the run sums these up
					fmt.Fprintln(cmd.OutOrStdout(), r.Line())
				}
			}
			if err := subject.Validate(); err != nil {
				return err
			}
			if f.out != "" {
				unlock, err := prepareOut(cmd, f.out)
				if err != nil {
					return err
				}
				defer unlock()
			}
			var report *conformance.Report
			for range f.repeat {
				next, err := plugin.Run(cmd.Context(), subject, o)
				if err != nil {
					return subjectError(err)
				}
				if report == nil {
					report = next
				} else {
					report.Merge(next)
				}
			}
			return f.conclude(cmd, report, pluginName(subject))
		},
	}
	flags := cmd.Flags()
	f.register(flags, "plugin")
	flags.StringVar(&subject.Endpoint, "endpoint", "", endpointUsage)
	flags.StringVar(&subject.Command, "command", "", commandUsage)
	flags.StringVar(&subject.Hooks.Break, "hook-break", "", "makes the KMS behind the plugin fail; with {mode} it is called with fail, hang, refuse and lose-key")
	flags.StringVar(&subject.Hooks.Slow, "hook-slow", "", "makes each request to the KMS take longer than the timeout of a call")
	flags.StringVar(&subject.Hooks.Restore, "hook-restore", "", "undoes --hook-break and --hook-slow")
	flags.StringVar(&subject.Hooks.Rotate, "hook-rotate", "", "makes the KMS use a new key encryption key")
	flags.StringVar(&subject.Log, "log", "", "file of the plugin's log, which is searched for secrets (default with --command: its output)")
	flags.DurationVar(&callTimeout, "call-timeout", plugin.DefaultTiming().Call, "timeout of a call, as in kube-apiserver's EncryptionConfiguration")
	flags.BoolVar(&withoutWaits, "without-waits", false, "skip the checks that wait on purpose")
	flags.BoolVar(&list, "list", false, "list the checks and exit")
	return cmd
}

// subjectError gives the exit code of a plugin that ended before it listened: the plugin is at fault.
func subjectError(err error) error {
	var ended *plugin.EndedError
	if errors.As(err, &ended) {
		return &exitError{code: ExitFailed, text: err.Error()}
	}
	return err
}

// pluginName is what the report calls a plugin that was given no name.
func pluginName(s plugin.Subject) string {
	if words, err := template.Split(s.Command); err == nil && len(words) > 0 {
		return filepath.Base(words[0])
	}
	return s.Endpoint
}

func listChecks(cmd *cobra.Command, checks []plugin.Check) error {
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHECK\tPROFILE\tNEEDS\tRULE")
	for _, c := range checks {
		var needs []string
		for _, n := range c.Needs {
			needs = append(needs, string(n))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.ID, c.Profile, strings.Join(needs, ","), c.Rule)
	}
	fmt.Fprintf(t, "%d checks\n", len(checks))
	return t.Flush()
}

func newPreflightCommand() *cobra.Command {
	var subject plugin.Subject
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check in two seconds whether a KMS v2 plugin can be used; one line",
		Long: `Run the checks without which kube-apiserver cannot use a plugin, for an init container or a script of a node. The plugin
runs already, or --command starts it, within 30 s at most.
Exit codes: 0 usable, 1 not usable, 2 could not run.`,
		Example: `  kmsharness preflight --endpoint unix:///run/kms.sock
  kmsharness preflight --command 'my-plugin --listen {endpoint} --keys {state}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if within <= 0 {
				return usage("--within %v: expected a positive duration", within)
			}
			began := time.Now()
			text, ok, err := plugin.Preflight(cmd.Context(), subject, within, printer(cmd.ErrOrStderr()))
			if err != nil {
				return subjectError(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "preflight: %s: %s (%v)\n", pluginName(subject), text, time.Since(began).Round(time.Millisecond))
			if !ok {
				return failed()
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&subject.Endpoint, "endpoint", "", endpointUsage)
	cmd.Flags().StringVar(&subject.Command, "command", "", commandUsage)
	cmd.Flags().DurationVar(&within, "within", plugin.PreflightTime, "bound of the checks; a start by --command comes before them")
	return cmd
}
