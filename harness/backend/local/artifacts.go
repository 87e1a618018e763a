package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// Collect implements live.Recording: what this plane has beyond objects are logs, and those are always kept.
func (p *controlPlane) Collect(context.Context, string, func(string)) error { return nil }

// explain keeps the logs of a plane that did not come up. What failed is in the first line of its error.
func explain(_ context.Context, p *controlPlane, failed error, dir string) string {
	if err := errors.Join(os.MkdirAll(dir, 0o755), live.CopyLogs(p.Logs(), dir)); err != nil {
		failed = errors.Join(failed, err)
	}
	_ = os.WriteFile(filepath.Join(dir, "error"), []byte(failed.Error()+"\n"), 0o644) // for people
	cause, _, _ := strings.Cut(failed.Error(), "\n")
	return cause
}
