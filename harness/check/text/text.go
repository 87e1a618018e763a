// Package text shows people what a history says. What programs under test wrote is bounded, and safe to print.
package text

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// MaxShown bounds a text of others in a violation, in code points.
const MaxShown = 200

// Quoted is a text of others, safe to print.
func Quoted(s string) string { return `"` + contract.SafeText(s, MaxShown) + `"` }

// Condition is one line: "Type=Status/Reason" and the quoted message; "absent" if there is none.
func Condition(c *history.Condition) string {
	if c == nil {
		return "absent"
	}
	return c.Type + "=" + c.Status + "/" + c.Reason + " " + Quoted(c.Message)
}

// Short is a duration without needless digits.
func Short(d time.Duration) string { return d.Round(time.Millisecond).String() }
