package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Main is the program kmsharness-proxy. It ends with ctx.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := Parse(args, stdout)
	if err != nil {
		return entry.Exit(stderr, "kmsharness-proxy", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "kmsharness-proxy", entry.ExitFailed, Run(ctx, o))
}

// Run passes connections on until ctx ends. When it returns they have been reset and the ready file is gone.
func Run(ctx context.Context, o Options) (err error) {
	link, err := netfault.NewLinkAt(host.Host{}, "to "+o.Upstream, ":0", o.Upstream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if err := link.Set(o.Fault); err != nil {
		return err
	}
	if err := atomicfile.Write(o.Ready, []byte(link.Addr()), 0o644); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	<-ctx.Done()
	return errors.Join(link.Close(), os.Remove(o.Ready))
}
