package kind

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
)

// portStreams is the port of the streams of reporters, of the aggregators' pods and of their Services. One port for both: a rule of the packet
// filter matches before and after the address of a Service is translated.
const portStreams = "9443"

// labelReplica is the label of an aggregator's pod with the number of its replica, from 1.
const labelReplica = "kmsharness.io/replica"

// objectWriter is a client of an API server that makes and changes objects.
type objectWriter interface {
	Create(ctx context.Context, o k8s.Object, opts ...resources.CreateOption) error
	Patch(ctx context.Context, o k8s.Object, patch k8s.Patch, opts ...resources.PatchOption) error
}

// serveStreams makes a Service for each replica. A reporter in a static pod is in the network of its node, where names of Services do not resolve:
// it gets one address for each replica instead of the name of a headless Service. The address stays when a replica's pod is replaced.
func (d *deployment) serveStreams(ctx context.Context, client objectWriter) error {
	for i, r := range d.replicas {
		made := d.service(i + 1)
		if err := client.Create(ctx, made); err != nil {
			return fmt.Errorf("service for the streams of reporters: %w", err)
		}
		r.streams = net.JoinHostPort(made.Spec.ClusterIP, portStreams)
	}
	return nil
}

// service leads to the pod of the i-th replica, from 1. It does so before the pod is ready: a replica without an aggregator must refuse connections,
// and the first replica to serve after an outage must not wait for probes.
func (d *deployment) service(i int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: aggregators, Name: fmt.Sprintf("%s-%d", d.name, i)},
		Spec: corev1.ServiceSpec{
			Selector:                 map[string]string{labelAggregator: d.name, labelReplica: strconv.Itoa(i)},
			Ports:                    []corev1.ServicePort{{Name: "streams", Port: intstr.Parse(portStreams).IntVal, TargetPort: intstr.Parse(portStreams)}},
			PublishNotReadyAddresses: true,
		},
	}
}

// label gives the pods of the replicas their numbers, by which their Services select them.
func (d *deployment) label(ctx context.Context, client objectWriter) error {
	for i, r := range d.replicas {
		name, _ := r.where()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: aggregators, Name: name}}
		patch := k8s.Patch{PatchType: types.MergePatchType, Data: fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, labelReplica, i+1)}
		if err := client.Patch(ctx, pod, patch); err != nil {
			return fmt.Errorf("label the pod of replica %d of %s: %w", i+1, d.name, err)
		}
	}
	return nil
}

// addresses are where reporters find the replicas; none where they do not stream.
func (d *deployment) addresses() []string {
	var all []string
	for _, r := range d.replicas {
		if r.streams != "" {
			all = append(all, r.streams)
		}
	}
	return all
}

// awaitStreams returns when a node reaches a Service of the replicas. On a node that has joined or booted, kube-proxy and the pods' network take seconds
// longer than the API server, which needs neither. A replica without an aggregator refuses connections.
func (d *deployment) awaitStreams(ctx context.Context, node container) error {
	addresses := d.addresses()
	if len(addresses) == 0 {
		return nil
	}
	return until(ctx, 10*readyPoll, "wait until "+string(node)+" reaches the aggregators", func(ctx context.Context) (err error) {
		for _, address := range addresses {
			ip, port, _ := net.SplitHostPort(address) // made by serveStreams
			if _, err = node.exec(ctx, "timeout", "1", "bash", "-c", `exec 3<>"/dev/tcp/$0/$1"`, ip, port); err == nil || strings.Contains(err.Error(), "refused") {
				return nil
			}
		}
		return err
	})
}

// streams are the ways of a node's reporter to the replicas of the aggregator. Existing connections have the address of a pod in the packet filter: which
// Service they were made to is known to conntrack.
func (ls *links) streams(w way) ([]way, error) {
	var all []way
	for i, address := range ls.deployment.addresses() {
		ip, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		w.filter, w.nat, w.upstream, w.part = "OUTPUT", "OUTPUT", address, "-"+strconv.Itoa(i+1)
		w.match = []string{"--dport", port, "-m", "conntrack", "--ctorigdst", ip, "-m", "owner", "--uid-owner", strconv.Itoa(uidReporter)}
		w.held = []string{"dst", ip, "and", "dport", "=", ":" + port}
		ways, err := ls.onNode(w)
		if err != nil {
			return nil, err
		}
		all = append(all, ways...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no link from reporter to aggregator: expected connectivity stream")
	}
	return all, nil
}
