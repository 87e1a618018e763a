package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/fakeplugin/upstream"
	"github.com/kmsharness/kmsharness/internal/host"
)

// serveFlags are the flags of serve, as they were written.
type serveFlags struct {
	Options
	host                        host.Host
	listen, mode, node, keyID   string
	remote, key, upstream       string
	state                       string
	control, tokenFile          string
	remoteToken                 string
	profile                     string
	provider                    *profile.Profile // that profile names, or nil; read by options
	journal, logFormat, uid     string
	noticeLag, poll, remoteWait time.Duration
	injected                    []string
	seed                        uint64
	takeOver                    bool
}

// Values of --uid.
const (
	uidRequired = "required"
	uidOptional = "optional"
)

// NewServeCommand serves one plugin on a host until it is told to stop.
func NewServeCommand(h host.Host, o Options) *cobra.Command {
	f := serveFlags{host: h, Options: o}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a programmable KMS v2 plugin on a unix socket",
		Example: `  fake-kms-plugin serve --listen unix:///var/run/kmsplugin/kms-1.sock --control unix:///var/run/kmsplugin/control-1.sock
  fake-kms-plugin serve --listen unix:///tmp/kms-1.sock --state /tmp/kms-1
  fake-kms-plugin serve --listen unix:///tmp/kms-1.sock --fault hang:method=Status,for=30s --fault grpc-status:code=Internal,method=Decrypt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "KMS v2 endpoint, unix:///DIR/kms-KEYID.sock or unix:///@NAME (required)")
	flags.StringVar(&f.mode, "socket-mode", "0600", "permissions of the socket file, octal")
	flags.BoolVar(&f.takeOver, "take-over", false, "serve at sockets at which another process may serve still; it keeps its connections")
	flags.StringVar(&f.node, "node", "", "name of the node, for the journal and the remote KMS (default: the host's name)")
	flags.StringVar(&f.keyID, "key-id", "", "keyID of this instance (default: from the name of the socket, else 1)")
	flags.StringVar(&f.remote, "remote", "", "endpoint of the remote KMS (fake-kms-plugin remote); empty: one of its own")
	flags.StringVar(&f.state, "state", "", "folder that keeps the keys of a plugin without --remote over a restart; they protect test data only (default: keys in memory)")
	remoteTokenFlag(flags, &f.remoteToken)
	flags.StringVar(&f.upstream, "upstream", "", "endpoint of another KMS v2 plugin: stand in front of it, pass calls and answers on, and add faults, journal and control API")
	flags.StringVar(&f.key, "key", "default", "name of the key in the remote KMS")
	flags.StringVar(&f.profile, "profile", "", "provider that the plugin stands for, a name ("+strings.Join(o.Faults.Profiles.Names(), ", ")+") or the path of a file (docs/profiles.md): its key_id, latencies and failures")
	flags.StringVar(&f.control, "control", "", "endpoint of the control API: unix:///PATH, unix:///@NAME or tcp://HOST:PORT; empty: none")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the control API's bearer token; required with tcp")
	flags.StringVar(&f.journal, "journal", "", "file that every call is appended to as a JSON line")
	flags.DurationVar(&f.noticeLag, "notice-lag", 0, "how late this plugin notices a rotation of its remote key")
	flags.DurationVar(&f.poll, "poll", plugin.DefaultPoll, "how often it looks at the remote KMS")
	flags.DurationVar(&f.remoteWait, "remote-timeout", remotekms.DefaultTimeout, "deadline of a request to the remote KMS")
	flags.StringArrayVar(&f.injected, "fault", nil, "fault in force from the start, NAME[:k=v,...]; may be repeated")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of what faults leave to chance")
	flags.StringVar(&f.uid, "uid", uidRequired, "what to do with an Encrypt or Decrypt without a uid, as of an API server of before the uid: required (answer InvalidArgument) or optional (accept)")
	flags.StringVar(&f.logFormat, "log-format", "json", "json or text")
	return cmd
}

// run wires a plugin together. Whatever is wrong with the flags is found before anything listens.
func (f *serveFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	log, err := newLog(cmd.ErrOrStderr(), f.logFormat)
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	at, token, err := f.controlEndpoint()
	if err != nil {
		return err
	}
	calls, closeJournal, err := openJournal[journal.Call](f.host, f.journal)
	if err != nil {
		return err
	}
	defer closeJournal()
	o.Log, o.Journal = log, calls
	if f.upstream != "" {
		behind, err := f.behind(cmd.Flags())
		if err != nil {
			return err
		}
		o.Plugin = behind
		return f.serve(ctx, server.New(o), o, control.UpstreamKeys{Plugin: behind}, at, token)
	}
	service, closeService, err := f.service()
	if err != nil {
		return err
	}
	defer closeService()
	of := plugin.Options{
		Name: o.Node + "/" + o.KeyID, Key: f.key, Service: service, Clock: f.host.Clock(),
		Poll: f.poll, NoticeLag: f.noticeLag, Profile: f.provider, UIDOptional: f.uid == uidOptional,
	}
	for _, change := range f.Configure {
		change(&of)
	}
	p := plugin.New(of)
	o.Plugin = &plugin.Service{Plugin: p}
	_ = p.Poll(ctx) // a KMS that cannot be reached is a state that Status tells, not an error
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { p.Run(ctx); return nil })
	group.Go(func() error { return f.serve(ctx, server.New(o), o, control.PluginKeys{Plugin: p}, at, token) })
	return group.Wait()
}

// behind is the plugin in front of the one that --upstream names. It has no keys of its own.
func (f *serveFlags) behind(flags *pflag.FlagSet) (*upstream.Plugin, error) {
	for _, name := range []string{"remote", "remote-token-file", "state", "key", "profile", "notice-lag", "poll", "remote-timeout", "uid"} {
		if flags.Changed(name) {
			return nil, fmt.Errorf("--%s and --upstream: expected one of them, because keys are the business of the plugin at %s", name, f.upstream)
		}
	}
	at, err := endpoint.ParseUnix(f.upstream)
	if err != nil {
		return nil, fmt.Errorf("--upstream: %w", err)
	}
	return upstream.New(f.host, at), nil
}

// serve runs server and control API until ctx ends or one of them fails.
func (f *serveFlags) serve(ctx context.Context, s *server.Server, o server.Options, keys control.Keys, at endpoint.Endpoint, token string) error {
	if err := s.Start(); err != nil {
		return fmt.Errorf("listen at %s: %w", o.Listen, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx) })
	if !at.IsZero() {
		l, err := endpoint.Open(o.Host, at, endpoint.DefaultMode, o.TakeOver)
		if err != nil {
			return fmt.Errorf("control API at %s: %w", at, err)
		}
		api := control.API{Faults: f.Faults, Instance: s, Keys: keys, Journal: o.Journal, Token: token}
		group.Go(func() error { return httpjson.Serve(ctx, o.Host, l, api.Handler()) })
	}
	o.Log.Info("serving", "listen", o.Listen.String(), "node", o.Node, "keyID", o.KeyID, "control", at.String())
	return group.Wait()
}

func (f *serveFlags) options() (o server.Options, err error) {
	if f.listen == "" {
		return o, errors.New("--listen is missing: expected unix:///DIR/kms-KEYID.sock")
	}
	if o.Listen, err = endpoint.ParseUnix(f.listen); err != nil {
		return o, fmt.Errorf("--listen: %w", err)
	}
	if f.uid != uidRequired && f.uid != uidOptional {
		return o, fmt.Errorf("--uid %q: expected %s or %s", f.uid, uidRequired, uidOptional)
	}
	mode, err := strconv.ParseUint(f.mode, 8, 32)
	if err != nil || mode > 0o777 {
		return o, fmt.Errorf("--socket-mode %q: expected octal permissions such as 0660", f.mode)
	}
	if f.noticeLag < 0 || f.noticeLag > plugin.MaxNoticeLag {
		return o, fmt.Errorf("--notice-lag %v: expected 0s to %v", f.noticeLag, plugin.MaxNoticeLag)
	}
	if f.poll <= 0 || f.remoteWait <= 0 {
		return o, errors.New("--poll and --remote-timeout: expected positive durations")
	}
	o.Mode, o.Host, o.Exit, o.TakeOver = fs.FileMode(mode), f.host, f.host.Exit, f.takeOver
	o.Node, o.KeyID = nodeName(f.node), keyID(f.keyID, f.listen)
	if f.profile != "" {
		if f.provider, err = f.Faults.Profiles.Load(f.profile); err != nil {
			return o, fmt.Errorf("--profile: %w", err)
		}
	}
	o.Program = fault.NewProgram(o.Host.Clock(), f.seed)
	o.Program.SetProfile(f.provider) // faults may be its failures
	for _, text := range f.injected {
		parsed, err := f.Faults.ParseFlag(text)
		if err != nil {
			return o, fmt.Errorf("--fault %q: %w", text, err)
		}
		if _, err := o.Program.Inject(parsed); err != nil {
			return o, fmt.Errorf("--fault %q: %w", text, err)
		}
	}
	return o, nil
}

func (f *serveFlags) controlEndpoint() (at endpoint.Endpoint, token string, err error) {
	if f.control == "" {
		return at, "", nil
	}
	if at, err = endpoint.Parse(f.control); err != nil {
		return at, "", fmt.Errorf("--control: %w", err)
	}
	token, err = listenToken("control", at, f.tokenFile)
	return at, token, err
}

// remoteTokenFlag registers the token of a client of the remote KMS.
func remoteTokenFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "remote-token-file", "", "file with the bearer token of the remote KMS; required where that listens on tcp")
}

// service is the remote KMS: a server that all plugins share, or one in this process.
func (f *serveFlags) service() (remotekms.Service, func(), error) {
	switch {
	case f.remote != "" && f.state != "":
		return nil, nil, errors.New("--state and --remote: expected one of them, because the remote KMS keeps the keys")
	case f.remote == "":
		kms, err := f.ownKMS()
		return kms, func() {}, err
	}
	at, err := endpoint.Parse(f.remote)
	if err != nil {
		return nil, nil, fmt.Errorf("--remote: %w", err)
	}
	token, err := readToken(f.remoteToken)
	if err != nil {
		return nil, nil, err
	}
	client := remotekms.NewClient(f.host, at, token)
	client.Timeout = f.remoteWait
	return client, client.Close, nil
}

// ownKMS is a KMS in this process. Its keys are in memory only, unless --state names a folder.
func (f *serveFlags) ownKMS() (*remotekms.KMS, error) {
	if f.state == "" {
		return remotekms.New(remotekms.Options{Clock: f.host.Clock()})
	}
	if err := os.MkdirAll(f.state, 0o700); err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	kms, err := remotekms.New(remotekms.Options{Clock: f.host.Clock(), StateFile: filepath.Join(f.state, "keys.json")})
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	return kms, nil
}

// keyID is the one that was named, else the number in the socket's name, else 1.
func keyID(named, listen string) string {
	base := listen[strings.LastIndex(listen, "/")+1:]
	id, ok := strings.CutPrefix(strings.TrimSuffix(base, ".sock"), "kms-")
	if !ok {
		id = ""
	}
	return cmp.Or(named, id, "1")
}

func nodeName(named string) string {
	host, _ := os.Hostname() // empty with an error
	return cmp.Or(named, host, "node")
}
