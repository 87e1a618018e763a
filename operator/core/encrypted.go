package core

import (
	"fmt"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

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
