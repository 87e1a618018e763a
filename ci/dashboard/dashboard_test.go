package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
)

// metricsOf are the metrics that the sources of a package make: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: …}, labels) and
// their kin. The sources are read because a program shows a metric only once it has something to say.
func metricsOf(t *testing.T, dirs ...string) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no sources, %v", dir, err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			lists := labelLists(f)
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					if name, kind := madeBy(call); name != "" {
						m := metric{kind: kind}
						if len(call.Args) > 1 {
							m.labels = labelsOf(call.Args[1], lists)
						}
						out[name] = m
					}
				}
				return true
			})
		}
	}
	return out
}

// madeBy is the name and the kind of the metric that a call makes, if it makes one.
func madeBy(call *ast.CallExpr) (name, kind string) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	opts, isOpts := call.Args[0].(*ast.CompositeLit)
	if !ok || !isOpts || !strings.HasPrefix(fun.Sel.Name, "New") {
		return "", ""
	}
	kind = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(fun.Sel.Name, "New"), "Vec"))
	for _, e := range opts.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Name" {
			return text(kv.Value), kind
		}
	}
	return "", ""
}

// text is a literal, or one of the contract's names.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.SelectorExpr:
		return map[string]string{"MetricCallSeconds": contract.MetricCallSeconds, "MetricCallErrors": contract.MetricCallErrors, "MetricHealthy": contract.MetricHealthy}[e.Sel.Name]
	}
	return ""
}

// labelLists are the variables that hold lists of labels.
func labelLists(f *ast.File) map[string][]string {
	out := map[string][]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i := range a.Lhs {
				if id, ok := a.Lhs[i].(*ast.Ident); ok {
					out[id.Name] = labelsOf(a.Rhs[i], nil)
				}
			}
		}
		return true
	})
	return out
}

func labelsOf(e ast.Expr, lists map[string][]string) (out []string) {
	switch e := e.(type) {
	case *ast.Ident:
		return lists[e.Name]
	case *ast.CompositeLit:
		for _, item := range e.Elts {
			if s := text(item); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

func known(t *testing.T) map[string]metric {
	t.Helper()
	all := metricsOf(t, "reporter/metrics", "aggregator/controller")
	for name, want := range map[string]metric{
		contract.MetricCallSeconds: {"histogram", []string{"node", "keyID"}}, contract.MetricHealthy: {"gauge", []string{"node", "keyID"}},
		"kms_health_aggregator_cleanups_total": {"counter", nil}, "kms_health_rollup": {"gauge", []string{"condition", "status"}},
	} {
		if got := all[name]; got.kind != want.kind || strings.Join(got.labels, " ") != strings.Join(want.labels, " ") {
			t.Fatalf("%s: read as %+v, want %+v", name, got, want)
		}
	}
	return all
}

func TestDashboardNamesMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("kms-plugins.json")
	if err != nil {
		t.Fatal(err)
	}
	all := known(t)
	for _, p := range problems(text, all) {
		t.Error(p)
	}
	for name := range all {
		if !strings.Contains(string(text), name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

func TestAlertsNameMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../alerts/kms-plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rule); err != nil || len(rule.Spec.Groups) == 0 {
		t.Fatalf("%+v, %v", rule, err)
	}
	for _, g := range rule.Spec.Groups {
		for _, r := range g.Rules {
			for _, p := range unknown(r.Expr, known(t)) {
				t.Errorf("%s: %s", r.Alert, p)
			}
		}
	}
}

func TestBadDashboardsAreCaught(t *testing.T) {
	for file, want := range map[string]string{
		"renamed-metric.json":      "there is no metric kms_plugin_health",
		"bucket-of-a-counter.json": "there is no metric kms_plugin_status_call_errors_total_bucket",
		"unknown-label.json":       "kms_plugin_healthy has no label nodeName",
		"no-query.json":            `panel "x" asks for nothing`,
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(problems(text, known(t)), "\n"); !strings.Contains(found, want) {
			t.Errorf("%s: %s, want %s", file, found, want)
		}
	}
	if found := problems([]byte("{"), nil); len(found) != 1 {
		t.Errorf("no JSON: %v", found)
	}
}
