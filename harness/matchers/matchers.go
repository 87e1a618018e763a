// Package matchers has Gomega matchers for what reporters and aggregators write: reports, rollups and conditions. Their messages say what was
// expected and what there is.
//
//	Expect(kubeAPIServer).To(HaveReport("cp-2", "1", contract.StatusError))
//	Eventually(get).WithArguments(ctx).Should(HaveRollup("True", contract.ReasonPluginUnreachable))
//	Expect(clusterOperator).NotTo(HaveCondition("Degraded", "True", ""))
//
// A subject is an object with conditions in its status, typed or unstructured, or a list of conditions. For HaveReport it is also a contract.Report.
package matchers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/kmsharness/kmsharness/contract"
)

// HaveCondition succeeds if the subject has a condition of a type with a status and a reason. An empty status or reason is any.
func HaveCondition(conditionType, status, reason string) types.GomegaMatcher {
	return &matcher{what: "condition " + condition{conditionType, status, reason, ""}.String(), holds: func(s subject) (bool, string) {
		if len(s.conditions) == 0 {
			return false, "no conditions"
		}
		i := slices.IndexFunc(s.conditions, func(c condition) bool { return c.Type == conditionType })
		if i < 0 {
			return false, "conditions of other types: " + join(s.conditions)
		}
		c := s.conditions[i]
		return (status == "" || c.Status == status) && (reason == "" || c.Reason == reason), c.String()
	}}
}

// HaveRollup is HaveCondition for the rollup of the health of all plugins, KMSPluginsDegraded. For other rollups use HaveCondition.
func HaveRollup(status, reason string) types.GomegaMatcher {
	return HaveCondition(contract.ConditionDegraded, status, reason)
}

// HaveReport succeeds if the subject has a report about the plugin of a keyID on a node, in either wire form, with a status; empty: with any.
func HaveReport(node, keyID string, status contract.Status) types.GomegaMatcher {
	what := fmt.Sprintf("report of %s about plugin %s", node, keyID)
	if status != "" {
		what += ": " + string(status)
	}
	return &matcher{what: what, holds: func(s subject) (bool, string) {
		i := slices.IndexFunc(s.reports[node].entries, func(e contract.Entry) bool { return e.KeyID == keyID })
		holds := i >= 0 && (status == "" || s.reports[node].entries[i].Status == status)
		if len(s.reports) == 0 {
			return holds, "no reports"
		}
		var all []string
		for _, n := range slices.Sorted(maps.Keys(s.reports)) {
			all = append(all, n+": "+s.reports[n].String())
		}
		return holds, strings.Join(all, "\n      ")
	}}
}

type matcher struct {
	what  string
	holds func(subject) (holds bool, found string)
	found string
}

func (m *matcher) Match(actual any) (holds bool, err error) {
	s, err := read(actual)
	if err != nil {
		return false, err
	}
	holds, m.found = m.holds(s)
	return holds, nil
}

func (m *matcher) FailureMessage(any) string { return "Expected " + m.what + "\nfound " + m.found }

func (m *matcher) NegatedFailureMessage(any) string {
	return "Expected no " + m.what + "\nfound " + m.found
}

type subject struct {
	conditions []condition
	reports    map[string]report // by node
}

type condition struct{ Type, Status, Reason, Message string }

// String implements fmt.Stringer, without what is empty.
func (c condition) String() string {
	out := c.Type
	if c.Status != "" {
		out += "=" + c.Status
	}
	if c.Reason != "" {
		out += " " + c.Reason
	}
	if c.Message != "" {
		out += ": " + contract.SafeText(c.Message, shownChars)
	}
	return out
}

const shownChars = 200

func join(all []condition) string {
	var out []string
	for _, c := range all {
		c.Message = ""
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

// report is that of one node, or why it cannot be read.
type report struct {
	entries []contract.Entry
	err     error
}

func (r report) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	var out []string
	for _, e := range r.entries {
		text := fmt.Sprintf("plugin %s %s at %s", e.KeyID, e.Status, contract.FormatTime(e.LastChecked))
		if e.Detail != "" {
			text += " (" + contract.SafeText(e.Detail, shownChars) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// read takes a subject of any kind by its JSON.
func read(actual any) (s subject, err error) {
	switch r := actual.(type) {
	case contract.Report:
		return subject{reports: map[string]report{r.Node: {entries: r.Entries}}}, nil
	case *contract.Report:
		return read(*r)
	}
	text, err := json.Marshal(actual)
	if err != nil {
		return s, fmt.Errorf("read a subject of type %T: %w", actual, err)
	}
	var object struct {
		Status struct {
			Conditions       []condition
			EncryptionStatus struct{ HealthReports []contract.TypedReport }
		}
	}
	switch {
	case strings.HasPrefix(string(text), "["):
		err = json.Unmarshal(text, &s.conditions)
	case strings.HasPrefix(string(text), "{"):
		err = json.Unmarshal(text, &object)
		s.conditions = object.Status.Conditions
	default:
		err = fmt.Errorf("expected an object or a list of conditions")
	}
	if err != nil {
		return s, fmt.Errorf("read a subject of type %T: %w", actual, err)
	}
	s.readReports(object.Status.EncryptionStatus.HealthReports)
	return s, nil
}

// readReports takes reports in both wire forms.
func (s *subject) readReports(typed []contract.TypedReport) {
	s.reports = map[string]report{}
	for _, c := range s.conditions {
		if node, ok := contract.NodeOfCondition(c.Type); ok {
			entries, err := contract.DecodeMessage(c.Message)
			s.reports[node] = report{entries, err}
		}
	}
	for _, t := range typed {
		e, err := t.Untyped()
		r := s.reports[t.NodeName]
		if r.err = err; err == nil {
			r.entries = append(r.entries, e)
		}
		s.reports[t.NodeName] = r
	}
}
