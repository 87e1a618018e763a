package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
)

// envelope is the KMS v2 encryption of an API server: a data encryption key for each provider, made at the start and when the
// plugin names another key_id, and good for writes for as long as the plugin says so.
type envelope struct {
	s        *server
	wanted   encryptionConfig // the file
	loaded   encryptionConfig // what is in force
	keys     map[string]*dataKey
	opened   map[string]bool // sources of keys that are in memory, by uid
	started  bool
	checking bool
}

// Constants of k8s.io/apiserver, and of the local backend: the harness's binaries look at the file every second.
const (
	healthyPoll, failingPoll = time.Minute, 10 * time.Second
	keyLifetime              = 3 * time.Minute
	kmsTimeout               = 3 * time.Second
	filePoll                 = time.Second
)

// encryptionConfig is an EncryptionConfiguration.
type encryptionConfig struct {
	keyIDs   []string
	identity bool // comes first: what is written stays in clear text
}

func (c encryptionConfig) equal(o encryptionConfig) bool {
	return c.identity == o.identity && slices.Equal(c.keyIDs, o.keyIDs)
}

// writer is the name of the provider that encrypts what is written.
func (c encryptionConfig) writer() string {
	if c.identity {
		return encryptionIdentity
	}
	return "kms-" + c.keyIDs[0]
}

// dataKey is the key of one provider.
type dataKey struct {
	keyID   string
	uid     string // of the Encrypt that sealed it
	kekID   string
	sealed  []byte
	expires time.Time
}

func newEnvelope(s *server) *envelope {
	return &envelope{s: s, keys: map[string]*dataKey{}, opened: map[string]bool{}}
}

// forget is the end of the process; the file stays.
func (e *envelope) forget() {
	*e = envelope{s: e.s, wanted: e.wanted, keys: map[string]*dataKey{}, opened: map[string]bool{}}
}

// prime loads the file at the start. A plugin that does not answer fails nothing but what needs it.
func (e *envelope) prime() {
	if e.started {
		return
	}
	e.started, e.loaded = true, e.wanted
	for _, k := range e.loaded.keyIDs {
		e.keys[k] = &dataKey{keyID: k}
		e.ask(e.keys[k], func(error) {})
	}
}

// configure writes the file; it is in force some time later.
func (e *envelope) configure(c encryptionConfig) {
	e.wanted = c
	if e.started && !e.checking {
		e.checking = true
		e.s.after(e.s.w.k.Between(0, filePoll), e.reload)
	}
}

// current says whether the file is in force.
func (e *envelope) current() bool { return e.started && e.loaded.equal(e.wanted) }

// reload takes the file over when every new provider works, and tries again later if not.
func (e *envelope) reload() {
	if e.loaded.equal(e.wanted) {
		e.checking = false
		return
	}
	c := e.wanted
	e.try(c.keyIDs, func(err error) {
		if err == nil {
			e.loaded = c
			for k := range e.keys {
				if !slices.Contains(c.keyIDs, k) {
					delete(e.keys, k)
				}
			}
		}
		e.s.after(filePoll, e.reload)
	})
}

// try makes sure that there is a key for each keyID.
func (e *envelope) try(keyIDs []string, done func(error)) {
	i := slices.IndexFunc(keyIDs, func(k string) bool { return e.keys[k] == nil || e.keys[k].uid == "" })
	if i < 0 {
		done(nil)
		return
	}
	k := &dataKey{keyID: keyIDs[i]}
	e.ask(k, func(err error) {
		if err != nil {
			done(err)
			return
		}
		e.keys[k.keyID] = k
		e.try(keyIDs, done)
	})
}

// ask asks the plugin for its Status, makes a new key if its key_id is another one, and asks again later.
func (e *envelope) ask(k *dataKey, done func(error)) {
	asked := e.s.w.k.Now()
	e.s.node.plugin(k.keyID).call(fault.Status, &kmsapi.StatusRequest{}, kmsTimeout, func(r response) {
		e.s.bind(func() {
			status, ok := r.resp.(*kmsapi.StatusResponse)
			switch {
			case r.code != "OK" || !ok:
				e.asked(k, fmt.Errorf("rpc error: code = %s desc = %s", r.code, r.text), done)
			case k.uid != "" && status.KeyId == k.kekID:
				k.expires = asked.Add(keyLifetime) // whatever healthz says: kubernetes/kubernetes#138950
				e.asked(k, nil, done)
			default:
				e.renew(k, asked, done)
			}
		})()
	})
}

// renew seals a new key.
func (e *envelope) renew(k *dataKey, asked time.Time, done func(error)) {
	w, plain := e.s.w, make([]byte, 32)
	_, _ = bytesOf{w.k.Rand()}.Read(plain)
	uid := w.uid()
	w.record("log/"+e.s.node.name, &history.Envelope{Hop: "kube-apiserver", Op: "encrypt", UID: uid, Node: e.s.node.name, OK: true})
	e.s.node.plugin(k.keyID).call(fault.Encrypt, &kmsapi.EncryptRequest{Plaintext: plain, Uid: uid}, kmsTimeout, func(r response) {
		e.s.bind(func() {
			sealed, ok := r.resp.(*kmsapi.EncryptResponse)
			if r.code != "OK" || !ok || len(sealed.Ciphertext) == 0 || sealed.KeyId == "" {
				e.asked(k, errors.New("failed to rotate DEK"), done)
				return
			}
			k.uid, k.kekID, k.sealed, k.expires = uid, sealed.KeyId, sealed.Ciphertext, asked.Add(keyLifetime)
			e.opened[uid] = true
			e.asked(k, nil, done)
		})()
	})
}

func (e *envelope) asked(k *dataKey, err error, done func(error)) {
	done(err)
	if e.keys[k.keyID] != k && err != nil {
		return // it was only tried
	}
	wait := healthyPoll
	if err != nil {
		wait = failingPoll
	}
	e.s.after(wait, func() {
		if e.keys[k.keyID] == k {
			e.ask(k, func(error) {})
		}
	})
}
