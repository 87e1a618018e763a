package plugin

import (
	"context"
	"fmt"
	"time"
)

// tripsInARow is how many round trips the check makes.
const tripsInARow = 200

// inTurn makes calls one after another for a part of the time of a check with many calls. A single one may end late: that may be due to the machine.
func inTurn(p *Plugin, calls int, what string, call func() error) error {
	timeouts := 0
	began := time.Now()
	for n := 1; n <= calls && time.Since(began) < p.timing.Load/3; n++ {
		err := call()
		if late(err) {
			timeouts++
		}
		if err != nil && (!late(err) || timeouts > 1) {
			return found(fmt.Sprintf("%s, %d times in a row", what, n), err, "a response within "+p.timing.Call.String())
		}
	}
	return nil
}

func sequential(ctx context.Context, p *Plugin) error {
	var encrypts, decrypts []time.Duration
	must(inTurn(p, tripsInARow, "Encrypt and Decrypt", func() error {
		plaintext := p.Bytes(SeedBytes)
		began := time.Now()
		sealed, err := p.Encrypt(ctx, plaintext)
		encrypts = append(encrypts, time.Since(began))
		if err != nil {
			return err
		}
		began = time.Now()
		back, err := p.Decrypt(ctx, sealed)
		decrypts = append(decrypts, time.Since(began))
		if err == nil && string(back) != string(plaintext) {
			return errOther
		}
		return err
	}))
	measure(p, "Encrypt", encrypts)
	measure(p, "Decrypt", decrypts)
	return nil
}

// mixers and mixedTrips are the callers of the check and the round trips of each.
const (
	mixers     = 20
	mixedTrips = 5
)

func noMixUp(ctx context.Context, p *Plugin) error {
	n := need(capacity(ctx, p, mixers*mixedTrips, p.timing.Load/4))
	callers := min(n, mixers)
	trips := roundTrips(p, callers*mixedTrips)
	ctx, cancel := context.WithTimeout(ctx, p.timing.Load/2)
	defer cancel()
	var all tally // other checks are about errors
	together(callers, func(caller int) {
		for _, trip := range trips[caller*mixedTrips : (caller+1)*mixedTrips] {
			all.add(ctx, p, trip)
		}
	})
	p.Measure("%d callers: %d round trips", callers, all.right)
	if all.wrong > 0 {
		return found(fmt.Sprintf("Encrypt and Decrypt by %d callers at once", callers), fmt.Sprintf("%d of %d calls of Decrypt returned another plaintext", all.wrong, all.wrong+all.right), "the plaintext that was encrypted, each time")
	}
	return nil
}

// concurrent is a check with several callers at the same time.
func concurrent(most int) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		callers := need(capacity(ctx, p, most, p.timing.Load/2))
		trips := roundTrips(p, callers)
		ctx, cancel := context.WithTimeout(ctx, p.timing.Load)
		defer cancel()
		var all tally
		together(callers, func(caller int) { all.add(ctx, p, trips[caller]) })
		p.Measure("%d callers, %d of them did not finish in %v", callers, all.late, p.timing.Load)
		request := fmt.Sprintf("Encrypt and Decrypt by %d callers at once", callers)
		switch {
		case all.failed+all.wrong > 0:
			return found(request, fmt.Sprintf("%d failed, the first with: %s", all.failed+all.wrong, show(all.first)), "no error")
		case all.late == callers:
			return found(request, fmt.Sprintf("none had finished after %v", p.timing.Load), "answers, as for a single caller")
		}
		return nil
	}
}
