package plugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// churned is the id of the check on which all others with many connections depend.
const churned = "KMS2-LOAD-CONNECTION-CHURN"

// Numbers of connections.
const (
	shortConnections = 200 // opened, used and closed
	atOnce           = 10  // of these
	openAtOnce       = 100 // left open
)

func churn() Check {
	return Check{
		Check: conformance.Check{
			ID: churned, Profile: conformance.Extended,
			Title:       "200 connections, one after another",
			Rule:        "The plugin serves 200 connections that are opened, used and closed.",
			Source:      sourceConfig + ": each reload of the EncryptionConfiguration opens a connection and closes the old one; the plugin may run for months",
			Consequence: "After some reloads, or restarts of kube-apiserver, the provider is unhealthy until the plugin is restarted.",
		},
		After: []string{SecondConnection, polled},
		Run: func(ctx context.Context, p *Plugin) error {
			n, err := useConnections(ctx, p)
			if err != nil {
				return found(fmt.Sprintf("Status on a new connection, after %d were opened and closed", n), err, "a response")
			}
			p.Measure("%d connections", n)
			return nil
		},
	}
}

// useConnections opens connections, calls Status on each and closes it. It returns how many were served.
func useConnections(ctx context.Context, p *Plugin) (int, error) {
	var served atomic.Int64
	var failed atomic.Pointer[error]
	began := time.Now()
	together(atOnce, func(int) {
		for range shortConnections / atOnce {
			if time.Since(began) > p.timing.Load/2 || failed.Load() != nil {
				return
			}
			if _, err := statusOnNew(ctx, p); err != nil {
				failed.Store(&err)
				return
			}
			served.Add(1)
		}
	})
	if err := failed.Load(); err != nil {
		return int(served.Load()), *err
	}
	return int(served.Load()), nil
}

func openConnections() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-OPEN-CONNECTIONS", Profile: conformance.Robustness,
			Title:       "100 open connections block nobody",
			Rule:        "While 100 clients keep a connection open without a call, the plugin serves a further one.",
			Source:      sourceDocs + ": timeout, by default 3 s, for each call, whatever other clients of the socket do",
			Consequence: "Connections that clients forget, such as those of probes, keep kube-apiserver out.",
		},
		After: []string{churned},
		Run: func(ctx context.Context, p *Plugin) error {
			for i := range openAtOnce {
				f, err := dialFrames(ctx, p)
				if err != nil {
					return found(fmt.Sprintf("connection %d of %d", i+1, openAtOnce), err, "a connection")
				}
				defer f.Close()
			}
			return othersServed(ctx, p, fmt.Sprintf("while %d are open", openAtOnce))
		},
	}
}

// spareDescriptors is how many descriptors more than before a plugin may have for reasons of its own.
const spareDescriptors = 20

func closedConnections() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-CONNECTIONS-FREED", Profile: conformance.Extended,
			Title:       "closed connections are freed",
			Rule:        "When 200 connections have been closed by their clients, the plugin has about as many descriptors as before.",
			Source:      sourceConfig + ": each reload of the EncryptionConfiguration opens a connection and closes the old one; getrlimit(2), RLIMIT_NOFILE",
			Consequence: "The plugin runs out of descriptors and accepts no connection: kube-apiserver's calls end with DeadlineExceeded.",
			Needs:       []conformance.Capability{Process},
		},
		After: []string{churned},
		Run: func(ctx context.Context, p *Plugin) error {
			pid, err := p.PID(ctx)
			if err != nil {
				return err
			}
			before, err := countDescriptors(pid)
			if err != nil {
				return err
			}
			n, err := useConnections(ctx, p)
			if err != nil {
				return found("Status on a new connection", err, "a response")
			}
			var after int
			_, freed := p.Poll(ctx, 20*time.Millisecond, p.timing.Call, func(context.Context) bool {
				after, err = countDescriptors(pid)
				return err != nil || after <= before+spareDescriptors
			})
			p.Measure("descriptors: %d before, %d after %d connections", before, after, n)
			if err != nil {
				return err
			}
			if !freed {
				return found(fmt.Sprintf("%d connections, opened and closed", n), fmt.Sprintf("%d open descriptors %v later, %d before", after, p.timing.Call, before), fmt.Sprintf("at most %d", before+spareDescriptors))
			}
			return nil
		},
	}
}
