package staticpods

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Decide is core.Decide with the condition Encrypted, which OpenShift's encryption controllers have besides. Plugins end with a later revision of the pods,
// so that the operator is not at rest before that is installed.
func Decide(o core.Observed, opts core.Options, now time.Time) core.Plan {
	plan := core.Decide(o, opts, now)
	for i, c := range plan.Conditions {
		if c.Type == core.ConditionProgressing && !c.Status {
			plan.Conditions[i] = ending(o, c)
		}
	}
	plan.Conditions = append(plan.Conditions, encrypted(o))
	return plan
}

// ending is a condition that nothing is in progress, unless a node has a plugin that ends.
func ending(o core.Observed, rest core.Condition) core.Condition {
	wanted := revision.Newest(o.PluginConfigs)
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		for _, id := range slices.Sorted(maps.Keys(o.Nodes[name].Plugins)) {
			if !wanted.Has(id) {
				return core.Condition{Type: rest.Type, Status: true, Reason: core.StagePlugins, Message: fmt.Sprintf("plugin %d ends on %s", id, name)}
			}
		}
	}
	return rest
}

// encrypted is true while every object is encrypted, and stays so throughout a switch from one encrypting type to another.
func encrypted(o core.Observed) core.Condition {
	c := core.Condition{Type: "Encrypted", Reason: "EncryptionDisabled", Message: "there is no key"}
	newest := revision.NewestKey(o.Keys)
	under := revision.NewestKey(nil) // the newest key that everything was migrated to
	for _, k := range o.Keys {
		if k.Migrated && k.ID > under.ID {
			under = k
		}
	}
	writes, _ := revision.Find(o.Keys, revision.Newest(o.Configs).Writes())
	switch {
	case newest.ID == revision.Plain:
	case newest.Type == config.Identity && newest.Migrated:
		c.Reason, c.Message = "DecryptionCompleted", "everything is stored in clear text"
	case under.Type != config.Identity && writes.Type != config.Identity:
		c.Status, c.Reason, c.Message = true, "EncryptionCompleted", fmt.Sprintf("everything is encrypted, with key %d or a newer one", under.ID)
	case newest.Type == config.Identity:
		c.Reason, c.Message = "DecryptionInProgress", fmt.Sprintf("key %d, which stands for clear text, is not migrated", newest.ID)
	default:
		c.Reason, c.Message = "EncryptionInProgress", fmt.Sprintf("key %d is not migrated", newest.ID)
	}
	return c
}
