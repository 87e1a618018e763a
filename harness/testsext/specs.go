package testsext

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/internal/program"
	"github.com/kmsharness/kmsharness/internal/version"
	"github.com/kmsharness/kmsharness/scenarios"
)

// Variables that tests are configured by, for openshift-tests passes no flags on.
const (
	manifestVariable  = "KMSHARNESS_PLUGIN_MANIFEST" // file that describes the plugin to certify
	observeVariable   = "KMSHARNESS_OBSERVE_FOR"     // duration of an observation
	flagsVariable     = "KMSHARNESS_OBSERVE_FLAGS"   // further flags of it
	artifactsVariable = "EXTENSION_ARTIFACTS_DIR"    // where a test leaves files
	suiteName         = "openshift/kms"
	maxOutput         = 32 << 10 // bytes of a test's output; the artifacts have all
)

func self() component { return component{Product: "openshift", Kind: "payload", Name: "kmsharness"} }

func (c component) String() string { return c.Product + ":" + c.Kind + ":" + c.Name }

func describe() extension {
	v := version.Read()
	return extension{
		APIVersion: apiVersion, Source: source{Commit: v.Commit, BuildDate: v.Date, SourceURL: "https://github.com/kmsharness/kmsharness"}, Component: self(), Images: []struct{}{},
		Suites: []suite{{Name: suiteName, Description: "Health of KMS v2 encryption", Qualifiers: []string{fmt.Sprintf("source == %q", self())}, Parallelism: 1, ClusterStability: "Stable"}},
	}
}

// specs are all tests. Their names are stable: CI systems keep their history by them.
func specs() (all []spec, err error) {
	sim, err := choose.New("sim", choose.Options{})
	if err != nil {
		return nil, err
	}
	catalogue, err := scenarios.Load()
	if err != nil {
		return nil, err
	}
	all = []spec{newSpec("the plugin of a manifest conforms", "[Serial]", certify), newSpec("the reports of the cluster keep the contract while other tests run", "", observe)}
	for _, s := range catalogue {
		if len(sim.Unsupported(s)) == 0 {
			all = append(all, newSpec("scenario "+s.Name+" passes in virtual time", "", func() ([]string, string) { return []string{"run", "--backend", "sim", s.Name}, "" }))
		}
	}
	return all, nil
}

func newSpec(what, tags string, args func() ([]string, string)) spec {
	s := spec{Name: strings.Join(strings.Fields("[sig-auth][Feature:KMS] "+what+" [Suite:"+suiteName+"] "+tags), " "), Labels: map[string]struct{}{}, Source: self().String(), Lifecycle: "blocking", args: args}
	if tags != "" {
		s.Labels[strings.Trim(tags, "[]")] = struct{}{}
		s.Resources.Isolation.Mode = "exec"
	}
	return s
}

func certify() (args []string, skip string) {
	manifest := os.Getenv(manifestVariable)
	if manifest == "" {
		return nil, manifestVariable + " names no manifest of a plugin"
	}
	return []string{"conform", "plugin", "--manifest", manifest}, ""
}

func observe() (args []string, skip string) {
	if os.Getenv("KUBECONFIG") == "" {
		return nil, "KUBECONFIG names no cluster"
	}
	args = []string{"observe", "--for", cmp.Or(os.Getenv(observeVariable), "10m"), "--aggregator-profile", "convergence"}
	return append(args, strings.Fields(os.Getenv(flagsVariable))...), ""
}

// run runs one test in this process.
func (s spec) run(ctx context.Context) result {
	r := result{Name: s.Name, Lifecycle: s.Lifecycle, StartTime: dbTime(time.Now()), Result: passed}
	if args, skip := s.args(); skip != "" {
		r.Result, r.Details = skipped, []detail{{"skipped", skip}}
	} else if err := r.command(ctx, args); err != nil {
		r.Result, r.Error = failed, err.Error()
	}
	r.EndTime = dbTime(time.Now())
	r.Duration = time.Time(r.EndTime).Sub(time.Time(r.StartTime)).Milliseconds()
	return r
}

// command runs kmsharness, whose files become artifacts. What gave no verdict is a failure, too: openshift-tests knows nothing else that is not green.
func (r *result) command(ctx context.Context, args []string) error {
	artifacts := os.Getenv(artifactsVariable)
	if artifacts == "" {
		dir, err := os.MkdirTemp("", "kmsharness-tests-ext-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		artifacts = dir
	}
	var stdout, stderr bytes.Buffer
	code := cli.Main(ctx, append(args, "--out", filepath.Join(artifacts, "kmsharness", args[0]+"-"+filepath.Base(args[len(args)-1]))), &stdout, &stderr)
	r.Output = stdout.String()[max(0, stdout.Len()-maxOutput):]
	switch code {
	case program.ExitPassed:
		return nil
	case program.ExitFailed:
		return fmt.Errorf("%s: something did not hold: see the output%s", strings.Join(args, " "), after(stderr.String()))
	}
	return fmt.Errorf("%s: no verdict%s", strings.Join(args, " "), after(stderr.String()))
}

func after(text string) string {
	if text = strings.TrimSpace(text); text != "" {
		return ": " + text
	}
	return ""
}
