// Package scenarios is the catalogue: one YAML file per behaviour in catalogue/, the Ginkgo suite that turns each file
// into a spec, and specs written in Go beside them for what YAML cannot say.
//
// To add a scenario, add a file; nothing else needs to know about it. The format is described in docs/authoring.md.
package scenarios

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// files are the catalogue, so that a program carries it along.
//
//go:embed catalogue/*.yaml
var files embed.FS

// Load parses the catalogue, in the order of the file names, and adds what is written in Go. The error has every mistake
// of every scenario.
func Load() ([]*scenario.Scenario, error) {
	parser, err := standard.Parser()
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	names, err := fs.Glob(files, "catalogue/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	var all []*scenario.Scenario
	var errs []error
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
		s, err := parser.Parse("scenarios/"+name, data)
		if errs = append(errs, err); err == nil {
			all = append(all, s)
		}
	}
	for _, s := range Authored() {
		errs = append(errs, parser.Validate(s))
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

//go:embed statements.yaml
var statements []byte

// Statements of the sources, in their order.
func Statements() ([]coverage.Statement, error) {
	var all []coverage.Statement
	if err := yaml.UnmarshalStrict(statements, &all); err != nil {
		return nil, fmt.Errorf("statements.yaml: %w", err)
	}
	return all, nil
}

// Source is the text of a scenario of the catalogue, as it was written; false for one in Go.
func Source(name string) ([]byte, bool) {
	text, err := files.ReadFile("catalogue/" + name + ".yaml")
	return text, err == nil
}

// Labels are what a label filter selects a scenario by.
func Labels(s *scenario.Scenario) []string {
	topology := "ha"
	if s.Topology.ControlPlanes == 1 {
		topology = "sno"
	}
	out := []string{"name:" + s.Name, "area:" + s.Area, "topology:" + topology}
	for _, a := range s.Actions() {
		if harm := scenario.Harm(a); harm != "" {
			out = append(out, "fault:"+harm)
		}
	}
	if s.Contract != "" {
		out = append(out, "contract:"+s.Contract)
	}
	if s.FormMatters() {
		out = append(out, "form")
	}
	if s.OnlyKind != "" {
		out = append(out, "only-kind")
	}
	return append(out, s.Labels...)
}

// Alike orders scenarios so that those on the same control plane, with the same plugins and provider, follow each other: the control plane of one
// serves the next without a restart of its API servers. The larger topologies come first; the order within such scenarios stays.
func Alike(all []*scenario.Scenario, plane func(*scenario.Scenario) string) []*scenario.Scenario {
	key := func(s *scenario.Scenario) string {
		return fmt.Sprint(9-s.Topology.ControlPlanes, plane(s), s.Topology.ByOperator(), s.Topology.KeyIDs, s.Topology.Profile)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *scenario.Scenario) int { return cmp.Compare(key(a), key(b)) })
	return sorted
}
