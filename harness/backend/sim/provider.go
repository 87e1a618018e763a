package sim

import (
	"errors"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
)

// provider is one KMS v2 provider of a configuration in force. It asks its plugin for Status, every minute and when somebody asks
// for its health, and keeps a data encryption key that is made at the start and when the plugin names another key_id.
//
// What it leaves out: KMS v1, and what is done with a key: objects are kept in clear text beside the name of their key.
type provider struct {
	e       *envelope
	keyID   string
	socket  dialler
	key     *dataKey             // nil before the first that was made
	opened  map[string]time.Time // keys in memory, by the uid of the Encrypt that sealed them, until when
	version string               // of the first Status
	last    health
	asking  bool
	waiting []func() // who asks for its health meanwhile
	closed  bool
}

// health is the outcome of a Status, which is believed for a while.
type health struct {
	err   error
	until time.Time
}

// dataKey is what a provider encrypts with.
type dataKey struct {
	uid     string // of the Encrypt that sealed it
	kekID   string
	legacy  bool // a key instead of a seed for keys, as before Kubernetes 1.29
	sealed  []byte
	expires time.Time // for writes
}

// Versions of the API that a Status may name.
const (
	kmsVersion     = "v2"
	kmsVersionBeta = "v2beta1"
)

func newProvider(e *envelope, keyID string) *provider {
	p := &provider{e: e, keyID: keyID, opened: map[string]time.Time{}}
	p.socket.p = p
	return p
}

func (p *provider) name() string     { return providerName(p.keyID) }
func (p *provider) times() kmsTimes  { return p.e.s.w.kms2 }
func (p *provider) clock() time.Time { return p.e.s.w.k.Now() }

// now is the time by which keys expire. It is monotonic: that a node's clock jumps expires none.
func (p *provider) now() time.Time { return p.clock().Add(p.e.s.w.kmsAhead) }

// run asks the plugin once, calls primed, and goes on asking.
func (p *provider) run(primed func()) {
	began := p.clock()
	p.check(func(err error) {
		if err != nil {
			p.askUntilHealthy(p.clock(), func() {})
		}
		p.askEveryMinute(began)
		primed()
	})
}

// askEveryMinute keeps the key_id up to date and the key from expiring. After a failure it waits until the plugin is well again.
func (p *provider) askEveryMinute(began time.Time) {
	p.tick(began, p.times().healthyPoll, func() {
		p.check(func(err error) {
			if err == nil {
				p.askEveryMinute(began)
				return
			}
			p.askUntilHealthy(p.clock(), func() { p.askEveryMinute(began) })
		})
	})
}

func (p *provider) askUntilHealthy(began time.Time, then func()) {
	p.tick(began, p.times().failingPoll, func() {
		p.check(func(err error) {
			if err == nil {
				then()
				return
			}
			p.askUntilHealthy(began, then)
		})
	})
}

// tick calls f at the next beat of a ticker that began some time ago. Beats that nobody waited for are lost.
func (p *provider) tick(began time.Time, every time.Duration, f func()) {
	beats := p.clock().Sub(began)/every + 1
	p.e.s.at(began.Add(beats*every), func() {
		if !p.closed {
			f()
		}
	})
}

// check says how the plugin is: what it said a while ago, or what it says now. One asks at a time, and the others wait for that.
// Of a Status that failed the one who asked hears more than those who hear of it later.
func (p *provider) check(done func(error)) {
	switch {
	case p.asking:
		p.waiting = append(p.waiting, func() { p.check(done) })
	case p.clock().Before(p.last.until):
		done(p.last.err)
	default:
		p.asking = true
		p.call(fault.Status, &kmsapi.StatusRequest{}, func(resp any, err error) {
			if err != nil {
				configured := fmt.Errorf("failed to perform status section of the healthz check for KMS Provider %s, error: %w", p.name(), err)
				p.checked(err, configured, done)
				return
			}
			p.judge(statusOf(resp), func(err error) { p.checked(err, err, done) })
		})
	}
}

// statusOf is what a client reads of an answer: a message without content is an empty one.
func statusOf(resp any) *kmsapi.StatusResponse {
	if s, ok := resp.(*kmsapi.StatusResponse); ok {
		return s
	}
	return &kmsapi.StatusResponse{}
}

func (p *provider) checked(kept, configured error, done func(error)) {
	believed := p.times().healthGood
	if kept != nil {
		believed = p.times().healthBad
	}
	p.asking, p.last = false, health{kept, p.clock().Add(believed)}
	waiting := p.waiting
	p.waiting = nil
	done(configured)
	for _, ask := range waiting {
		ask()
	}
}

// judge is what a Status means. A key_id that can be used is used, also of a plugin that says that it is not well
// (kubernetes/kubernetes#138950), unless the simulation is of an API server that is mended in this.
func (p *provider) judge(s *kmsapi.StatusResponse, done func(error)) {
	var errs []error
	if s.Healthz != "ok" {
		errs = append(errs, fmt.Errorf("got unexpected healthz status: %s", s.Healthz))
	}
	errs = append(errs, p.judgeVersion(s.Version))
	finish := func(err error) {
		if err = utilerrors.Reduce(utilerrors.NewAggregate(append(errs, err))); err != nil {
			err = fmt.Errorf("kmsv2 Provider %s is not healthy, error: %w", p.name(), err)
		}
		done(err)
	}
	switch err := checkKeyID(s.KeyId); {
	case err != nil:
		finish(fmt.Errorf("got invalid KMSv2 KeyID hash %q: %w", hashOf(s.KeyId), err))
	case s.Healthz != "ok" && p.e.s.w.unhealthy == UnhealthyCoasts:
		finish(nil)
	default:
		p.rotate(s.KeyId, finish)
	}
}

func (p *provider) judgeVersion(version string) error {
	if version != kmsVersion && version != kmsVersionBeta {
		return fmt.Errorf("expected KMSv2 API version %s, got %s", kmsVersion, version)
	}
	if p.version == "" {
		p.version = version
	}
	if p.version != version {
		return fmt.Errorf("KMSv2 API version should not change after the initial status response version %s, got %s", p.version, version)
	}
	return nil
}

// call is one RPC. Like the API server's it waits for a connection as long as for an answer.
func (p *provider) call(method fault.Method, req any, done func(resp any, err error)) {
	until := p.clock().Add(p.times().call)
	answered := func(r response) {
		p.e.s.Enter(p.e.s.incarnation, func() {
			switch {
			case r.code != "OK":
				done(nil, fmt.Errorf("rpc error: code = %s desc = %s", r.code, r.text))
			case r.resp == nil:
				done(nil, errors.New("rpc error: code = Internal desc = the plugin answered nothing"))
			default:
				done(r.resp, nil)
			}
		})
	}
	p.socket.connected(until, func(g *kmsPlugin, problem string) {
		if g == nil {
			answered(response{code: "DeadlineExceeded", text: problem})
			return
		}
		g.call(method, req, until.Sub(p.clock()), answered)
	})
}
