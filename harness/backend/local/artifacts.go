package local

import (
	"context"
	"errors"
	"os"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
)

// Collect implements live.Recording: what this plane has beyond objects are logs, and those are always kept.
func (p *controlPlane) Collect(context.Context, string, func(string)) error { return nil }

// explain keeps the logs of a plane that did not come up.
func explain(_ context.Context, p *controlPlane, failed error, dir string) string {
	return pool.Explain(dir, failed, "", errors.Join(os.MkdirAll(dir, 0o755), live.CopyLogs(p.Logs(), dir)))
}
