package remotekms

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// Rotate implements Service.
func (k *KMS) Rotate(_ context.Context, key string, reuse int) (keyring.KEK, error) {
	if reuse > 0 {
		return k.changeKey("reuse", key, func(r *keyring.Ring) (keyring.KEK, error) { return r.Reuse(reuse) })
	}
	return k.changeKey("rotate", key, func(r *keyring.Ring) (keyring.KEK, error) { return r.Rotate(k.o.Clock.Now()) })
}

// Recreate deletes a key for good, and makes another under its name. Versions begin with 1 again.
func (k *KMS) Recreate(key string) (keyring.KEK, error) {
	return k.changeKey("recreate", key, func(*keyring.Ring) (keyring.KEK, error) {
		_, kek, err := k.create(key)
		return kek, err
	})
}

// SetState says what a KEK may be used for from now on.
func (k *KMS) SetState(key string, version int, s keyring.State, denied []keyring.Operation) (keyring.KEK, error) {
	return k.changeKey("state", key, func(r *keyring.Ring) (keyring.KEK, error) { return r.SetState(version, s, denied) })
}

func (k *KMS) changeKey(op, key string, do func(*keyring.Ring) (keyring.KEK, error)) (keyring.KEK, error) {
	k.change.Lock()
	defer k.change.Unlock()
	ring := k.ring(key)
	if ring == nil {
		return keyring.KEK{}, keyring.Refuse(CodeNoKey, "there is no key %.64q", key)
	}
	kek, err := do(ring)
	if err == nil {
		err = k.save()
	}
	k.record(Operation{Op: op, Key: key, KEKID: kek.ID, Version: kek.Version}, err)
	return kek, err
}

// Keys is every key, by name.
func (k *KMS) Keys() []Key {
	k.mu.RLock()
	defer k.mu.RUnlock()
	keys := []Key{}
	for _, name := range slices.Sorted(maps.Keys(k.rings)) {
		keys = append(keys, describe(name, k.rings[name]))
	}
	return keys
}

// SetRule adds r, or replaces the rule with the same caller pattern.
func (k *KMS) SetRule(r Rule) error {
	if err := r.Validate(); err != nil {
		return keyring.Refuse(keyring.CodeInvalid, "%v", err)
	}
	if r.Revoke {
		k.revoke(r)
	}
	return k.changeRules("rule", r.Caller, func(rules []Rule) ([]Rule, error) {
		if i := slices.IndexFunc(rules, func(old Rule) bool { return old.Caller == r.Caller }); i >= 0 {
			rules[i] = r
			return rules, nil
		}
		if len(rules) >= MaxRules {
			return nil, keyring.Refuse(keyring.CodeInvalid, "there are %d rules already, no more are allowed", MaxRules)
		}
		return append(rules, r), nil
	})
}

// revoke ends the leases of the callers that a rule is for.
func (k *KMS) revoke(r Rule) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for plugin := range k.leases {
		if matched, err := path.Match(r.Caller, plugin); err == nil && matched {
			delete(k.leases, plugin)
		}
	}
}

// DeleteRule ends the rules for a caller pattern, and for the callers that it covers: "*/*" ends them all.
func (k *KMS) DeleteRule(caller string) error {
	return k.changeRules("unrule", caller, func(rules []Rule) ([]Rule, error) {
		left := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
			covered, err := path.Match(caller, r.Caller)
			return r.Caller == caller || err == nil && covered
		})
		if len(left) == len(rules) {
			return nil, keyring.Refuse(CodeNoRule, "there is no rule for %.64q", caller)
		}
		return left, nil
	})
}

// CodeNoRule is the refusal for a rule that does not exist.
const CodeNoRule = "unknown-rule"

func (k *KMS) changeRules(op, caller string, do func([]Rule) ([]Rule, error)) error {
	k.change.Lock()
	defer k.change.Unlock()
	rules, err := do(k.Rules())
	if err == nil {
		k.mu.Lock()
		k.rules = rules
		k.mu.Unlock()
		err = k.save()
	}
	k.record(Operation{Op: op, Plugin: caller}, err)
	return err
}

// Rules is a copy of the rules in force, in the order in which they were set.
func (k *KMS) Rules() []Rule {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return append([]Rule{}, k.rules...)
}
