package alerts

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// prometheusRule is the resource as far as Prometheus sees it: what is in spec is a rule file.
type prometheusRule struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
	Spec       yaml.Node      `yaml:"spec"`
}

// loader reads rule files of the prometheus-operator.
type loader struct{ parser parser.Parser }

// Load implements rules.GroupLoader.
func (l loader) Load(path string, _ bool, names model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{err}
	}
	var r prometheusRule
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	if r.APIVersion != "monitoring.coreos.com/v1" || r.Kind != "PrometheusRule" {
		return nil, []error{fmt.Errorf("%s: %s %s, expected a PrometheusRule of monitoring.coreos.com/v1", path, r.APIVersion, r.Kind)}
	}
	spec, err := yaml.Marshal(&r.Spec)
	if err != nil {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	groups, errs := rulefmt.Parse(spec, false, names, l.parser, slog.New(slog.DiscardHandler))
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", path, err)
	}
	return groups, errs
}

// Parse implements rules.GroupLoader.
func (l loader) Parse(query string) (parser.Expr, error) { return l.parser.ParseExpr(query) }
