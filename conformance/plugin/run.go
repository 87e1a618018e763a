package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/harness/starvation"
)

// Run checks a plugin. An error means that the run could not be made; what is wrong with the plugin is in the report.
func Run(ctx context.Context, subject Subject, o Options) (*conformance.Report, error) {
	s, err := Open(ctx, subject, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.all(ctx)
}

// all runs the checks of the session.
func (s *Session) all(ctx context.Context) (*conformance.Report, error) {
	o := s.options
	report := conformance.NewReport("plugin", Rules(o.Checks), o.Seed)
	report.Capabilities = s.has
	for _, c := range o.Checks {
		if !o.Selects(c.Check) {
			continue
		}
		result := s.Check(ctx, c)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the run was interrupted in %s: %w", c.ID, context.Cause(ctx))
		}
		report.Results = append(report.Results, result)
		if o.Progress != nil {
			o.Progress(result)
		}
	}
	report.Conclude()
	return report, nil
}

// Session is a plugin with what the checks so far have found. It is for one goroutine.
type Session struct {
	plugin   *Plugin
	options  Options
	has      []conformance.Capability
	outcomes map[string]conformance.Outcome // of the checks so far, by id
	answers  bool                           // Status has answered after some check
	down     string                         // the check after which the plugin no longer answered
	cleanup  []func()                       // called from the last to the first
}

// Open connects to a plugin, and starts it if the subject has a command. The caller closes the session.
func Open(ctx context.Context, subject Subject, o Options) (*Session, error) {
	o.complete()
	var ids []string
	for _, c := range o.Checks {
		ids = append(ids, c.ID)
	}
	if err := errors.Join(subject.Validate(), o.Validate(ids)); err != nil {
		return nil, err
	}
	s := &Session{options: o, outcomes: map[string]conformance.Outcome{}}
	if err := caught(func() error { return s.open(ctx, subject) }); err != nil {
		s.Close()
		return nil, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx)) // the session may outlive ctx
	var watching sync.WaitGroup
	watching.Go(func() { (&starvation.Watch{Record: s.plugin.starved.add}).Run(watch) })
	s.cleanup = append(s.cleanup, watching.Wait, stop)
	s.has, s.answers = s.plugin.capabilities(ctx, subject), s.plugin.answered
	return s, nil
}

// Close ends the plugin if the session started it.
func (s *Session) Close() {
	for _, f := range slices.Backward(s.cleanup) {
		f()
	}
}

// Check runs one check. Those that it depends on (Check.After) must come first.
func (s *Session) Check(ctx context.Context, c Check) conformance.Result {
	result := conformance.Result{Check: c.Check}
	began := time.Now()
	if result.Outcome, result.Reason = s.without(c); result.Outcome == "" {
		s.run(ctx, c, &result)
	}
	result.Duration = time.Since(began)
	s.outcomes[c.ID] = result.Outcome
	return result
}

// open connects to the plugin, and starts it if the subject has a command. A plugin that does not answer is no error.
func (s *Session) open(ctx context.Context, subject Subject) error {
	dir := need(os.MkdirTemp("", "kmsharness-conform-"))
	s.cleanup = append(s.cleanup, func() { _ = os.RemoveAll(dir) })
	timing := *s.options.Timing
	c := &client{timing: timing, traffic: &traffic{}}
	p := &Plugin{client: c, ownProcess: &ownProcess{client: c, waiting: s.options.Waiting}, steady: map[string]bool{}, dir: dir, addresses: subject.Addresses}
	s.plugin = p
	if subject.Second != "" {
		p.secondAt = need(endpoint.ParseUnix(subject.Second))
	}
	p.at = need(endpoint.ParseUnix(cmp.Or(subject.Endpoint, "unix://"+filepath.Join(dir, "kms.sock"))))
	state := filepath.Join(dir, "state")
	must(os.Mkdir(state, 0o700))
	values := map[string]string{"endpoint": p.at.String(), "socket": p.at.Address, "state": state}
	if len(subject.Addresses) > 0 {
		values["address"] = subject.Addresses[0]
	}
	p.hooks = &hooks{commands: subject.Hooks, values: values, timeout: timing.Hook}
	logFile := subject.Log
	if subject.Command != "" {
		own := filepath.Join(dir, "plugin.log")
		must(p.command(subject.Command, values, own))
		s.cleanup = append(s.cleanup, func() { _ = p.supervisor.Close(context.WithoutCancel(ctx)) })
		if logFile == "" {
			logFile = own
			must(os.WriteFile(own, nil, 0o600))
		}
	}
	p.logSource = need(newLogSource(logFile))
	p.conn = need(p.Dial())
	s.cleanup = append(s.cleanup, func() { _ = p.conn.Close() })
	if p.owned() {
		must(p.Launch(ctx))
		if p.WaitReady(ctx) == nil {
			return nil
		}
	}
	switch err := p.connect(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the plugin at %s: %w", p.at, context.Cause(ctx))
	default:
		return p.absent(context.WithoutCancel(ctx), err)
	}
}

// EndedError: the command of the plugin ended before it listened.
type EndedError struct{ text string }

func (e *EndedError) Error() string { return e.text }

// absent is the error of a plugin that cannot be connected to, with what to do about it. It kills the process of the plugin.
func (o *ownProcess) absent(ctx context.Context, err error) error {
	if !o.owned() {
		return fmt.Errorf("no plugin at %s: %w%s", o.at, err, hint(err))
	}
	if end, ended := o.ended(); ended {
		return &EndedError{fmt.Sprintf("no plugin at %s: the command has ended: %s; %s", o.at, end, o.lastWords())}
	}
	_ = o.Kill(ctx)
	return fmt.Errorf("no plugin at %s: %w; the command still ran after %v: make it listen at {endpoint} or {socket}; %s", o.at, err, o.timing.Start, o.lastWords())
}

// hint says what to do about an endpoint that cannot be connected to.
func hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; start the plugin first, or let --plugin-command start it"
	case errors.Is(err, fs.ErrPermission):
		return "; run as a user who may use the socket"
	default:
		return "; is the plugin running?"
	}
}

func (p *Plugin) capabilities(ctx context.Context, s Subject) (has []conformance.Capability) {
	for _, c := range []struct {
		capability conformance.Capability
		have       bool
	}{
		{SocketFile, p.at.IsFile()},
		{Process, p.readableProcess(ctx)},
		{Command, p.owned()},
		{Log, p.file != ""},
		{HookBreak, s.Hooks.Break != ""},
		{HookModes, strings.Contains(s.Hooks.Break, "{mode}")},
		{HookSlow, s.Hooks.Slow != ""},
		{HookRotate, s.Hooks.Rotate != ""},
		{HookCount, s.Hooks.Count != ""},
		{SecondInstance, s.Second != "" || p.template.Has("socket") || p.template.Has("endpoint")},
		{Addresses, len(s.Addresses) > 0},
	} {
		if c.have {
			has = append(has, c.capability)
		}
	}
	return has
}

// without is the outcome of a check that is not run, with the reason; empty if it is to be run.
func (s *Session) without(c Check) (conformance.Outcome, string) {
	if reason, ok := s.options.Skip[c.ID]; ok {
		return conformance.Skipped, reason
	}
	for _, need := range c.Needs {
		if !slices.Contains(s.has, need) {
			return conformance.NotSupported, "it needs " + explain[need]
		}
	}
	if c.Waits && s.options.WithoutWaits {
		return conformance.Skipped, "checks that wait were left out"
	}
	if s.down != "" {
		return conformance.Blocked, "the plugin no longer answers since " + s.down
	}
	for _, id := range c.After {
		switch o := s.outcomes[id]; o {
		case conformance.Failed, conformance.Blocked:
			return conformance.Blocked, fmt.Sprintf("it can show nothing: %s %s", id, o)
		case conformance.Inconclusive:
			return o, fmt.Sprintf("it can show nothing: %s is inconclusive", id)
		}
	}
	return "", ""
}

func (s *Session) run(ctx context.Context, c Check, result *conformance.Result) {
	p := s.plugin
	p.measured, p.broken = nil, ""
	p.traffic.late.Store(false)
	p.starved.take() // of what was before
	began := time.Now()
	p.rand = rand.New(rand.NewPCG(s.options.Seed, hash(c.ID)))
	restarts := p.restarts
	err := caught(func() error { return c.Run(ctx, p) })
	result.Measured = p.measured
	var finding *conformance.Finding
	var hook hookError
	var cannot unsupported
	switch {
	case err == nil:
		result.Outcome = conformance.Passed
	case errors.As(err, &cannot):
		result.Outcome, result.Reason = conformance.NotSupported, cannot.reason
	case errors.As(err, &hook):
		result.Outcome, result.Reason = conformance.Blocked, hook.Error()
	case errors.As(err, &finding):
		result.Outcome, result.Evidence = conformance.Failed, &finding.Evidence
		result.Consequence = cmp.Or(finding.Consequence, c.Consequence)
		if finding.Late {
			p.traffic.late.Store(true)
		}
	default:
		result.Outcome, result.Evidence = conformance.Failed, &conformance.Evidence{Response: show(err)}
	}
	if s.alive(ctx, c, result, p.restarts != restarts) {
		p.excuse(result, time.Since(began))
	}
}

// unsupported is the error of a check that the plugin gave nothing to judge, although it has the capabilities.
type unsupported struct{ reason string }

func (u unsupported) Error() string { return u.reason }

// excuse makes a failure inconclusive if a time passed in the check, and CPU starvation explains that.
func (p *Plugin) excuse(result *conformance.Result, took time.Duration) {
	if result.Outcome != conformance.Failed || !p.traffic.late.Load() {
		return
	}
	if waited := p.starved.take(); waited >= max(took/starvedShare, starvation.Late) {
		result.Outcome = conformance.Inconclusive
		result.Reason = fmt.Sprintf("the suite got no processor for %v of %v: %s", waited.Round(time.Millisecond), took.Round(time.Millisecond), &conformance.Finding{Evidence: *result.Evidence})
	}
}

// consequenceEnds is that of a plugin that no longer answers.
const consequenceEnds = "Every other call fails until the plugin has been started again."

// alive makes sure that the plugin answers after a check. One that does not is the finding of that check, and not of those that follow. It reports
// whether time can explain a failure: not that of a process that has ended, nor that of a socket at which nothing listens.
func (s *Session) alive(ctx context.Context, c Check, result *conformance.Result, restarted bool) bool {
	lost := s.lost(ctx)
	if lost == nil {
		return true
	}
	seen := s.plugin.seen(lost)
	_, ended := s.plugin.ended()
	if err := s.revive(ctx); err != nil && ctx.Err() == nil {
		s.down = c.ID
	}
	switch recovers := "KMS2-HONESTY-" + strings.ToUpper(s.plugin.broken) + "-RECOVERS"; {
	case result.Outcome == conformance.Passed && s.plugin.broken != "" && s.down == "" && s.outcomes[recovers] == "" && c.ID != recovers:
		// The check that comes later judges what is left of a failure of the KMS.
	case result.Outcome == conformance.Passed:
		result.Outcome, result.Consequence = conformance.Failed, consequenceEnds
		result.Evidence = &conformance.Evidence{Request: "Status after the check", Response: seen, Expected: "the plugin still answers"}
	case result.Evidence != nil && !restarted && !strings.Contains(result.Evidence.Response, seen):
		result.Evidence.Response += "; afterwards the plugin did not answer Status: " + seen
		if result.Consequence == consequenceNoAnswer {
			result.Consequence = consequenceEnds
		}
	}
	return !ended && status.Code(lost) != codes.Unavailable
}

// lost returns how Status fails for good; nil if it answers, or never did: KMS2-STATUS-ANSWERS judges that.
func (s *Session) lost(ctx context.Context) (err error) {
	for range aliveTries {
		if _, err = s.plugin.Status(ctx); err == nil {
			s.answers = true
			return nil
		}
		if !s.answers || ctx.Err() != nil {
			return nil
		}
		if !gone(err) {
			break
		}
	}
	if !gone(err) { // an error of the plugin's own may pass
		if _, ok := s.plugin.Poll(ctx, pollInterval, s.plugin.timing.Watch, func(ctx context.Context) bool {
			_, err = s.plugin.Status(ctx)
			return err == nil
		}); ok {
			return nil
		}
	}
	return err
}

// revive starts the plugin again, or waits until somebody else has.
func (s *Session) revive(ctx context.Context) error {
	if !s.plugin.owned() {
		return s.back(ctx)
	}
	return s.plugin.revive(ctx)
}

// aliveTries is how many calls of Status in a row must fail before a plugin counts as gone. One that fails now and then is judged by the checks
// of Status.
const aliveTries = 3

// gone reports whether an error is that of a plugin that does not run, or hangs.
func gone(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// back waits for a plugin that somebody else starts again.
func (s *Session) back(ctx context.Context) error {
	var err error
	s.plugin.conn.ResetConnectBackoff()
	s.plugin.Poll(ctx, 100*time.Millisecond, s.plugin.timing.Start, func(ctx context.Context) bool {
		if err = s.plugin.connect(ctx); err != nil {
			var refused *net.OpError
			return !errors.As(err, &refused) // nothing that time could mend
		}
		s.plugin.conn.ResetConnectBackoff()
		_, err = s.plugin.Status(ctx)
		return err == nil
	})
	return err
}

// hash gives each check random numbers of its own, so that they do not depend on which other checks run.
func hash(id string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, id) // never fails
	return h.Sum64()
}
