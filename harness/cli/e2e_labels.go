package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/suggest"
	"github.com/kmsharness/kmsharness/scenarios"
)

// checkLabels counts the scenarios that a label filter selects. It refuses one that cannot be read, names a label that no scenario has, or selects
// nothing.
func checkLabels(filter string, all []*scenario.Scenario) (selected int, err error) {
	selects, err := types.ParseLabelFilter(filter)
	if err != nil {
		return 0, filterSyntax(filter, err)
	}
	var known []string
	for _, s := range all {
		labels := scenarios.Labels(s)
		known = append(known, labels...)
		if selects(labels) {
			selected++
		}
	}
	for _, label := range labelsIn(filter) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, label) }) {
			return 0, fmt.Errorf("--labels %q: no scenario has the label %q%s", filter, label, suggest.DidYouMean(label, known))
		}
	}
	if selected == 0 {
		return 0, fmt.Errorf("--labels %q: expected a filter that selects a scenario", filter)
	}
	return selected, nil
}

// filterSyntax puts Ginkgo's message, which marks the place by a colour, on one line.
func filterSyntax(filter string, err error) error {
	var g types.GinkgoError
	if !errors.As(err, &g) {
		return fmt.Errorf("--labels %q: %v", filter, err)
	}
	before, _, marked := strings.Cut(g.Message, "{{red}}")
	if !marked {
		before = filter
	}
	what := g.Message[strings.LastIndex(g.Message, "\n")+1:]
	return fmt.Errorf("--labels %q: column %d: %s", filter, utf8.RuneCountInString(before)+1, strings.TrimSuffix(what, "."))
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

func completeLabels(_ *cobra.Command, _ []string, typed string) (filters []cobra.Completion, _ cobra.ShellCompDirective) {
	all, err := scenarios.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	before := typed[:strings.LastIndexAny(typed, " !(&|,")+1]
	for _, s := range all {
		for _, label := range scenarios.Labels(s) {
			filters = append(filters, before+label)
		}
	}
	slices.Sort(filters)
	return slices.Compact(filters), cobra.ShellCompDirectiveNoFileComp
}
