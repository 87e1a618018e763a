package control_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
)

// described is what the tests need of the OpenAPI file.
type described struct {
	OpenAPI    string                    `json:"openapi"`
	Paths      map[string]map[string]any `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Enum       []string       `json:"enum"`
			Properties map[string]any `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func description(t *testing.T) described {
	t.Helper()
	var d described
	NewWithT(t).Expect(yaml.Unmarshal(control.OpenAPI(), &d)).To(Succeed())
	return d
}

func TestOpenAPIDescribesEveryRouteAndNoOther(t *testing.T) {
	g, d := NewWithT(t), description(t)
	var served, inFile []string
	for _, r := range newAPI(t).Routes() {
		served = append(served, r.Method+" "+r.Path)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			inFile = append(inFile, strings.ToUpper(method)+" "+path)
		}
	}
	g.Expect(d.OpenAPI).To(HavePrefix("3."))
	g.Expect(inFile).To(ConsistOf(served))
}

func TestOpenAPIDescribesEveryFault(t *testing.T) {
	NewWithT(t).Expect(description(t).Components.Schemas["FaultName"].Enum).To(ConsistOf(fault.Catalogue{}.Names()))
}

// The fields of the answers are those of the file, so that a field cannot be added here and forgotten there.
func TestOpenAPIDescribesEveryField(t *testing.T) {
	g, d, api := NewWithT(t), description(t), newAPI(t)
	h := api.Handler()
	_, fault := ask(h, "POST", "/v1/faults", `{"name":"hang"}`)
	_, status := ask(h, "GET", "/v1/status", "")
	_, keys := ask(h, "GET", "/v1/keys", "")
	_, kek := ask(h, "POST", "/v1/rotate", "")
	for schema, answer := range map[string]string{"ActiveFault": fault, "Status": status, "Keys": keys, "KEK": kek} {
		var fields map[string]any
		g.Expect(yaml.Unmarshal([]byte(answer), &fields)).To(Succeed(), answer)
		for field := range fields {
			g.Expect(d.Components.Schemas[schema].Properties).To(HaveKey(field), "schema %s", schema)
		}
	}
}

// Nothing that the file refers to is missing in it.
func TestOpenAPIReferencesResolve(t *testing.T) {
	g := NewWithT(t)
	text := string(control.OpenAPI())
	d := description(t)
	for _, part := range strings.Split(text, "#/components/schemas/")[1:] {
		name := part[:strings.IndexByte(part, '"')]
		g.Expect(d.Components.Schemas).To(HaveKey(name))
	}
	names := make([]string, 0, len(d.Components.Schemas))
	for name := range d.Components.Schemas {
		names = append(names, name)
	}
	g.Expect(slices.Contains(names, "Call")).To(BeTrue())
}
