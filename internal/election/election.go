// Package election lets one of several replicas of a program work, by client-go's leader election over a Lease.
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type Options struct {
	Namespace, Name string        // of the lease
	Identity        string        // unique per process
	LeaseDuration   time.Duration // a standby takes over this long after the last renewal
	RenewDeadline   time.Duration // a leader that could not renew for this long stops; less than LeaseDuration
	RetryPeriod     time.Duration // between two tries of either; RenewDeadline must exceed it by client-go's factor 1.2
}

// Defaults has the times of kube-controller-manager, and an identity that differs between two processes of one host, and between two lives of one
// process id.
func Defaults(namespace, name string) Options {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Options{Namespace: namespace, Name: name, Identity: fmt.Sprintf("%s_%s", host, uuid.NewString()),
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// AddFlags registers the flags with o's values as defaults. The default of the name may be made later: it is described by byDefault.
func (o *Options) AddFlags(f *pflag.FlagSet, byDefault string) {
	f.StringVar(&o.Namespace, "leader-elect-namespace", o.Namespace, "namespace of the lease")
	f.StringVar(&o.Name, "leader-elect-name", o.Name, "name of the lease; default "+byDefault)
	f.StringVar(&o.Identity, "leader-elect-identity", o.Identity, "holder identity, unique per process")
	f.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "a standby takes over this long after the last renewal")
	f.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "a leader that could not renew for this long stops leading")
	f.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "time between two tries to acquire or renew")
}

// Validate says what is wrong with the flags, all of it at once. It has client-go's own rules, which it would otherwise tell only once it runs.
func (o Options) Validate() (all []error) {
	that := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	name := func(flag, value string, check func(string) []string) {
		for _, problem := range check(value) {
			all = append(all, fmt.Errorf("%s %q: %s", flag, value, problem))
			return
		}
	}
	name("--leader-elect-namespace", o.Namespace, validation.IsDNS1123Label)
	name("--leader-elect-name", o.Name, validation.IsDNS1123Subdomain)
	that(o.Identity != "", "--leader-elect-identity: must not be empty")
	that(o.RetryPeriod > 0, "--leader-elect-retry-period %v: must be positive", o.RetryPeriod)
	that(o.LeaseDuration >= time.Second, "--leader-elect-lease-duration %v: must be at least 1s, the precision of a lease", o.LeaseDuration)
	that(o.RenewDeadline < o.LeaseDuration, "--leader-elect-renew-deadline %v: must be less than the lease duration %v", o.RenewDeadline, o.LeaseDuration)
	least := time.Duration(float64(o.RetryPeriod) * leaderelection.JitterFactor)
	that(o.RenewDeadline > least, "--leader-elect-renew-deadline %v: must be more than %v, the retry period with its jitter", o.RenewDeadline, least)
	return all
}

// Lead works while it holds the lease, and stands by otherwise, until ctx ends or work fails. Losing the lease (an API server that was away for too long)
// ends the ctx of work, and not the process: nobody has to restart it.
func (o Options) Lead(ctx context.Context, client coordination.LeasesGetter, log *slog.Logger, work func(context.Context) error) (err error) {
	t := &terms{Options: o, log: log, work: work, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}}
	for ctx.Err() == nil && err == nil {
		err = t.term(ctx)
	}
	return err
}

// terms are the times in which a process leads.
type terms struct {
	Options
	log  *slog.Logger
	lock resourcelock.Interface
	work func(context.Context) error
}

// term stands by, leads, and ends when the lease is lost or ctx ends. On the way out the work stops first and the lease is released after it, so that no
// successor meets a write of ours.
func (t *terms) term(ctx context.Context) (failed error) {
	lease, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var working sync.Mutex
	stop := context.AfterFunc(ctx, func() {
		working.Lock() // held while there is work
		defer working.Unlock()
		release()
	})
	defer stop()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            t.lock,
		LeaseDuration:   t.LeaseDuration,
		RenewDeadline:   t.RenewDeadline,
		RetryPeriod:     t.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            t.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				working.Lock()
				defer working.Unlock()
				if failed = t.serve(ctx, leading); failed != nil {
					release()
				}
			},
			OnStoppedLeading: func() { t.log.Info("not leading") },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(lease)
	working.Lock() // the next term must not begin before this one's work has ended
	defer working.Unlock()
	return failed
}

// serve works while both the process and the lease last.
func (t *terms) serve(ctx, leading context.Context) error {
	leading, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if ctx.Err() != nil || leading.Err() != nil {
		return nil
	}
	t.log.Info("leading", "identity", t.Identity)
	if err := t.work(leading); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
