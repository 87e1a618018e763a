// Package operand is the cluster around an operator under test: an operator that is a program of its own, and that meets the cluster through
// the API alone. It does what installer, static pods and storage migrator do in OpenShift:
//
//   - Installer rolls the encryption configuration that the operator wants out to one node after another, as a revision of the API server's pod.
//   - Migrator writes the objects anew that a StorageVersionMigration names.
//   - Preflight runs the check of a pre-flight pod and writes its result into the pod's conditions.
//
// What a node's pod is made of is the backend's: see Pods. Objects have the names and shapes of OpenShift's (library-go, pkg/operator/encryption).
package operand
