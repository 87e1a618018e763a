package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// common are the flags of every command that runs scenarios.
type common struct {
	backend string
	out     string
	seed    int64
	// contract is the wire form of scenarios that are not about one: see scenario.InForms.
	contract  string
	publish   string // a value of scenario.Published
	sut       choose.Options
	keepGoing bool
	// artifacts is a text of engine.Artifacts.
	artifacts string
}

func (c *common) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.backend, "backend", "auto", choose.Expected())
	f.StringVar(&c.out, "out", "_artifacts", "folder for verdicts, histories and logs")
	f.StringVar(&c.contract, "contract", scenario.ContractConditions, "wire form of the reports, for scenarios that are not about one: conditions, healthreports or both")
	f.StringVar(&c.publish, "publish", scenario.PublishApply, "way of reports to the API server: ssa (reporters apply them) or stream (reporters stream them to the aggregator); for scenarios that name no connectivity")
	f.StringVar(&c.artifacts, "artifacts", string(engine.ArtifactsOnFailure), "when OUT/<scenario>/artifacts gets objects, manifests and kind's export: on-failure, always or never")
	f.Int64Var(&c.seed, "seed", 1, "seed of what a scenario leaves to chance")
	f.StringVar(&c.sut.ReporterCommand, "reporter-command", "", "reporter under test, as a command template with {"+strings.Join(live.Placeholders(), "} {")+"} (default: this project's)")
	f.StringVar(&c.sut.AggregatorCommand, "aggregator-command", "", "aggregator under test, as a command template (default: this project's)")
	f.StringVar(&c.sut.OperatorCommand, "operator-command", "", "local and kind: operator of kube-apiserver under test, as a command template with {kubeconfig}, for scenarios with an operator (default: this project's)")
	f.StringVar(&c.sut.OperatorDoor, "operator-door", "", doorUsage)
	f.IntVar(&c.sut.OperatorPatience, "operator-patience", 1, patienceUsage)
	f.StringVar(&c.sut.ReporterIdentity, "reporter-identity", "", "credentials of reporters: least, which may write their own entry and nothing else, or admin, as OpenShift's reporter has on a static pod (default least)")
	f.StringVar(&c.sut.PluginArgs, "plugin-args", "", "further arguments of every fake plugin, for example '--fault key-id-flip-flop'")
	pluginFlags(f, &c.sut.Plugin)
	f.StringVar(&c.sut.Plugin.Image, "plugin-image", "", "kind: image that has the program of --plugin-command, which the engine has")
	f.StringVar(&c.sut.ReporterImage, "reporter-image", "", "kind: image of the reporter under test, which the engine has; its entrypoint is run (default: this project's)")
	f.StringVar(&c.sut.ReporterArgs, "reporter-args", "", "kind: arguments of that image's entrypoint, as a template (default: those of this project's reporter)")
	f.StringVar(&c.sut.OperatorImage, "operator-image", "", "kind: image of the operator of kube-apiserver under test, which the engine has; its entrypoint is run in a pod (default: this project's)")
	f.StringVar(&c.sut.OperatorArgs, "operator-args", "", "kind: arguments of that image's entrypoint, as a template (default: those of this project's operator)")
	f.BoolVar(&c.sut.Strict, "strict", false, "house rules, which no source demands, fail also programs that are not this project's; without it they are listed")
	f.BoolVar(&c.keepGoing, "keep-going", false, "after an expectation failed go on with the steps, and judge each later one on its own")
	f.BoolVar(&c.sut.ReporterMountSockets, "reporter-mount-sockets", false, "give each reporter its sockets as /var/run/kmsplugin/kms-N.sock in a mount namespace of its own (needs root)")
}

const doorUsage = "what the operator under test is: controllers, whose configuration the harness makes revisions of, or whole, which installs revisions by pods and is given {version}, and on kind {podImage} for the image of these pods (default controllers)"

const patienceUsage = "multiply the times in seconds within which scenarios with an operator expect something, for an operator under test that is slower than this project's"

// pluginFlags are the flags of a plugin under test.
func pluginFlags(f *pflag.FlagSet, p *live.RealPlugin) {
	f.StringVar(&p.Command, "plugin-command", "", "KMS v2 plugin under test, as a command template with {"+strings.Join(live.PluginPlaceholders(), "} {")+"} (default: this project's fake plugin)")
	f.StringVar(&p.Break, "plugin-break", "", "command that takes the KMS of the plugin under test away, as a template; needed by the verb kms")
	f.StringVar(&p.Restore, "plugin-restore", "", "command that gives the KMS back")
	f.StringVar(&p.Rotate, "plugin-rotate", "", "command that rotates the key of the plugin under test; needed by the verb rotate")
	f.StringVar(&p.Name, "plugin-name", "", "name of the plugin under test in reports (default: its program)")
	f.StringVar(&p.Version, "plugin-version", "", "version of the plugin under test in reports")
}

// given are the flags that were given, but for some, for a process that is to have the same.
func given(flags *pflag.FlagSet, prefix string, but ...string) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(but, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, prefix+f.Name+"="+value)
		}
	})
	return args
}

func (c *common) checkArtifacts() error {
	if _, err := engine.ParseArtifacts(c.artifacts); err != nil {
		return usage("--artifacts %v", err)
	}
	return nil
}

// inForms gives scenarios in the wire form that was asked for, and tells the system under test of it.
func (c *common) inForms(all []*scenario.Scenario) ([]*scenario.Scenario, error) {
	out, err := scenario.InForms(all, c.contract)
	if err == nil {
		c.sut, err = c.sut.InForm(c.contract)
	}
	if err != nil {
		return nil, usage("--contract %v", err)
	}
	if out, err = scenario.Published(out, c.publish); err != nil {
		return nil, usage("--publish %v", err)
	}
	c.sut.Streaming = c.publish == scenario.PublishStream
	return out, nil
}

// printer is a progress function that prints lines.
func printer(w io.Writer) func(string) {
	return func(line string) { fmt.Fprintln(w, line) }
}

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
