// Package virtualcluster runs controllers, operators and KMS plugins against a Kubernetes control plane in memory and in virtual time. Hours pass
// in seconds, and faults come at exact instants. The same seed gives the same run.
//
//	virtualcluster.Run(t, virtualcluster.Options{}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
//		config, err := c.Host("controller").Config("cp-1")   // a *rest.Config for client-go
//		…                                                     // start the controller with ctx
//		err = c.Inject(ctx, virtualcluster.APIServerDown{Name: "cp-1"})
//		time.Sleep(5 * time.Minute)                           // takes no real time
//		err = c.Heal(ctx)
//	})
//
// A cluster has one store, one or more API servers on it, a load balancer in front of them, and a network of named hosts. Programs are goroutines
// of the test. They reach everything through a Host, and so a link between two hosts can be cut.
//
// # What is served
//
// API servers serve get, list, watch, create, update, patch (apply, merge, JSON), delete and deletecollection over TLS and HTTP/2, with
// resourceVersion, finalizers, preconditions, dry run, bookmarks, discovery, RBAC, ValidatingAdmissionPolicies and audit lines. Encryption at rest is
// kube-apiserver's own code, KMS v2 included. Resources are
//
//   - CRDs of Options.CRDs, with pruning, defaults, validation with CEL rules, server-side apply and status by their schema
//   - core/v1: configmaps, endpoints, events, namespaces, nodes, persistentvolumeclaims, persistentvolumes, pods, secrets, serviceaccounts, services
//   - apps/v1: daemonsets, deployments, replicasets, statefulsets; batch/v1: cronjobs, jobs; policy/v1: poddisruptionbudgets;
//     networking.k8s.io/v1: ingresses, networkpolicies; discovery.k8s.io/v1: endpointslices; events.k8s.io/v1: events
//   - admissionregistration.k8s.io/v1: validatingadmissionpolicies, validatingadmissionpolicybindings; apiextensions.k8s.io/v1: customresourcedefinitions;
//     apiregistration.k8s.io/v1: apiservices; authorization.k8s.io/v1: subjectaccessreviews; coordination.k8s.io/v1: leases;
//     flowcontrol.apiserver.k8s.io/v1: flowschemas, prioritylevelconfigurations; migration.k8s.io/v1alpha1 and storagemigration.k8s.io/v1: storageversionmigrations;
//     rbac.authorization.k8s.io/v1: roles, rolebindings, clusterroles, clusterrolebindings
//   - all that Options.Resources names
//
// Only CRDs have a schema. Every other resource is stored as it is sent: without validation, defaults and generation. A manager that applies one
// owns its lists as a whole, and a strategic merge patch is carried out as a merge patch.
//
// # Rules for programs
//
//   - No real socket, pipe or child process: a goroutine that waits for one stops the clock. Listen and dial on a Host. Servers of metrics and
//     health checks must be off, or listen on a Host. Files are harmless.
//   - No mutex is held while its holder sleeps or waits for the network or a channel: a goroutine that waits for the mutex stops the clock.
//     A manager of controller-runtime needs a RESTMapper that was made before (ci/outside/testdata/module/manager_test.go.txt).
//   - Every goroutine ends when ctx does. One that does not fails the test.
//   - A clock that stands still for 30 s of real time ends the process, with the stacks of the goroutines that hold it up.
//   - Channels, timers and tickers are made within Run. A global that was made outside, or has timers, must not be waited for.
//   - GOMAXPROCS is 1, and t.Parallel is of no use. For more cores, run more processes.
//   - The run depends on the seed alone if the program does: ranging over a map, or goroutines of one instant that race, may change it.
//     client-go calls the event handlers of one informer in the order of a map. It shows if they share a client that is rate-limited.
//
// # What it cannot do
//
// There are no controllers, no scheduler, no kubelet, no garbage collection by owner references and no life cycle of namespaces: namespaces need not
// exist. CRDs that are created through the API are stored and not served. Of a CRD with several served versions New accepts none, as nothing converts.
// Field selectors know metadata.name and metadata.namespace, and a policy's selector of namespaces the label kubernetes.io/metadata.name. Webhooks are not called. Service accounts have no tokens; use Host.ConfigAs. Lists
// are not divided into pages. Priority and fairness, the watch cache and etcd's quorum do not exist. A goroutine cannot be paused: HostFrozen stops its
// connections, and its timers go on.
package virtualcluster
