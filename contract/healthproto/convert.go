// Package healthproto converts between a report and the message of the streaming form (contract/proto).
package healthproto

import (
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
)

// Plugins is a report as it is sent. lastKEKID is the last key_id that each plugin answered, by keyID.
func Plugins(r contract.Report, lastKEKID map[string]string) []*healthv1.PluginHealth {
	out := make([]*healthv1.PluginHealth, len(r.Entries))
	for i, e := range r.Entries {
		out[i] = &healthv1.PluginHealth{KeyId: e.KeyID, KekId: e.KEKID, Outcome: outcome(e.Status), LastChecked: timestamppb.New(e.LastChecked),
			Detail: e.Detail, LastKekId: lastKEKID[e.KeyID]}
	}
	return out
}

// Report is what the reporter of node sent. It is not checked yet: what writes a report refuses one that is out of its bounds.
func Report(node string, plugins []*healthv1.PluginHealth) (r contract.Report, lastKEKID map[string]string, err error) {
	if len(plugins) == 0 || len(plugins) > contract.MaxEntries {
		return r, nil, fmt.Errorf("%d plugins, expected 1 to %d", len(plugins), contract.MaxEntries)
	}
	r, lastKEKID = contract.Report{Node: node}, map[string]string{}
	for i, p := range plugins {
		if err := p.GetLastChecked().CheckValid(); err != nil {
			return r, nil, fmt.Errorf("plugin %d: last_checked: %w", i, err)
		}
		e := contract.Entry{KeyID: p.GetKeyId(), KEKID: p.GetKekId(), Status: status(p.GetOutcome()), LastChecked: p.GetLastChecked().AsTime(), Detail: p.GetDetail()}
		if last := p.GetLastKekId(); last != "" {
			lastKEKID[e.KeyID] = last
		}
		r.Entries = append(r.Entries, e)
	}
	return r, lastKEKID, nil
}

func outcome(s contract.Status) healthv1.Outcome {
	switch s {
	case contract.StatusHealthy:
		return healthv1.Outcome_OUTCOME_HEALTHY
	case contract.StatusUnhealthy:
		return healthv1.Outcome_OUTCOME_UNHEALTHY
	case contract.StatusError:
		return healthv1.Outcome_OUTCOME_ERROR
	}
	return healthv1.Outcome_OUTCOME_UNSPECIFIED
}

// status is the inverse of outcome; what is none of the three is no valid status.
func status(o healthv1.Outcome) contract.Status {
	for _, s := range []contract.Status{contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError} {
		if outcome(s) == o {
			return s
		}
	}
	return ""
}
