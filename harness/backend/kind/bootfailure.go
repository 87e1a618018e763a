package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
)

// explainTimeout bounds what is kept of a cluster that did not come up, apart from kind's export, which cannot be interrupted.
const explainTimeout = time.Minute

// explain keeps what tells why a cluster did not come up, before it is deleted: kind's export, the manifests and the logs of programs under test. It
// returns the error in one line. Every part is kept as far as it can be had; what cannot is beside the error.
func explain(ctx context.Context, p *controlPlane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	missing := errors.Join(os.MkdirAll(dir, 0o755), live.CopyLogs(p.logsOf(live.NodeNames(p.shape.Nodes)), dir), p.clusters.export(ctx, filepath.Join(dir, "kind"), func(string) {}))
	for _, c := range controlPlanes(p.clusters.name, p.shape.Nodes) {
		missing = errors.Join(missing, c.copyOut(ctx, filepath.Dir(manifest), filepath.Join(dir, "kind", string(c), "manifests")))
	}
	return pool.Explain(dir, failed, p.kindSaid, missing)
}
