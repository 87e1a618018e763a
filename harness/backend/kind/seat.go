package kind

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// seat is the place of one replica of the aggregator. The pod in it changes when its node is drained: the Deployment makes
// another, whose program waits for its command.
type seat struct {
	dir string // of the units' files on this machine

	mu        sync.Mutex
	name      string // of the pod; empty: nobody is in it
	node      string
	unit      *held
	command   func(context.Context) ([]string, error)
	following func(dir, unit string) error
}

var _ live.Unit = (*seat)(nil)

// pod is the one in the seat, and its node.
func (s *seat) pod() (name, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.node
}

// put puts a pod into the seat.
func (s *seat) put(name, node string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name, s.node = name, node
	if s.unit, err = newHeld(s.dir, unitOfAggregator(name)); err != nil {
		return err
	}
	s.unit.command = s.command
	if s.following == nil {
		return nil
	}
	return s.following(s.dir, s.unit.name)
}

// take makes the seat a scenario's.
func (s *seat) take(command func(context.Context) ([]string, error), follow func(dir, unit string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command, s.following, s.unit.command = command, follow, command
	return follow(s.dir, s.unit.name)
}

func (s *seat) held() *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unit
}

// Start implements live.Unit, and so do the others.
func (s *seat) Start(ctx context.Context) error  { return s.held().Start(ctx) }
func (s *seat) Stop(ctx context.Context) error   { return s.held().Stop(ctx) }
func (s *seat) Kill(ctx context.Context) error   { return s.held().Kill(ctx) }
func (s *seat) Pause(ctx context.Context) error  { return s.held().Pause(ctx) }
func (s *seat) Resume(ctx context.Context) error { return s.held().Resume(ctx) }
func (s *seat) Status() live.Status              { return s.held().Status() }

// seatAggregators waits until the Deployments are complete and gives every pod a seat. A pod that has one keeps it.
func (p *plane) seatAggregators(ctx context.Context) error {
	through, err := p.donor("")
	if err != nil {
		return err
	}
	client, err := p.typed(through.Server.URL())
	if err != nil {
		return err
	}
	return p.seatAll(ctx, client)
}

func (p *plane) seatAll(ctx context.Context, client kubernetes.Interface) error {
	if err := seatOne(ctx, client, aggregators, p.aggregators); err != nil {
		return err
	}
	for _, f := range p.fleets {
		if err := seatOne(ctx, client, aggregatorsOf(f.Stand.APIServer), f.aggregators); err != nil {
			return err
		}
	}
	return nil
}

// seatOne does it for one Deployment.
func seatOne(ctx context.Context, client kubernetes.Interface, name string, seats []*seat) error {
	return until(ctx, 10*readyPoll, "wait for the pods of "+name, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(aggregators).List(ctx, metav1.ListOptions{LabelSelector: labelAggregator + "=" + name})
		if err != nil {
			return err
		}
		return assign(seats, running(pods.Items))
	})
}

// running are the nodes of the pods that run, by the pods' names.
func running(pods []corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			all[pod.Name] = pod.Spec.NodeName
		}
	}
	return all
}

// assign puts pods without a seat, in the order of their names, into seats whose pod is gone; an error while there are too
// few or too many.
func assign(seats []*seat, pods map[string]string) error {
	if len(pods) != len(seats) {
		return fmt.Errorf("%d pods run, expected %d", len(pods), len(seats))
	}
	free := maps.Clone(pods)
	var empty []*seat
	for _, s := range seats {
		name, _ := s.pod()
		if _, there := free[name]; !there {
			empty = append(empty, s)
			continue
		}
		delete(free, name)
	}
	for i, name := range slices.Sorted(maps.Keys(free)) {
		if err := empty[i].put(name, free[name]); err != nil {
			return err
		}
	}
	return nil
}
