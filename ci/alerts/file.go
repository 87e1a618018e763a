package alerts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// file is a test file, in what this project uses of promtool's format.
type file struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []test         `yaml:"tests"`
}

type test struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []series       `yaml:"input_series"`
	Alerts      []alertTest    `yaml:"alert_rule_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// alertTest says which alerts of a name fire at a time: exactly these.
type alertTest struct {
	EvalTime model.Duration  `yaml:"eval_time"`
	Name     string          `yaml:"alertname"`
	Expected []expectedAlert `yaml:"exp_alerts"`
}

// expectedAlert has the labels but alertname, and the annotations if there are any: these are then compared, too.
type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func readFile(path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	f := file{EvaluationInterval: model.Duration(defaultInterval)}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	if len(f.RuleFiles) == 0 || len(f.Tests) == 0 {
		return f, fmt.Errorf("%s: %d rule_files and %d tests, expected some of both", path, len(f.RuleFiles), len(f.Tests))
	}
	for i, rules := range f.RuleFiles {
		if !filepath.IsAbs(rules) {
			f.RuleFiles[i] = filepath.Join(filepath.Dir(path), rules)
		}
	}
	for i, t := range f.Tests {
		if t.Interval == 0 {
			f.Tests[i].Interval = f.EvaluationInterval
		}
		if len(t.Alerts) == 0 {
			return f, fmt.Errorf("%s: test %q expects nothing, expected alert_rule_test", path, t.Name)
		}
	}
	return f, nil
}
