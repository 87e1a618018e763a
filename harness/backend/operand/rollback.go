package operand

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Rollback is one of the pods of an API server, as far as it is decided by numbers.
type Rollback struct {
	// Pods names the node, or the aggregated API server.
	Pods string
	// To is scenario.Rollback.To.
	To string
}

// Refusal is why there must be no pod of a revision: the revision does not exist any more, or its pod could not read what is stored.
type Refusal struct {
	Rollback
	Why string
}

// Error implements error.
func (r *Refusal) Error() string { return r.String() + ": " + r.Why }

func (r Rollback) String() string {
	if _, err := strconv.Atoi(r.To); err == nil {
		return fmt.Sprintf("rollback of %s to revision %s", r.Pods, r.To)
	}
	return fmt.Sprintf("rollback of %s to the %s revision", r.Pods, r.To)
}

// Revision is the number of the revision that the rollback is to. has is that of the pod, existing are those that there are. The error is a Refusal for
// one that there was: under and providersOf say why its pod could not even read what is stored.
func (r Rollback) Revision(has int, existing []int, under []history.Under, providersOf func(revision int) []string) (int, error) {
	if len(existing) == 0 {
		return 0, fmt.Errorf("%s: nothing was ever encrypted, so there are no revisions", r)
	}
	existing = slices.Sorted(slices.Values(existing))
	newest := existing[len(existing)-1]
	wanted, err := strconv.Atoi(r.To)
	switch {
	case r.To == scenario.RevisionNewest:
		return newest, nil
	case r.To == scenario.RevisionPrevious:
		older := slices.DeleteFunc(slices.Clone(existing), func(n int) bool { return n >= has })
		if len(older) == 0 {
			return 0, &Refusal{r, fmt.Sprintf("none is older than revision %d, which the pod has", has)}
		}
		return older[len(older)-1], nil
	case err != nil:
		return 0, fmt.Errorf("%s: expected a number: %w", r, err)
	case wanted > newest:
		return 0, fmt.Errorf("%s: it does not exist yet, the newest is revision %d", r, newest)
	case slices.Contains(existing, wanted):
		return wanted, nil
	}
	why := "it was pruned, there are " + numbers(existing)
	if had := providersOf(wanted); len(had) > 0 {
		if unread := Unread(had, under); unread != "" {
			why += "; " + unread
		}
	}
	return 0, &Refusal{r, why}
}

func numbers(all []int) string {
	var words []string
	for _, n := range all {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

// Unread says which of the keys that objects are under a configuration does not have: "it has no key kms-3, and 17 objects are under it". It is empty if
// the configuration reads everything.
func Unread(providers []string, under []history.Under) string {
	counts := map[string]int{}
	for _, u := range under {
		if !slices.Contains(providers, u.Provider) {
			counts[u.Provider] += u.Count
		}
	}
	var texts []string
	for name, n := range counts {
		texts = append(texts, fmt.Sprintf("it has no key %s, and %d objects are under it", name, n))
	}
	slices.SortFunc(texts, cmp.Compare)
	return strings.Join(texts, "; ")
}

// RollbackOutcome is what a rollback comes to that should be refused, or should not.
func RollbackOutcome(a *scenario.Rollback, err error) error {
	var refusal *Refusal
	switch {
	case a.Expect != scenario.OutcomeRefused:
		return err
	case err == nil:
		return errors.New("the pod was made, expected a refusal: the revision is gone, or objects are under a key that it does not have")
	case errors.As(err, &refusal):
		return nil
	}
	return err
}

// Revised is a pod of another revision that took the place of one, with an encryption configuration and plugins that need not be those of its time.
func Revised(apiServer, node string, number, config int, plugins []revision.Plugin) *history.Container {
	with := []string{fmt.Sprintf("with encryption configuration %d", config)}
	for _, g := range plugins {
		with = append(with, fmt.Sprintf("plugin %d", g.KeyID))
	}
	return &history.Container{Node: node, Pod: podOf(apiServer, node), State: history.PodRevised, Revision: number, Detail: strings.Join(with, ", ")}
}

// Refused is a pod that must not be.
func Refused(apiServer, node string, err error) *history.Container {
	return &history.Container{Node: node, Pod: podOf(apiServer, node), State: history.PodRefused, Detail: err.Error()}
}

func podOf(apiServer, node string) string {
	return cmp.Or(apiServer, history.KubeAPIServer) + "-" + node
}
