package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

func load() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: polled, Profile: conformance.Extended,
			Title:       "Status can be polled",
			Rule:        "300 calls of Status in a row are answered, each within the timeout of a call.",
			Source:      sourceProto + ": \"this API is meant to be polled\"; " + sourceDocs + ": plugins must optimize Status, as it will be under constant load; timeout, by default 3 s",
			Consequence: "A poll fails, kube-apiserver reports the provider as unhealthy, and asks more often: every 10 s instead of every minute.",
		}, After: []string{StatusAnswers}, Run: statusPolled},
		{Check: conformance.Check{
			ID: inARow, Profile: conformance.Extended,
			Title:       "200 round trips in a row",
			Rule:        "One caller can call Encrypt and Decrypt 200 times in a row, each within the timeout of a call.",
			Source:      sourceDocs + ": timeout, by default 3 s; " + sourceKEP + ", Motivation, Performance: after a restart kube-apiserver lists with one Decrypt after another",
			Consequence: "A list after the start of kube-apiserver fails: failed to decrypt DEK.",
		}, After: []string{polled, RoundTrip}, Run: sequential},
		{Check: conformance.Check{
			ID: noMix, Profile: conformance.Extended,
			Title:       "callers get their own plaintext",
			Rule:        "When several callers encrypt and decrypt at the same time, each gets its own plaintext back, or an error.",
			Source:      sourceProto + ": DecryptResponse.plaintext is the decrypted data of the request; " + sourceConcurrent,
			Consequence: "kube-apiserver decrypts objects with the wrong key and cannot read them, or encrypts with a key that it cannot get again: the data is lost.",
		}, After: []string{inARow, DecryptAnyOrder}, Run: noMixUp},
		concurrent(10, conformance.Extended, sourceConcurrent+" (with 100 callers)", noMix),
		concurrent(100, conformance.Extended, sourceConcurrent+" has 100 callers", concurrentID(10)),
		concurrent(200, conformance.Robustness, "kube-apiserver --max-mutating-requests-inflight, by default 200: each may read an object whose DEK is not cached", concurrentID(100)),
		{Check: conformance.Check{
			ID: "KMS2-LOAD-KEY-ID-STEADY", Profile: conformance.Extended,
			Title:       "no old key_id under load",
			Rule:        "When several callers call Status at the same time, none sees a key_id again after it has seen another.",
			Source:      sourceKEP + ", Status API: the key_id must not flip-flop while it rotates; " + sourceConfig + ": rotateDEKOnKeyIDChange",
			Consequence: "kube-apiserver rotates its DEK at each change, and counts objects as stale that are not.",
		}, After: []string{polled, "KMS2-STATUS-KEY-ID-CONSTANT"}, Run: keyIDUnderLoad},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-STATUS-WITH-ENCRYPT", Profile: conformance.Extended,
			Title:       "Status is answered under load",
			Rule:        "Status is answered within the timeout of a call while others call Encrypt, as many as the plugin can serve in a third of that time.",
			Source:      sourceDocs + ": timeout, by default 3 s, applies to each call; plugins must optimize Status, as it will be under constant load",
			Consequence: "kube-apiserver reports the provider as unhealthy just because it is in use.",
		}, After: []string{inARow}, Run: statusUnderLoad},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-CANCELLED-CALLS", Profile: conformance.Extended,
			Title:       "cancelled calls harm nobody",
			Rule:        "Calls that their caller cancels do not make other calls fail.",
			Source:      sourceClient + ": Encrypt and Decrypt end with the context of their request, which ends when the client of kube-apiserver goes away",
			Consequence: "A user who interrupts kubectl makes the requests of others fail.",
		}, After: []string{concurrentID(10)}, Run: endEarly("cancelled", cancelled)},
		{Check: conformance.Check{
			ID: expired, Profile: conformance.Robustness,
			Title:       "an expired deadline harms nobody",
			Rule:        "A call whose deadline has passed when it arrives does not make other calls fail.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: Timeout is any positive time, here 1 ns",
			Consequence: "A call that kube-apiserver sends too late ends the plugin for everybody.",
		}, After: []string{SecondConnection, inARow}, Run: withFrames(expiredDeadline)},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-SHORT-DEADLINES", Profile: conformance.Extended,
			Title:       "calls with short deadlines harm nobody",
			Rule:        "Calls with deadlines of 1 ms to 10 ms do not make other calls fail.",
			Source:      sourceDocs + ": timeout may be any positive time; " + sourceClient + ": the deadline is that of the request if it is earlier",
			Consequence: "A request with a short timeout makes the requests of others fail.",
		}, After: []string{expired, concurrentID(10)}, Run: endEarly("with a deadline of 1 ms to 10 ms", withShortDeadline)},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-SLOW-READER", Profile: conformance.Robustness,
			Title:       "a slow reader blocks nobody",
			Rule:        "A client that does not read its answers does not delay others.",
			Source:      "RFC 9113, 5.2: flow control is for each connection; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "A kube-apiserver that is out of CPU, or stopped, stops all others.",
		}, After: []string{SecondConnection, polled}, Run: slowReader},
		{Check: conformance.Check{
			ID: churned, Profile: conformance.Extended,
			Title:       "200 connections, one after another",
			Rule:        "The plugin serves 200 connections that are opened, used and closed.",
			Source:      sourceConfig + ": each reload of the EncryptionConfiguration opens a connection and closes the old one; the plugin may run for months",
			Consequence: "After some reloads, or restarts of kube-apiserver, the provider is unhealthy until the plugin is restarted.",
		}, After: []string{SecondConnection, polled}, Run: churn},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-OPEN-CONNECTIONS", Profile: conformance.Robustness,
			Title:       "100 open connections block nobody",
			Rule:        "While 100 clients keep a connection open without a call, the plugin serves a further one.",
			Source:      sourceDocs + ": timeout, by default 3 s, for each call, whatever other clients of the socket do",
			Consequence: "Connections that clients forget, such as those of probes, keep kube-apiserver out.",
		}, After: []string{churned}, Run: openConnections},
		{Check: conformance.Check{
			ID: "KMS2-LOAD-CONNECTIONS-FREED", Profile: conformance.Extended,
			Title:       "closed connections are freed",
			Rule:        "When 200 connections have been closed by their clients, the plugin has about as many descriptors as before.",
			Source:      sourceConfig + ": each reload of the EncryptionConfiguration opens a connection and closes the old one; getrlimit(2), RLIMIT_NOFILE",
			Consequence: "The plugin runs out of descriptors and accepts no connection: kube-apiserver's calls end with DeadlineExceeded.",
			Needs:       []conformance.Capability{Process},
		}, After: []string{churned}, Run: closedConnections},
		steady(resource{
			id: descriptorsSteady, title: "descriptors do not grow", what: "open descriptors",
			calls: 2000, callers: 2, least: 10, above: 0.01, read: countDescriptors, after: []string{inARow},
		}),
		steady(resource{
			id: threadsSteady, title: "threads do not grow", what: "threads",
			calls: 2000, callers: 2, least: 10, above: 0.01, read: func(pid int) (int, error) { return readStatus(pid, "Threads") }, after: []string{inARow},
		}),
		steady(resource{
			id: "KMS2-LOAD-MEMORY-STEADY", title: "memory does not grow", what: "kB of resident memory",
			calls: 100_000, callers: 32, least: 8 << 10, above: 0.5, read: func(pid int) (int, error) { return readStatus(pid, "VmRSS") },
			after: []string{inARow, descriptorsSteady, threadsSteady},
		}),
	}
}

// inARow is the id of the check on which those with several callers depend.
const inARow = "KMS2-LOAD-SEQUENTIAL"

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
	err := inTurn(p, tripsInARow, "Encrypt and Decrypt", func() error {
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
	})
	if err != nil {
		return err
	}
	measure(p, "Encrypt", encrypts)
	measure(p, "Decrypt", decrypts)
	return nil
}

const noMix = "KMS2-LOAD-NO-MIX-UP"

// mixers and mixedTrips are the callers of the check and the round trips of each.
const (
	mixers     = 20
	mixedTrips = 5
)

func noMixUp(ctx context.Context, p *Plugin) error {
	n, err := capacity(ctx, p, mixers*mixedTrips, p.timing.Load/4)
	if err != nil {
		return err
	}
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

const sourceConcurrent = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service_unix_test.go: TestGRPCServiceConcurrentAccess"

// concurrentID is the id of the check with so many callers.
func concurrentID(callers int) string { return fmt.Sprintf("KMS2-LOAD-CONCURRENT-%d", callers) }

// concurrent is a check with several callers at the same time.
func concurrent(most int, profile conformance.Profile, source, after string) Check {
	return Check{Check: conformance.Check{
		ID: concurrentID(most), Profile: profile,
		Title:       fmt.Sprintf("%d callers at once", most),
		Rule:        fmt.Sprintf("Encrypt and Decrypt succeed for %d callers at once. They may take as long as one after another.", most),
		Source:      source,
		Consequence: "Reads of objects whose DEK is not cached fail while many are made: failed to decrypt DEK.",
	}, After: []string{after}, Run: func(ctx context.Context, p *Plugin) error {
		callers, err := capacity(ctx, p, most, p.timing.Load/2)
		if err != nil {
			return err
		}
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
	}}
}
