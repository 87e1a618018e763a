package alerts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// compare says which alerts fire and should not, and which should and do not.
func (a alertTest) compare(groups map[string]*rules.Group) error {
	known := slices.DeleteFunc(alerting(groups), func(r *rules.AlertingRule) bool { return r.Name() != a.Name })
	if len(known) == 0 {
		return fmt.Errorf("at %s: there is no alert %s", a.EvalTime, a.Name)
	}
	var firing []*rules.Alert
	for _, r := range known {
		firing = append(firing, slices.DeleteFunc(r.ActiveAlerts(), func(x *rules.Alert) bool { return x.State != rules.StateFiring })...)
	}
	var errs []error
	for _, want := range a.Expected {
		i := slices.IndexFunc(firing, func(x *rules.Alert) bool { return want.labels(a.Name) == x.Labels.String() })
		if i < 0 {
			errs = append(errs, fmt.Errorf("at %s: %s does not fire, and should", a.EvalTime, want.labels(a.Name)))
			continue
		}
		errs = append(errs, want.annotations(firing[i], a))
		firing = slices.Delete(firing, i, i+1)
	}
	for _, x := range firing {
		errs = append(errs, fmt.Errorf("at %s: %s fires, and should not", a.EvalTime, x.Labels))
	}
	return errors.Join(errs...)
}

func (e expectedAlert) labels(name string) string {
	all := map[string]string{labels.AlertName: name}
	for k, v := range e.Labels {
		all[k] = v
	}
	return labels.FromMap(all).String()
}

func (e expectedAlert) annotations(got *rules.Alert, a alertTest) error {
	var errs []error
	for name, want := range e.Annotations {
		if text := strings.TrimSpace(got.Annotations.Get(name)); text != want {
			errs = append(errs, fmt.Errorf("at %s: %s: %s is %q, want %q", a.EvalTime, a.Name, name, text, want))
		}
	}
	return errors.Join(errs...)
}
