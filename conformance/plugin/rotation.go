package plugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// rotate rotates the key and waits until Status shows another key_id, or ends the check. It returns the answers of Status before and after.
func (p *Plugin) rotate(ctx context.Context) (before, after *kmsapi.StatusResponse, took time.Duration) {
	before = need(p.answer(ctx, "Status before the rotation"))
	must(p.Rotate(ctx))
	took, changed := p.Poll(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) bool {
		resp, err := p.Status(ctx)
		if err != nil {
			return false
		}
		after = resp
		return resp.KeyId != before.KeyId
	})
	if !changed {
		must(found(fmt.Sprintf("Status for %v after the hook rotated the key", p.timing.Notice), "key_id "+quote(before.KeyId)+" in each answer", "another key_id"))
	}
	return before, after, took
}

func rotationNoticed(ctx context.Context, p *Plugin) error {
	_, after, took := p.rotate(ctx)
	p.Measure("noticed after %v", took.Round(time.Millisecond))
	if after.Healthz != "ok" || after.KeyId == "" || len(after.KeyId) > maxKeyID {
		return found("Status after the rotation", after, fmt.Sprintf(`healthz "ok" and a key_id of 1 to %d bytes`, maxKeyID))
	}
	return nil
}

func rotationEncryptFollows(ctx context.Context, p *Plugin) error {
	_, after, _ := p.rotate(ctx)
	sealed := need(p.Seal(ctx))
	if sealed.KeyId != after.KeyId {
		return found("Encrypt after Status returned the new key_id", sealed.EncryptResponse, "key_id "+quote(after.KeyId))
	}
	return p.Unseal(ctx, sealed, "Decrypt of what was encrypted with the new key")
}

func rotationOldDecrypts(ctx context.Context, p *Plugin) error {
	var old []Sealed
	for range 2 {
		old = append(old, need(p.Seal(ctx)))
		p.rotate(ctx)
	}
	return p.unsealAll(ctx, old, "Decrypt of what was encrypted one or two rotations ago")
}

func rotationNoReturn(ctx context.Context, p *Plugin) error {
	before, _, _ := p.rotate(ctx)
	calls := 0
	return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		ask := p.Status
		if calls++; calls%10 == 0 {
			ask = func(ctx context.Context) (*kmsapi.StatusResponse, error) { return p.statusOnNew(ctx) }
		}
		if resp, err := ask(ctx); err == nil && resp.KeyId == before.KeyId {
			return found(fmt.Sprintf("Status, call %d after it returned the new key_id", calls), resp, "the new key_id")
		}
		return nil
	})
}

func rotationNewID(ctx context.Context, p *Plugin) error {
	seen := map[string]int{}
	for n := range 3 {
		before, after, _ := p.rotate(ctx)
		if n == 0 {
			seen[before.KeyId] = 0
		}
		if at, again := seen[after.KeyId]; again {
			return found(fmt.Sprintf("Status after rotation %d", n+1), after, fmt.Sprintf("a key_id other than that of after rotation %d", at))
		}
		seen[after.KeyId] = n + 1
	}
	return nil
}

func rotationServes(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	sealed := need(p.Seal(ctx))
	must(p.Rotate(ctx))
	var judged error
	used := map[string]bool{}
	_, changed := p.Poll(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) bool {
		next, err := p.Seal(ctx)
		if err == nil {
			used[next.KeyId] = true
			err = p.Unseal(ctx, next, "Decrypt during a rotation")
		}
		if err == nil {
			err = p.Unseal(ctx, sealed, "Decrypt during a rotation, of what was encrypted before")
		}
		judged = err
		resp, statusErr := p.Status(ctx)
		return judged != nil || statusErr == nil && resp.KeyId != before.KeyId
	})
	if judged != nil || !changed {
		return judged // a rotation that is not noticed is another finding
	}
	after := need(p.answer(ctx, "Status after the rotation"))
	for id := range used {
		if id != before.KeyId && id != after.KeyId {
			return found("Encrypt during a rotation", "key_id "+quote(id), "key_id "+quote(before.KeyId)+" or "+quote(after.KeyId))
		}
	}
	return nil
}

// Times and numbers of the check with callers across a rotation.
const (
	tornCallers = 8
	tornPoll    = 20 * time.Millisecond // between two calls of Status
	tornPause   = 5 * time.Millisecond  // between the beginnings of two calls of a caller
	tornAfter   = 500 * time.Millisecond
	tornKept    = 10
)

// edges keeps the first and the last answers of Encrypt with each key_id: a torn one is next to the change.
type edges map[string]*struct{ first, last []Sealed }

func (e edges) add(s Sealed) {
	of := e[s.KeyId]
	if of == nil {
		of = &struct{ first, last []Sealed }{}
		e[s.KeyId] = of
	}
	if len(of.first) < tornKept {
		of.first = append(of.first, s)
		return
	}
	of.last = append(of.last, s)
	of.last = of.last[max(0, len(of.last)-tornKept):]
}

// rotationTearsNothing has callers of Encrypt before, during and after a rotation, and decrypts what they got when it is over.
func rotationTearsNothing(ctx context.Context, p *Plugin) error {
	must(p.until(ctx, retry, p.timing.Notice, func(ctx context.Context) error { // a rotation of before may not be noticed yet
		_, _ = p.Status(ctx)
		_, err := p.Seal(ctx)
		return err
	}))
	callers := need(capacity(ctx, p, tornCallers, p.timing.Call/2))
	before := need(p.answer(ctx, "Status before the rotation"))
	var over atomic.Bool
	var sealed atomic.Int64
	trips, answers := roundTrips(p, callers), make([]edges, callers)
	wait := meanwhile(callers, func(caller int) {
		answers[caller] = edges{}
		pause := time.NewTicker(tornPause)
		defer pause.Stop()
		for ; !over.Load() && ctx.Err() == nil; <-pause.C {
			call, cancel := context.WithTimeout(ctx, p.timing.Call)
			trip := roundTrip{trips[caller].random, trips[caller].Bytes(SeedBytes)}
			if resp, err := trip.encrypt(call, p.Client()); err == nil { // KMS2-ROTATION-SERVES is about errors
				answers[caller].add(Sealed{trip.plaintext, resp})
				sealed.Add(1)
			}
			cancel()
		}
	})
	p.Poll(ctx, tornPoll, p.timing.Call, func(context.Context) bool { return sealed.Load() >= int64(callers) })
	polled := func(within time.Duration, until func(*kmsapi.StatusResponse) bool) {
		p.Poll(ctx, tornPoll, within, func(ctx context.Context) bool {
			resp, err := p.Status(ctx)
			return err == nil && until(resp)
		})
	}
	err := p.Rotate(ctx)
	if err == nil {
		polled(p.timing.Notice, func(resp *kmsapi.StatusResponse) bool { return resp.KeyId != before.KeyId })
		polled(tornAfter, func(*kmsapi.StatusResponse) bool { return false })
	}
	over.Store(true)
	wait()
	must(err)
	p.Measure("%d callers, %d calls of Encrypt", callers, sealed.Load())
	what := fmt.Sprintf("Decrypt of what Encrypt returned to %d callers during a rotation", callers)
	if sealed.Load() == 0 {
		return found(fmt.Sprintf("Encrypt by %d callers during a rotation", callers), "no call succeeded", "ciphertexts")
	}
	return each(answers, func(e edges) error {
		for _, id := range sortedKeys(e) {
			must(p.unsealAll(ctx, append(e[id].first, e[id].last...), what+", with key_id "+quote(id)))
		}
		return nil
	})
}
