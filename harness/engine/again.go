package engine

import (
	"context"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// ExecuteAgain executes a scenario whose result is inconclusive once more; the caller runs nothing beside it. The second result counts, whatever it
// is. The files of the first try are kept in result.FirstTryDir. Where no scenario may be begun any more, the first result stays.
func ExecuteAgain(ctx context.Context, b backend.Backend, s *scenario.Scenario, x Execution) result.Result {
	x.Options = x.Options.withDefaults()
	dir := filepath.Join(x.Out, s.Name)
	first, err := result.ReadResult(filepath.Join(dir, result.ResultFile))
	if err == nil && (ctx.Err() != nil || x.late()) {
		return first
	}
	if err == nil {
		err = result.SetAside(dir)
	}
	if err != nil { // there is no first try to keep
		return x.save(x.result(b, s), err)
	}
	x.Again = true
	return Execute(ctx, b, s, x)
}
