package core

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// The condition follows the objects through aescbc, KMS and clear text.
func TestEncrypted(t *testing.T) {
	aescbc, kms, identity := revision.Key{ID: 1, Type: config.AESCBC}, revision.Key{ID: 2, Type: config.KMS}, revision.Key{ID: 3, Type: config.Identity}
	migrated := func(k revision.Key) revision.Key { k.Migrated = true; return k }
	for _, test := range []struct {
		keys   []revision.Key
		config []uint64
		want   string
	}{
		{nil, nil, "EncryptionDisabled"},
		{[]revision.Key{aescbc}, []uint64{1, 0}, "EncryptionInProgress"},
		{[]revision.Key{migrated(aescbc)}, []uint64{1}, "EncryptionCompleted"},
		{[]revision.Key{migrated(aescbc), kms}, []uint64{2, 1}, "EncryptionCompleted"},
		{[]revision.Key{migrated(aescbc), migrated(kms), identity}, []uint64{2, 3}, "DecryptionInProgress"},
		{[]revision.Key{migrated(aescbc), migrated(kms), identity}, []uint64{3, 2}, "DecryptionInProgress"},
		{[]revision.Key{migrated(kms), migrated(identity)}, []uint64{3}, "DecryptionCompleted"},
		{[]revision.Key{migrated(identity), {ID: 4, Type: config.AESGCM}}, []uint64{4, 3}, "EncryptionInProgress"},
	} {
		o := Observed{Keys: test.keys}
		if test.config != nil {
			o.Configs = []revision.Config{{Revision: 1, Keys: test.config}}
		}
		if got := o.encrypted(); got.Type != contract.ConditionEncrypted || got.Reason != test.want || got.Status != (test.want == "EncryptionCompleted") {
			t.Errorf("%v with %v: %+v, want %s", test.keys, test.config, got, test.want)
		}
	}
}
