package mutants

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	kmsplugin "github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Plugins of the virtual control plane: the fake plugin with one thing changed.

// plugin is one with faults from its start, as --fault gives them on the command line.
func plugin(faults ...string) func() virtual.Options {
	return func() virtual.Options {
		var o virtual.Options
		for _, f := range faults {
			o.PluginArgs = append(o.PluginArgs, "--fault", f)
		}
		return o
	}
}

// updated is plugins that have faults from their second start: no API server gets ready with a plugin that has them.
func updated(faults ...string) func() virtual.Options {
	return restarted(func(p *startingPlugin) {
		for _, f := range faults {
			p.args = append(p.args, "--fault", f)
		}
	})
}

// restarted is plugins that are changed from their second start.
func restarted(change func(*startingPlugin)) func() virtual.Options {
	return func() virtual.Options {
		var mu sync.Mutex
		started := map[string]bool{} // by socket: other arguments depend on the scenario
		return pluginsBy(func(p *startingPlugin) {
			mu.Lock()
			defer mu.Unlock()
			which := p.args[1]
			if started[which] {
				change(p)
			}
			started[which] = true
		})()
	}
}

type startingPlugin = starting[cli.Configure]

// pluginsBy is plugins that are changed before they run, at each start anew. The remote KMS, which is the same program, is not changed.
func pluginsBy(change func(*startingPlugin)) func() virtual.Options {
	return startedBy(cluster.PluginProgram, cli.Main, func(p *startingPlugin) {
		if p.args[0] == "serve" {
			change(p)
		}
	})
}

// configuredPlugins is plugins with other options.
func configuredPlugins(change cli.Configure) func() virtual.Options {
	return pluginsBy(func(p *startingPlugin) { p.configure = append(p.configure, change) })
}

// unlinking is plugins that remove the path of their socket after their end.
func unlinking() virtual.Options {
	return replacing(cluster.PluginProgram, func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
		code := cli.Main(ctx, h, args, stdout, stderr)
		if path, serves := strings.CutPrefix(args[1], "--listen=unix://"); serves && args[0] == "serve" {
			_ = os.Remove(path)
		}
		return code
	})
}

// leasing is a plugin that decides otherwise about its lease.
func leasing(decide func(kmsplugin.Session, time.Time) kmsplugin.Act) func() virtual.Options {
	return configuredPlugins(func(o *kmsplugin.Options) { o.Decide = decide })
}

// withKMS is a plugin with something around its KMS.
func withKMS(around func(remotekms.Service) remotekms.Service) func() virtual.Options {
	return configuredPlugins(func(o *kmsplugin.Options) { o.Service = around(o.Service) })
}

// calling is a plugin that makes itself known to its KMS in another way, or does not call it.
func calling(change func(*remotekms.Caller) error) func() virtual.Options {
	return withKMS(func(s remotekms.Service) remotekms.Service { return calls{s, change} })
}

// calls is a KMS for callers that are changed before it encrypts or decrypts.
type calls struct {
	remotekms.Service
	change func(*remotekms.Caller) error
}

// Encrypt implements remotekms.Service.
func (s calls) Encrypt(ctx context.Context, c remotekms.Caller, key string, kek keyring.Ref, plaintext []byte) (remotekms.Sealed, error) {
	if err := s.change(&c); err != nil {
		return remotekms.Sealed{}, err
	}
	return s.Service.Encrypt(ctx, c, key, kek, plaintext)
}

// Decrypt implements remotekms.Service.
func (s calls) Decrypt(ctx context.Context, c remotekms.Caller, key string, ciphertext []byte) ([]byte, error) {
	if err := s.change(&c); err != nil {
		return nil, err
	}
	return s.Service.Decrypt(ctx, c, key, ciphertext)
}

// logIns is a KMS for callers that are changed before they log in.
type logIns struct {
	remotekms.Service
	change func(*remotekms.Caller, *remotekms.Terms)
}

// Lease implements remotekms.Service.
func (s logIns) Lease(ctx context.Context, c remotekms.Caller, terms remotekms.Terms) (remotekms.Lease, error) {
	s.change(&c, &terms)
	return s.Service.Lease(ctx, c, terms)
}

// loggingIn is a KMS for a caller that logs in before each Decrypt.
type loggingIn struct{ remotekms.Service }

// Decrypt implements remotekms.Service.
func (s loggingIn) Decrypt(ctx context.Context, c remotekms.Caller, key string, ciphertext []byte) ([]byte, error) {
	hour := remotekms.Duration(time.Hour)
	lease, err := s.Lease(ctx, remotekms.Caller{Plugin: c.Plugin}, remotekms.Terms{TTL: hour, Longest: hour})
	if err != nil {
		return nil, err
	}
	c.Lease = lease.ID
	return s.Service.Decrypt(ctx, c, key, ciphertext)
}

// renaming is a KMS whose ciphertexts name their KEK in another way.
type renaming struct {
	remotekms.Service
	change func(*keyring.KEK)
}

// Encrypt implements remotekms.Service.
func (s renaming) Encrypt(ctx context.Context, c remotekms.Caller, key string, kek keyring.Ref, plaintext []byte) (remotekms.Sealed, error) {
	sealed, err := s.Service.Encrypt(ctx, c, key, kek, plaintext)
	s.change(&sealed.KEK)
	return sealed, err
}

// described is such a KMS that also describes its KEKs so.
type described struct{ renaming }

// Describe implements remotekms.Service.
func (s described) Describe(ctx context.Context, c remotekms.Caller, key string) (remotekms.Key, error) {
	k, err := s.Service.Describe(ctx, c, key)
	k.KEKs = slices.Clone(k.KEKs)
	s.change(&k.Current)
	for i := range k.KEKs {
		s.change(&k.KEKs[i])
	}
	return k, err
}

// describing is plugins of such a KMS.
func describing(change func(*keyring.KEK)) func() virtual.Options {
	return withKMS(func(s remotekms.Service) remotekms.Service { return described{renaming{s, change}} })
}

// refusing is a KMS whose first refusal of a log-in is the last word.
type refusing struct {
	remotekms.Service
	mu      sync.Mutex
	refused error
}

// Lease implements remotekms.Service.
func (s *refusing) Lease(ctx context.Context, c remotekms.Caller, terms remotekms.Terms) (remotekms.Lease, error) {
	s.mu.Lock()
	refused := s.refused
	s.mu.Unlock()
	if refused != nil {
		return remotekms.Lease{}, refused
	}
	lease, err := s.Service.Lease(ctx, c, terms)
	if strings.HasPrefix(remotekms.Code(err), remotekms.CodeLogIn) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = err
	}
	return lease, err
}

// journaling changes the lines of a plugin's journal.
func journaling(h *host.Host, change func(*journal.Call)) {
	inner := *h
	h.AppendFunc = func(path string) (io.WriteCloser, error) {
		file, err := inner.Append(path)
		return lines{file, change}, err
	}
}

// lines changes each line of a journal on its way into a file.
type lines struct {
	io.WriteCloser
	change func(*journal.Call)
}

// Write implements io.Writer: b is a line.
func (l lines) Write(b []byte) (int, error) {
	var c journal.Call
	if err := json.Unmarshal(b, &c); err != nil {
		return 0, err
	}
	l.change(&c)
	if _, err := l.WriteCloser.Write(append(c.AppendJSON(nil), '\n')); err != nil {
		return 0, err
	}
	return len(b), nil
}
