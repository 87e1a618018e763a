package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/suggest"
	"github.com/kmsharness/kmsharness/scenarios"
)

// checkLabels refuses a label filter that cannot be read, names a label that no scenario has, or selects nothing.
func checkLabels(filter string, all []*scenario.Scenario) error {
	selects, err := types.ParseLabelFilter(filter)
	if err != nil {
		return filterSyntax(filter, err)
	}
	var known []string
	found := false
	for _, s := range all {
		labels := scenarios.Labels(s)
		known = append(known, labels...)
		found = found || selects(labels)
	}
	for _, label := range labelsIn(filter) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, label) }) {
			return usage("--labels %q: no scenario has the label %q%s", filter, label, suggest.DidYouMean(label, known))
		}
	}
	if !found {
		return usage("--labels %q: expected a filter that selects a scenario", filter)
	}
	return nil
}

// filterSyntax puts Ginkgo's message, which marks the place by a colour, on one line.
func filterSyntax(filter string, err error) error {
	var g types.GinkgoError
	if !errors.As(err, &g) {
		return usage("--labels %q: %v", filter, err)
	}
	before, _, marked := strings.Cut(g.Message, "{{red}}")
	if !marked {
		before = filter
	}
	what := g.Message[strings.LastIndex(g.Message, "\n")+1:]
	return usage("--labels %q: column %d: %s", filter, utf8.RuneCountInString(before)+1, strings.TrimSuffix(what, "."))
}

var notLabels = regexp.MustCompile(`/[^/]*/|&&|\|\||[!(),]`)

// labelsIn returns the single labels of a filter, without those of set operations such as "area: containsAny {a, b}".
func labelsIn(filter string) (labels []string) {
	if strings.Contains(filter, "{") {
		return nil
	}
	for _, word := range notLabels.Split(filter, -1) {
		if word = strings.TrimSpace(word); word != "" && !strings.Contains(word, " ") {
			labels = append(labels, word)
		}
	}
	return labels
}
