package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// endpointUsage is of conform plugin and preflight.
const endpointUsage = "where the plugin listens: unix:///PATH or unix:///@NAME"

// pluginSubject is the plugin under test as its suite takes it: subject, with the command and the hooks of the system.
func pluginSubject(system *undertest.Flags, subject plugin.Subject) (plugin.Subject, undertest.Plugin, error) {
	s, err := system.System()
	p := s.Plugin
	subject.Command = p.Command
	subject.Hooks = plugin.Hooks{Break: p.Break, Slow: p.Slow, Restore: p.Restore, Rotate: p.Rotate, Count: p.Count}
	if err == nil {
		err = subject.Validate()
	}
	return subject, p, system.Explain(err)
}

func newConformPluginCommand() *cobra.Command {
	var f conformFlags
	var endpoint, second, log string
	var addresses []string
	var callTimeout time.Duration
	var withoutWaits bool
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Certify a KMS v2 plugin on its socket, without a cluster",
		Long: `Call a KMS v2 plugin as kube-apiserver does, and with hostile calls, and report which rules it breaks, by which source, and what kube-apiserver
would do. Checks that need more than the socket are not supported unless flags or --system give it: a command that starts the plugin, hooks that
break, slow, restore and rotate the KMS behind it, the plugin's log. Commands are split at spaces and run without a shell.`,
		Example: `  kmsharness conform plugin --endpoint unix:///run/kms.sock
  kmsharness conform plugin --plugin-command 'my-plugin --listen {endpoint} --keys {state}'
  kmsharness conform plugin --endpoint unix:///run/kms.sock --system hooks.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return printChecks(cmd.OutOrStdout(), f.output, plugin.Rules(plugin.Catalogue()))
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
			o.Waiting = lines(cmd.ErrOrStderr())
			o.Progress = func(r conformance.Result) {
				if r.Outcome != conformance.NotSupported { // the end of the run sums these up
					fmt.Fprintln(progressOf(cmd, f.output), r.Line())
				}
			}
			subject, under, err := pluginSubject(f.system, plugin.Subject{Endpoint: endpoint, Second: second, Addresses: addresses, Log: log})
			if err != nil {
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
			return f.conclude(cmd, report, under.Product, pluginName(subject))
		},
	}
	flags := cmd.Flags()
	f.register(cmd, "plugin")
	flags.StringVar(&endpoint, "endpoint", "", endpointUsage)
	flags.StringVar(&second, "second-endpoint", "", "where another instance of the plugin listens, for the same cluster (default with a command: the suite starts one)")
	flags.StringSliceVar(&addresses, "kms-addresses", nil, "two addresses of the KMS, A,B; {address} of the command is A, and B in one check")
	flags.StringVar(&log, "log", "", "file of the plugin's log, which is searched for secrets (default with a command: its output)")
	flags.DurationVar(&callTimeout, "call-timeout", plugin.DefaultTiming().Call, "timeout of a call, as in kube-apiserver's EncryptionConfiguration")
	flags.BoolVar(&withoutWaits, "without-waits", false, "skip the checks that wait on purpose")
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
	return cmp.Or(undertest.NameOf(s.Command), s.Endpoint)
}

func newPreflightCommand() *cobra.Command {
	var endpoint string
	var within time.Duration
	var system *undertest.Flags
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check in two seconds whether a KMS v2 plugin can be used; one line",
		Long: `Run the checks without which kube-apiserver cannot use a plugin, for an init container or a script of a node. The plugin
runs already, or its command starts it, within 30 s at most.
Exit codes: 0 usable, 1 not usable, 2 could not run.`,
		Example: `  kmsharness preflight --endpoint unix:///run/kms.sock
  kmsharness preflight --plugin-command 'my-plugin --listen {endpoint} --keys {state}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if within <= 0 {
				return usage("--within %v: expected a positive duration", within)
			}
			subject, under, err := pluginSubject(system, plugin.Subject{Endpoint: endpoint})
			if err != nil {
				return err
			}
			began := time.Now()
			text, ok, err := plugin.Preflight(cmd.Context(), subject, within, lines(cmd.ErrOrStderr()))
			if err != nil {
				return subjectError(err)
			}
			result := preflightResult{cmp.Or(under.Name, pluginName(subject)), ok, text, time.Since(began).Round(time.Millisecond).String()}
			err = output.Print(cmd.OutOrStdout(), result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "preflight: %s: %s (%s)\n", result.Plugin, result.Text, result.Took)
				return err
			})
			if err == nil && !ok {
				return failed()
			}
			return err
		},
	}
	system, output = undertest.AddFlags(cmd, "plugin"), printer.AddFlag(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", endpointUsage)
	cmd.Flags().DurationVar(&within, "within", plugin.PreflightTime, "bound of the checks; a start by the command comes before them")
	return cmd
}

type preflightResult struct {
	Plugin string `json:"plugin"`
	Usable bool   `json:"usable"`
	Text   string `json:"text"`
	Took   string `json:"took"` // a duration
}
