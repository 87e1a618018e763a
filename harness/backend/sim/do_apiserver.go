package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// configureAPIServer writes the cluster's one APIServer configuration, as an administrator does. What comes of it is the operators' business: it
// returns at once.
func (fs *faults) configureAPIServer(_ context.Context, a *scenario.APIServer) error {
	wanted, err := operated.Desired(a)
	if err != nil {
		return err
	}
	for _, one := range fs.e.all() {
		one.data.writeSizes(append(scenario.DataSizes(), scenario.MaxObjectBytes))
		one.pods.lags = operated.Lags(a.Lag, fs.e.Nodes())
	}
	r := request{user: "system:admin", verb: verbPatch, key: fs.w.configKey(), manager: "kmsharness", force: true, contentType: audit.ContentTypeApply,
		body: encode(wanted)}
	var refusal error
	err = fs.e.switching.persist(func(n *node) error {
		rep := fs.e.ask(n, r)
		if rep.code == http.StatusUnprocessableEntity || rep.code == http.StatusBadRequest {
			refusal = rep.problem()
			return nil
		}
		return rep.problem()
	})
	switch refused := a.Expect == scenario.OutcomeRefused; {
	case err != nil:
		return fmt.Errorf("write the APIServer configuration: %w", err)
	case refused && refusal == nil:
		return errors.New("write the APIServer configuration: the API took it, expected that it refuses")
	case !refused && refusal != nil:
		return fmt.Errorf("write the APIServer configuration: %w", refusal)
	case refused:
		return nil
	}
	for _, one := range fs.e.all() {
		one.encryption = encryption.Type(a.Type)
		one.recordExpected()
	}
	return nil
}
