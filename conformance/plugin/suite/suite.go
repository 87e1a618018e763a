// Package suite embeds the conformance checks of package plugin in a Ginkgo suite:
//
//	var _ = suite.Describe("my plugin", func() plugin.Subject { return plugin.Subject{Endpoint: endpoint} }, plugin.Options{})
//
// Each check is a spec with its id as a label, so that --label-filter selects checks. The specs run in the order of the catalogue, in one process.
package suite

import (
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
)

// Describe registers one spec for each check. It calls subject once, before the first spec. A failed and a blocked check fail their spec; one that
// is not supported or was skipped skips it, with the reason.
func Describe(text string, subject func() plugin.Subject, o plugin.Options) bool {
	return ginkgo.Describe(text, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		var session *plugin.Session
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
			var err error
			if session, err = plugin.Open(ctx, subject(), o); err != nil {
				ginkgo.Fail(err.Error())
			}
			ginkgo.DeferCleanup(session.Close)
		})
		checks := o.Checks
		if checks == nil {
			checks = plugin.Catalogue()
		}
		for _, c := range checks {
			ginkgo.It(c.ID+": "+c.Title, ginkgo.Label(c.ID, string(c.Profile)), func(ctx ginkgo.SpecContext) { judge(session.Check(ctx, c)) })
		}
	})
}

// judge ends the spec as the result says.
func judge(r conformance.Result) {
	for _, m := range r.Measured {
		ginkgo.GinkgoWriter.Println(m)
	}
	switch r.Outcome {
	case conformance.Passed:
	case conformance.Failed:
		ginkgo.Fail(fmt.Sprintf("%s\nrequest: %s\nresponse: %s\nexpected: %s\nconsequence: %s\nsource: %s",
			r.Rule, r.Evidence.Request, r.Evidence.Response, r.Evidence.Expected, r.Consequence, r.Source))
	case conformance.Blocked:
		ginkgo.Fail(r.Reason)
	default:
		ginkgo.Skip(strings.TrimSpace(string(r.Outcome) + ": " + r.Reason))
	}
}
