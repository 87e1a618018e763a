// Package objects makes what a scenario finds in a cluster: it installs manifests, recreates the objects that a system under test reads or writes, deletes
// the data of earlier scenarios, and proves that every API server is ready, encrypts, and keeps reporters to their own entries.
package objects
