package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kmsharness/kmsharness/conformance"
)

// PreflightTime bounds a preflight.
const PreflightTime = 2 * time.Second

// preflightIDs are the checks of a preflight: a key_id, a round trip, and what kube-apiserver refuses.
func preflightIDs() []string {
	return []string{
		"KMS2-TRANSPORT-CONNECTS", "KMS2-STATUS-ANSWERS", "KMS2-STATUS-HEALTHZ-OK", "KMS2-STATUS-VERSION", "KMS2-STATUS-KEY-ID-PRESENT", "KMS2-STATUS-KEY-ID-SIZE",
		"KMS2-ENCRYPT-ROUND-TRIP", "KMS2-ENCRYPT-CIPHERTEXT-SIZE", "KMS2-ENCRYPT-KEY-ID-EQUALS-STATUS", "KMS2-ENCRYPT-ANNOTATION-KEYS",
	}
}

// Preflight runs the few checks that decide whether kube-apiserver can use a plugin. They end within the given time; what was not answered by then
// has failed. A plugin with a command is started first, which takes Timing.Start at most; waiting receives a line while it does not listen. The text
// is one line: what works, or the first broken rule with what was seen.
func Preflight(ctx context.Context, subject Subject, within time.Duration, waiting func(string)) (text string, ok bool, err error) {
	timing := DefaultTiming()
	timing.Call = within / 2
	checks := slices.DeleteFunc(Catalogue(), func(c Check) bool { return !slices.Contains(preflightIDs(), c.ID) })
	s, err := Open(ctx, subject, Options{Timing: &timing, Checks: checks, Waiting: waiting})
	if err != nil {
		return "", false, err
	}
	defer s.Close()
	timed, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the plugin did not answer all calls within %v", within))
	defer cancel()
	report, err := s.all(timed)
	switch {
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		return err.Error(), false, nil
	case err != nil:
		return "", false, err
	}
	for _, r := range report.Results {
		if r.Outcome == conformance.Failed {
			return oneLine(r), false, nil
		}
	}
	if len(report.With(conformance.Passed)) != len(checks) {
		return "", false, errors.New("preflight: not all checks were judged")
	}
	return fmt.Sprintf("usable, %d checks passed", len(checks)), true, nil
}

func oneLine(r conformance.Result) string {
	text := fmt.Sprintf("NOT usable: %s: %s: %s, expected %s", r.ID, r.Evidence.Request, r.Evidence.Response, r.Evidence.Expected)
	printed := func(r rune) rune { // the plugin's own words may be in it
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}
	return strings.Join(strings.Fields(strings.Map(printed, text)), " ")
}
