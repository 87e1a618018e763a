package core

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// kekIDs is, by keyID, which kekIDs are freshly reported and by which nodes.
type kekIDs map[string]map[string][]string

// reported collects the fresh entries. One without a kekID (a plugin that did not answer) still shows that its
// keyID is configured, but says nothing about the kekID.
func reportedKEKs(nodes []node) kekIDs {
	out := kekIDs{}
	for _, n := range nodes {
		for _, e := range n.fresh() {
			if out[e.KeyID] == nil {
				out[e.KeyID] = map[string][]string{}
			}
			if e.KEKID != "" {
				out[e.KeyID][e.KEKID] = append(out[e.KeyID][e.KEKID], n.name)
			}
		}
	}
	return out
}

// progressing is KMSPluginsProgressing: a rotation is named before a migration, because it blocks the next one.
// False comes with AsExpected when converged and with NotConverged otherwise.
func progressing(nodes []node) Condition {
	keks := reportedKEKs(nodes)
	c := Condition{Type: contract.ConditionProgressing, Status: True}
	switch lines := keks.disagreements(); {
	case len(lines) > 0:
		c.Reason, c.Message = contract.ReasonKEKRotationInProgress, message(lines)
	case len(keks) > 1:
		c.Reason, c.Message = contract.ReasonKeyMigrationInProgress, message(keks.migration())
	default:
		c.Status, c.Reason, c.Message = False, contract.ReasonNotConverged, "not every expected node freshly reports the same healthy kekID"
		if key, kek, ok := converged(nodes); ok {
			c.Reason = contract.ReasonAsExpected
			c.Message = count(len(nodes), "node") + " agree on kekID " + safeName(kek) + " for keyID " + safeName(key)
		}
	}
	return c
}

func (k kekIDs) disagreements() []line {
	var lines []line
	for keyID, byKEK := range k {
		if len(byKEK) < 2 {
			continue
		}
		for kek, nodes := range byKEK {
			names := make([]string, len(nodes))
			for i, n := range nodes {
				names[i] = safeName(n)
			}
			slices.Sort(names)
			lines = append(lines, line{key: "keyID " + safeName(keyID), text: "kekID " + safeName(kek) + " on " + strings.Join(names, ", ")})
		}
	}
	return lines
}

func (k kekIDs) migration() []line {
	var lines []line
	for keyID := range k {
		lines = append(lines, line{key: "keyID " + safeName(keyID), text: "reported"})
	}
	return lines
}

// converged is the signal that a rotation controller waits for: every expected node soundly reports the same
// healthy kekID for the same write keyID. No expected node at all is no evidence, hence not converged.
func converged(nodes []node) (keyID, kekID string, ok bool) {
	agreed := map[[2]string]bool{}
	for _, n := range nodes {
		e, readable := n.writeKey()
		if !readable || !n.sound() || e.Status != contract.StatusHealthy || e.KEKID == "" {
			return "", "", false
		}
		agreed[[2]string{e.KeyID, e.KEKID}] = true
	}
	if len(agreed) != 1 {
		return "", "", false
	}
	pair := slices.Collect(maps.Keys(agreed))[0]
	return pair[0], pair[1], true
}
