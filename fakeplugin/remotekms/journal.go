package remotekms

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// Operation is one line of the KMS's journal: every Encrypt and Decrypt with the uid of the KMS v2 request, and every
// change by an administrator. Describe is a plugin's poll and left out unless it failed.
type Operation struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`           // when it was done
	Began   time.Time `json:"began,omitzero"` // encrypt, decrypt
	Op      string    `json:"op"`             // encrypt, decrypt, describe, create, rotate, reuse, state, rule, unrule, log-in, renew
	Key     string    `json:"key,omitempty"`
	Plugin  string    `json:"plugin,omitempty"`
	UID     string    `json:"uid,omitempty"`
	KEKID   string    `json:"kekID,omitempty"`
	Version int       `json:"version,omitempty"`
	Code    string    `json:"code"` // "ok", "unreachable" for a caller that was cut off, or a refusal's code
	Detail  string    `json:"detail,omitempty"`
}

// WithSeq implements journal.Entry.
func (o Operation) WithSeq(seq uint64) Operation { o.Seq = seq; return o }

func (k *KMS) record(o Operation, err error) {
	o.Time, o.Code = k.o.Clock.Now().UTC(), "ok"
	if err != nil {
		o.Code, o.Detail = cmp.Or(Code(err), "unreachable"), journal.Text(err.Error())
	}
	o.UID = journal.Text(o.UID)
	k.o.Journal.Append(o)
	if ctx := context.Background(); k.o.Log.Enabled(ctx, slog.LevelInfo) {
		k.o.Log.LogAttrs(ctx, slog.LevelInfo, o.Op, slog.String("uid", o.UID), slog.String("plugin", o.Plugin), slog.String("key", o.Key),
			slog.String("kekID", o.KEKID), slog.String("code", o.Code))
	}
}
