package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Types of conditions.
const (
	ConditionConfig      = "EncryptionStateControllerDegraded"
	ConditionMigration   = "EncryptionMigrationControllerDegraded"
	ConditionProgressing = "EncryptionMigrationControllerProgressing"
	ConditionPreflight   = "EncryptionKMSPreflightControllerDegraded"
	ConditionPlugin      = "KMSPluginDegraded"
	// ConditionCredentials has no suffix that would degrade the cluster: it is a warning, and nothing is blocked.
	ConditionCredentials = "KMSPluginCredentialsPending"
)

// Reasons.
const (
	ReasonAsExpected      = "AsExpected"
	ReasonInvalid         = "InvalidConfiguration"
	ReasonSyncError       = "SyncError" // as in library-go
	ReasonMigrationFailed = "MigrationFailed"
	ReasonPreflightFailed = "PreflightFailed"
	ReasonHealthy         = "KMSPluginHealthy"
	ReasonUnhealthy       = "KMSPluginUnhealthy"
	ReasonCannotStart     = "KMSPluginCannotStart"
	ReasonMissing         = "CredentialsMissing"
)

// Stages, as reasons of ConditionProgressing.
const (
	StagePreparing    = "PreparingKey"
	StagePlugins      = "ChangingPlugins"
	StageRollingOut   = "RollingOut"
	StageReading      = "DistributingReadKey"
	StageWriting      = "PromotingWriteKey"
	StageMigrating    = "Migrating"
	StageReencrypting = "Reencrypting"
	StageRemoving     = "RemovingOldKeys"
)

// at says what the operator is at; the first word counts, a later one gives details.
func (d *decision) at(stage, format string, args ...any) {
	if d.stage != stage {
		d.stage, d.detail = stage, fmt.Sprintf(format, args...)
	}
}

func (d *decision) conditions() {
	w := d.Wanted
	wrong, why := ReasonInvalid, w.Invalid+": what was in force stays in force"
	if w.Invalid == "" {
		wrong, why = ReasonSyncError, d.Failure.Message
	}
	d.plan.say(ConditionConfig, w.Invalid != "" || d.Failure.Lasts(d.now), wrong, ReasonAsExpected, why)
	d.plan.say(ConditionMigration, d.failing.Lasts(d.now), ReasonMigrationFailed, ReasonAsExpected, d.failing.Message)
	d.plan.say(ConditionProgressing, d.stage != "", d.stage, ReasonAsExpected, d.detail)
	p := d.Preflight
	failed := w.Invalid == "" && w.Type == config.KMS && p.Hash == d.asked.Hash() && !p.OK && !p.At.IsZero() // one without a time is under way
	d.plan.say(ConditionPreflight, failed, ReasonPreflightFailed, ReasonAsExpected, p.Message)
	d.plan.say(ConditionCredentials, len(w.Missing) > 0, ReasonMissing, ReasonAsExpected, "no plugin is started without "+list(w.Missing))
	reason, message := ReasonCannotStart, d.cannotStart()
	if message == "" {
		reason, message = ReasonUnhealthy, d.worst()
	}
	d.plan.say(ConditionPlugin, message != "", reason, ReasonHealthy, message)
	d.plan.Conditions = append(d.plan.Conditions, d.encrypted())
}

// cannotStart is the first plugin that cannot run where it was started, and why.
func (d *decision) cannotStart() string {
	for _, p := range d.plugins.Plugins {
		if waits := d.waits(p); len(waits) > 0 {
			return fmt.Sprintf("plugin %d cannot start on %s: %s", p.KeyID, list(waits), d.Nodes[waits[0]].Waiting[p.KeyID].Reason)
		}
	}
	return ""
}

// worst is the plugin that has failed for longest, and what that means by now.
func (d *decision) worst() string {
	var text string
	var longest time.Duration = -1
	for _, name := range d.names() {
		for _, p := range d.plugins.Plugins {
			e, fresh := d.fresh(name, p.KeyID)
			if !fresh || e.Healthy {
				continue
			}
			since := d.now
			if !e.Failing.IsZero() {
				since = e.Failing
			}
			if lasts := d.now.Sub(since); lasts > longest {
				longest, text = lasts, fmt.Sprintf("plugin %d on %s: %s. %s", p.KeyID, name, e.Detail, Recovery(lasts))
			}
		}
	}
	return text
}

// Recovery says what a failure of a plugin means after a while: the stages of the seed.
func Recovery(lasts time.Duration) string {
	switch {
	case lasts < time.Minute:
		return "The API server works with the keys that it has cached; no key is made or promoted"
	case lasts <= 5*time.Minute:
		return "Writes of encrypted objects may fail by now: look at the plugin's container, its credentials and the network to the KMS"
	}
	return "It does not recover by itself: see the support procedure of the provider"
}

// list names some of many.
func list(names []string) string {
	const some = 5
	if len(names) <= some {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
}

// encrypted is True while every object is encrypted, also throughout a switch from one encrypting type to another. It ends as soon as there is a key that
// stands for clear text: before an API server may write with it.
func (o Observed) encrypted() Condition {
	c := Condition{Type: contract.ConditionEncrypted, Reason: "EncryptionDisabled", Message: "there is no key"}
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
	case newest.Type == config.Identity:
		c.Reason, c.Message = "DecryptionInProgress", fmt.Sprintf("key %d, which stands for clear text, is not migrated", newest.ID)
	case under.Type != config.Identity && writes.Type != config.Identity:
		c.Status, c.Reason, c.Message = true, "EncryptionCompleted", fmt.Sprintf("everything is encrypted, with key %d or a newer one", under.ID)
	default:
		c.Reason, c.Message = "EncryptionInProgress", fmt.Sprintf("key %d is not migrated", newest.ID)
	}
	return c
}
