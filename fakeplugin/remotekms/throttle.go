package remotekms

import (
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// CodeThrottled: the caller made more requests than its rule allows.
const CodeThrottled = "throttled"

// window counts the requests of one kind of one caller in a period.
type window struct {
	from time.Time
	n    int
}

// take counts a request, and refuses it if there were too many in the period. The caller holds k.mu.
func (k *KMS) take(what, plugin string, most int, period time.Duration) error {
	if most == 0 {
		return nil
	}
	now, w := k.o.Clock.Now(), k.windows[what+plugin]
	if now.Sub(w.from) >= period {
		w = window{from: now}
	}
	w.n++
	k.windows[what+plugin] = w
	if w.n > most {
		return keyring.Refuse(CodeThrottled, "%s of %s are throttled: more than %d in %v", what, plugin, most, period)
	}
	return nil
}

// LogIns is how many log-ins the KMS has seen, those that it refused among them.
func (k *KMS) LogIns() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.logIns
}
