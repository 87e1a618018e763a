package advertise

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// Endpoints follows the EndpointSlices of the Service kubernetes, in which each API server is an endpoint as long as it is ready.
type Endpoints struct {
	factory informers.SharedInformerFactory
	lister  discoverylisters.EndpointSliceLister
	ready   atomic.Pointer[[]netip.AddrPort]
}

// NewEndpoints returns Endpoints without addresses. Run reads them. The client needs the verbs list and watch for endpointslices in the
// namespace default.
func NewEndpoints(client kubernetes.Interface) (*Endpoints, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceDefault),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = discoveryv1.LabelServiceName + "=kubernetes" }))
	slices := factory.Discovery().V1().EndpointSlices()
	e := &Endpoints{factory: factory, lister: slices.Lister()}
	_, err := slices.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.update() },
		UpdateFunc: func(any, any) { e.update() },
		DeleteFunc: func(any) { e.update() },
	})
	if err != nil {
		return nil, fmt.Errorf("follow EndpointSlices of the Service kubernetes: %w", err)
	}
	return e, nil
}

// Run follows the EndpointSlices until ctx ends. Then no goroutine is left.
func (e *Endpoints) Run(ctx context.Context) {
	e.factory.Start(ctx.Done())
	<-ctx.Done()
	e.factory.Shutdown()
}

// Ready returns the addresses of all ready API servers. It is Ready of Options.
func (e *Endpoints) Ready() []netip.AddrPort {
	if ready := e.ready.Load(); ready != nil {
		return *ready
	}
	return nil
}

// At returns the addresses of all ready API servers with another port: that of the proxy in front of each. It is Ready of Options.
func (e *Endpoints) At(port uint16) []netip.AddrPort {
	ready := slices.Clone(e.Ready())
	for i := range ready {
		ready[i] = netip.AddrPortFrom(ready[i].Addr(), port)
	}
	return slices.Compact(ready)
}

func (e *Endpoints) update() {
	all, err := e.lister.List(labels.Everything())
	if err != nil {
		return // the lister reads a cache, and has no errors
	}
	ready := readyAddresses(all)
	e.ready.Store(&ready)
}

// readyAddresses returns the addresses of all endpoints that are ready, with the port named https, sorted.
func readyAddresses(all []*discoveryv1.EndpointSlice) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, s := range all {
		port, ok := httpsPort(s.Ports)
		if !ok {
			continue
		}
		for _, endpoint := range s.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && !*ready { // nil means ready
				continue
			}
			for _, text := range endpoint.Addresses {
				if ip, err := netip.ParseAddr(text); err == nil { // not a domain name
					addresses = append(addresses, netip.AddrPortFrom(ip, port))
				}
			}
		}
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	return slices.Compact(addresses)
}

func httpsPort(ports []discoveryv1.EndpointPort) (uint16, bool) {
	for _, p := range ports {
		if p.Name != nil && *p.Name == "https" && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}
