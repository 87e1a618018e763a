package operated

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

func Decision(o core.Observed, plan core.Plan) *history.Decision {
	key := revision.NewestKey(o.Keys)
	d := &history.Decision{Key: key.ID, Revision: revision.Newest(o.Configs).Revision, PluginRevision: revision.Newest(o.PluginConfigs).Revision}
	d.ConvergedKEK, d.MigratedKEK = key.Converged.KEK, key.KEK
	d.Keys = sorted(o.Keys, func(k revision.Key) uint64 { return k.ID })
	d.Revisions = sorted(o.Configs, func(c revision.Config) int { return c.Revision })
	d.PluginRevisions = sorted(o.PluginConfigs, func(c revision.PluginConfig) int { return c.Revision })
	for _, c := range plan.Conditions {
		if c.Type == core.ConditionProgressing && c.Status {
			d.Stage, d.Detail = c.Reason, contract.SafeText(c.Message, contract.MaxDetailChars)
		}
	}
	for _, a := range plan.Actions {
		d.Actions = append(d.Actions, inWords(a))
		if ends, is := a.(core.StopPlugins); is {
			d.Ends = append(d.Ends, ends.Node)
		}
	}
	return d
}

// sorted are the numbers of all.
func sorted[T any, N cmp.Ordered](all []T, number func(T) N) []N {
	var out []N
	for _, one := range all {
		out = append(out, number(one))
	}
	slices.Sort(out)
	return out
}

// inWords is an action on one line, without settings of plugins.
func inWords(a core.Action) string {
	switch a := a.(type) {
	case core.CreateKey:
		return fmt.Sprintf("create key %d of type %s", a.Key.ID, a.Key.Type)
	case core.UpdateKey:
		return fmt.Sprintf("note of key %d: migrated %t, kekID %q, converged on %q", a.Key.ID, a.Key.Migrated, a.Key.KEK, a.Key.Converged.KEK)
	case core.CreateConfig:
		return fmt.Sprintf("create encryption configuration %d with keys %v", a.Config.Revision, a.Config.Keys)
	case core.CreatePluginConfig:
		return fmt.Sprintf("create plugin configuration %d with %d plugins", a.Config.Revision, len(a.Config.Plugins))
	case core.Prune:
		return fmt.Sprintf("prune keys %v, encryption configurations %v, plugin configurations %v", a.Keys, a.Configs, a.PluginConfigs)
	case core.StartPlugins:
		return fmt.Sprintf("start %d plugins on %s", len(a.Plugins), a.Node)
	case core.StopPlugins:
		return fmt.Sprintf("stop plugins %v on %s", a.Plugins, a.Node)
	case core.Report:
		return fmt.Sprintf("start the reporter of %s anew with plugins %v", a.Node, a.Plugins)
	case core.RollOut:
		return fmt.Sprintf("roll out revision %d to %s", a.Revision, a.Node)
	case core.RunPreflight:
		return "check the plugin that is configured"
	case core.Migrate:
		return fmt.Sprintf("write everything anew with key %d under kekID %q", a.Attempt.Key, a.Attempt.KEK)
	}
	return fmt.Sprintf("%T", a)
}

// Same says whether two decisions are told alike.
func Same(a, b history.Decision) bool {
	actions := slices.Equal(a.Actions, b.Actions)
	a.Actions, b.Actions = nil, nil
	return actions && reflect.DeepEqual(a, b)
}
