package check

import (
	"time"
)

// settled remembers the table of a scene in which every expected node has a report, no other has, and all of them are sound: then the
// table depends on what the reports say, and not on when they say it. Most of a history is such a scene over and over.
type settled struct {
	reports map[string]*report
	rollups []rollups
}

func (s *settled) allowed(v *Facts, now time.Time, x expectation, reports map[string]*report, graces map[string]grace) []rollups {
	if !isSettled(scene{now: now, interval: v.interval()}, x, reports, graces) {
		return v.truths.allowedAt(now, x, reports, graces)
	}
	if s.reports == nil || !sayTheSame(s.reports, reports) {
		s.reports, s.rollups = reports, v.truths.allowedAt(now, x, reports, graces)
	}
	return s.rollups
}

func isSettled(s scene, x expectation, reports map[string]*report, graces map[string]grace) bool {
	if len(graces) > 0 || len(reports) != len(x.nodes) {
		return false
	}
	for n := range x.nodes {
		if r := reports[n]; r == nil || !s.sound(r) {
			return false
		}
	}
	return true
}

// sayTheSame is whether sound reports of the same nodes differ at most in their times and details.
func sayTheSame(a, b map[string]*report) bool {
	if len(a) != len(b) {
		return false
	}
	for n, r := range a {
		o := b[n]
		if o == nil || len(o.entries) != len(r.entries) {
			return false
		}
		for i, e := range r.entries {
			if f := o.entries[i]; e.keyID != f.keyID || e.status != f.status || e.kekID != f.kekID {
				return false
			}
		}
	}
	return true
}
