package scenario

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// DurationParams are the parameters of an action that are durations, those of faults apart.
func (a Action) durationParams(faults FaultChecker) []string {
	switch a.Verb {
	case VerbLink:
		return []string{"delay"}
	case VerbRestart:
		return []string{"overlap"}
	case VerbClock, VerbWatches:
		return []string{"by"}
	case VerbRefuse:
		return []string{"for"}
	case VerbRotate, VerbAPIServer:
		return []string{"lag"}
	case VerbInject:
		if faults != nil {
			return append([]string{"for"}, faults.DurationParams(a.Fault)...)
		}
		return []string{"for"}
	}
	return nil
}

// Resolve gives the action with every parameter that is a duration as a time.Duration, and those that are one per node
// as a map[string]time.Duration. Faults says which parameters of a fault are durations; nil knows only "for".
func (a Action) Resolve(t contract.Timing, faults FaultChecker) (Action, error) {
	for _, name := range a.durationParams(faults) {
		value, ok := a.Params[name]
		if !ok {
			continue
		}
		resolved, err := resolveValue(value, t)
		if err != nil {
			return Action{}, fmt.Errorf("%s: %w", name, err)
		}
		a = a.With(name, resolved)
	}
	return a, nil
}

func resolveValue(value any, t contract.Timing) (any, error) {
	switch v := value.(type) {
	case map[string]time.Duration, time.Duration:
		return v, nil
	case Duration:
		return v.Resolve(t)
	case string:
		return D(v).Resolve(t)
	case int, float64:
		return D(fmt.Sprint(v)).Resolve(t)
	case map[string]any:
		out := map[string]time.Duration{}
		for node, one := range v {
			d, err := resolveValue(one, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", node, err)
			}
			out[node], _ = d.(time.Duration)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("is a %T, expected a duration", value)
	}
}
