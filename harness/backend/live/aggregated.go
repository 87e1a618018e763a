package live

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// scoped says of all that it passes on which API server it is about.
type scoped struct {
	to        record.Sink
	apiServer string
}

func (s scoped) Record(at time.Time, source string, payload any) {
	s.to.Record(at, s.apiServer+"/"+source, history.Of{APIServer: s.apiServer, Payload: payload})
}

// owned says of a process's change whose the process is.
func owned(payload any) any {
	if p, ok := payload.(*history.Process); ok && p.APIServer != "" {
		return history.Of{APIServer: p.APIServer, Payload: p}
	}
	return payload
}
