package fault

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/codes"
)

const hour = 3600 // seconds: the longest that one call is held

// timings are faults of when a call is answered.
func timings() []Definition {
	return []Definition{
		{
			Name: "hang", Scope: ScopeCall, Methods: Methods(), Default: Methods(),
			Summary: "The call gets no answer: until the caller's deadline, for a time, or until the fault is released.",
			Params: []Param{
				{Name: "until", Kind: KindEnum, Enum: []string{"released", "deadline", "time"}, Default: "released",
					Summary: "released: calls that hang go on when the fault is released; deadline: they never do; time: after the parameter time"},
				{Name: "time", Kind: KindDuration, Min: 0.001, Max: hour, Summary: "how long a call hangs, with until=time"},
			},
			Check: func(f Fault) error {
				if (f.Text("until") == "time") != (f.Duration("time") > 0) {
					return fmt.Errorf("until=time and time=DURATION need each other")
				}
				return nil
			},
			Shape: func(s *Strike) {
				s.Plan.Holds = append(s.Plan.Holds, Wait{ID: s.ID, For: s.Fault.Duration("time"), Deadline: s.Fault.Text("until") == "deadline"})
			},
		},
		{
			Name: "delay", Scope: ScopeCall, Methods: Methods(), Default: Methods(),
			Summary: "The answer comes late: by a fixed, uniform or heavy-tailed time.",
			Params: []Param{
				{Name: "by", Kind: KindDuration, Default: "100ms", Max: hour, Summary: "the delay; the least one of uniform and heavy-tailed"},
				{Name: "distribution", Kind: KindEnum, Enum: []string{"fixed", "uniform", "heavy-tailed"}, Default: "fixed", Summary: "how delays are drawn"},
				{Name: "max", Kind: KindDuration, Default: "10s", Max: hour, Summary: "the greatest delay of uniform and heavy-tailed"},
				{Name: "alpha", Kind: KindFloat, Default: 1.5, Min: 0.1, Max: 10, Summary: "the shape of heavy-tailed (Pareto); smaller has more extreme delays"},
			},
			Check: func(f Fault) error {
				if f.Text("distribution") != "fixed" && f.Duration("max") < f.Duration("by") {
					return fmt.Errorf("max %v is less than by %v", f.Duration("max"), f.Duration("by"))
				}
				return nil
			},
			Shape: func(s *Strike) {
				if d := drawDelay(s.Fault, s.Rand); d > 0 {
					s.Plan.Holds = append(s.Plan.Holds, Wait{ID: s.ID, For: d})
				}
			},
		},
		{
			Name: "rate-limit", Scope: ScopeCall, Methods: Methods(), Default: Methods(),
			Summary: "Calls above a rate are answered ResourceExhausted, as by a cloud KMS with a quota.",
			Params: []Param{
				{Name: "rate", Kind: KindFloat, Default: 1.0, Min: 0, Max: 1e6, Summary: "calls per second that pass, over all its methods"},
				{Name: "burst", Kind: KindInt, Default: 1, Min: 0, Max: 1e6, Summary: "calls that pass at once"},
			},
			Shape: func(s *Strike) {
				if s.takeToken(s.Now) {
					s.Miss()
					return
				}
				s.Plan.Error = &Error{codes.ResourceExhausted, fmt.Sprintf("rate of %v requests per second exceeded", s.Fault.Float("rate"))}
			},
		},
	}
}

func drawDelay(f Fault, rng Rand) time.Duration {
	by, most := f.Duration("by"), f.Duration("max")
	switch f.Text("distribution") {
	case "uniform":
		return by + time.Duration(rng.Float64()*float64(most-by))
	case "heavy-tailed":
		u := 1 - rng.Float64() // in (0, 1]
		return time.Duration(math.Min(float64(most), float64(by)*math.Pow(u, -1/f.Float("alpha"))))
	default:
		return by
	}
}

// takeToken is a token bucket that is full when the fault is injected.
func (a *Active) takeToken(now time.Time) bool {
	burst := float64(a.Fault.Int("burst"))
	if a.counted.IsZero() {
		a.tokens, a.counted = burst, now
	}
	a.tokens = math.Min(burst, a.tokens+now.Sub(a.counted).Seconds()*a.Fault.Float("rate"))
	a.counted = now
	if a.tokens < 1 {
		return false
	}
	a.tokens--
	return true
}
