// Package operand is the cluster around an operator: a program that meets the cluster through the API alone. It does what installer, kubelets and storage
// migrator do in OpenShift:
//
//   - Installer gives nodes the encryption configuration that the operator wants, as a revision of the API server's pod.
//   - Migrator writes the objects anew that a StorageVersionMigration names.
//   - Preflight runs the program of a pre-flight pod and shows its end as the pod's phase.
//
// It also has, as functions without a client, what scenarios do to this cluster: configurations that an administrator writes, rollbacks, log-ins of plugins,
// images that do not exist, and writes of other clients to the operator's CR.
//
// What a node's pod is made of is the backend's: see Pods. Objects have the names and shapes of OpenShift's (library-go, pkg/operator/encryption).
package operand
