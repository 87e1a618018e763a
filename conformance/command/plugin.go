package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

// endpointUsage is of conform plugin and preflight.
const endpointUsage = "where the plugin listens: unix:///PATH or unix:///@NAME"

// pluginSubject is the plugin under test as its suite takes it: subject, completed by the file of the system.
func pluginSubject(system *undertest.Flags, subject plugin.Subject) (plugin.Subject, undertest.Plugin, error) {
	s, err := system.System()
	p := s.Plugin
	subject.Command = p.Command
	subject.Endpoint, subject.Second, subject.Log = cmp.Or(subject.Endpoint, p.Endpoint), cmp.Or(subject.Second, p.SecondEndpoint), cmp.Or(subject.Log, p.Log)
	if len(subject.Addresses) == 0 && p.KMSAddresses != "" {
		subject.Addresses = strings.Split(p.KMSAddresses, ",")
	}
	subject.Hooks = plugin.Hooks{Break: p.Break, Slow: p.Slow, Restore: p.Restore, Rotate: p.Rotate, Count: p.Count}
	if err == nil {
		err = subject.Validate()
	}
	return subject, p, system.Explain(err)
}

func newPlugin(name string) *cobra.Command {
	var f Flags
	var endpoint, second, log string
	var addresses []string
	var callTimeout time.Duration
	var withoutWaits bool
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Certify a KMS v2 plugin on its socket, without a cluster",
		Long: `Call a KMS v2 plugin as kube-apiserver does, and with hostile calls, and report which rules it breaks, by which source, and what kube-apiserver
would do. Checks that need more than the socket are not supported unless flags or a manifest give it: a command that starts the plugin, hooks that
break, slow, restore and rotate the KMS behind it, the plugin's log. Commands are split at spaces and run without a shell.`,
		Example: "  " + name + ` conform plugin --endpoint unix:///run/kms.sock
  ` + name + ` conform plugin --plugin-command 'my-plugin --listen {endpoint} --keys {state}'
  ` + name + " conform plugin --manifest plugin.yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.List {
				return PrintChecks(cmd.OutOrStdout(), f.Output, PluginRules())
			}
			subject, under, err := pluginSubject(f.System, plugin.Subject{Endpoint: endpoint, Second: second, Addresses: addresses, Log: log})
			if err != nil {
				return err
			}
			f.profiles = cmp.Or(f.profiles, under.Profile)
			s, err := f.Selection()
			if err != nil {
				return err
			}
			timing := plugin.DefaultTiming()
			if callTimeout <= 0 {
				return fmt.Errorf("--call-timeout %v: expected a positive duration", callTimeout)
			}
			timing.Call = callTimeout
			o := plugin.Options{Selection: s, Timing: &timing, Seed: f.Seed, WithoutWaits: withoutWaits}
			o.Waiting = program.Lines(cmd.ErrOrStderr())
			o.Progress = func(r conformance.Result) {
				if r.Outcome != conformance.NotSupported { // the end of the run sums these up
					fmt.Fprintln(program.Progress(cmd, f.Output), r.Line())
				}
			}
			if f.Out != "" {
				unlock, err := outdir.Prepare(cmd.CommandPath(), f.Out)
				if err != nil {
					return err
				}
				defer unlock()
			}
			var report *conformance.Report
			for range f.Repeat {
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
			return f.Conclude(cmd, report, under.Product, pluginName(subject))
		},
	}
	flags := cmd.Flags()
	f.Register(cmd, "plugin")
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
		return &program.ExitError{Code: program.ExitFailed, Text: err.Error()}
	}
	return err
}

// pluginName is what the report calls a plugin that was given no name.
func pluginName(s plugin.Subject) string {
	return cmp.Or(undertest.NameOf(s.Command), s.Endpoint)
}

// NewPreflight is the command preflight of a program.
func NewPreflight(name string) *cobra.Command {
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
		Example: "  " + name + ` preflight --endpoint unix:///run/kms.sock
  ` + name + " preflight --plugin-command 'my-plugin --listen {endpoint} --keys {state}'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if within <= 0 {
				return fmt.Errorf("--within %v: expected a positive duration", within)
			}
			subject, under, err := pluginSubject(system, plugin.Subject{Endpoint: endpoint})
			if err != nil {
				return err
			}
			began := time.Now()
			text, ok, err := plugin.Preflight(cmd.Context(), subject, within, program.Lines(cmd.ErrOrStderr()))
			if err != nil {
				return subjectError(err)
			}
			result := preflightResult{cmp.Or(under.Name, pluginName(subject)), ok, text, time.Since(began).Round(time.Millisecond).String()}
			err = output.Print(cmd.OutOrStdout(), result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "preflight: %s: %s (%s)\n", result.Plugin, result.Text, result.Took)
				return err
			})
			if err == nil && !ok {
				return program.Failed()
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
