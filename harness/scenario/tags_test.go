package scenario

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

var oneTag = regexp.MustCompile(`([a-zA-Z-]+):"(?:[^"\\]|\\.)*"`)

// A tag that is misspelt would state no rule, and a field without omitempty would stand in every file.
func TestTags(t *testing.T) {
	known := strings.Fields("yaml description required enum silence-enum pattern minimum maximum minItems maxItems uniqueItems maxLength format " +
		"expected item refers target positive cel with needed without why undo verbs only keys")
	var check func(s shape)
	check = func(s shape) {
		for _, f := range s.fields {
			for _, m := range oneTag.FindAllStringSubmatch(string(f.Tag), -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s of %s: unknown tag %s", f.name, s.what, m[1])
				}
			}
			if f.key == "" && !f.has("required") && !strings.Contains(f.Tag.Get("yaml"), "omitempty") {
				t.Errorf("%s of %s: neither required nor omitempty", f.name, s.what)
			}
			for _, tag := range []string{"with", "without"} {
				name, values := f.dependsOn(tag)
				other, there := s.named(name)
				for _, v := range values {
					if enum := other.words("enum"); there && enum != nil && !slices.Contains(enum, v) && !slices.Contains(tagOf[Selector]("Role", "enum"), v) {
						t.Errorf("%s of %s: %s %s, which %s cannot be", f.name, s.what, tag, v, name)
					}
				}
			}
			if f.inner != nil {
				check(*f.inner)
			}
		}
	}
	check(shapeOf(reflect.TypeFor[file](), "the scenario"))
	keywords, err := Verbs(nil).keywords()
	if err != nil {
		t.Fatal(err)
	}
	for _, keyword := range keywords {
		check(Verbs(nil).stepShape(keyword))
	}
}

// The values that tags allow are those that the rest of the tree has constants for.
func TestEnums(t *testing.T) {
	for _, test := range []struct{ got, want []string }{
		{tagOf[Refuse]("Mode", "enum"), append(history.RefusalModes(), history.RefuseRestore)},
		{tagOf[Credential]("Mode", "enum"), append(reporterModes(), slices.DeleteFunc(providerModes(), func(m string) bool { return slices.Contains(reporterModes(), m) })...)},
		{APIServers(), []string{history.KubeAPIServer, history.OpenShiftAPIServer, history.OAuthAPIServer}},
		{Contracts(), []string{ContractConditions, ContractHealthReports}},
		{tagOf[Topology]("Connectivity", "enum"), []string{history.ConnectLoopback, history.ConnectService, history.ConnectStatic, history.ConnectAltSvc, history.ConnectStream}},
		{tagOf[Topology]("AggregatorConnectivity", "enum"), []string{history.ConnectLoopback, history.ConnectService, history.ConnectStatic, history.ConnectAltSvc}},
		{tagOf[file]("APIVersion", "enum"), []string{APIVersion}},
		{tagOf[file]("Kind", "enum"), []string{KindName}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%q, expected %q", test.got, test.want)
		}
	}
}
