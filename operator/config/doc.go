// Package config reads the requested encryption from the cluster's APIServer configuration (config.openshift.io/v1):
// its type, and for KMS the provider with its settings.
//
// It has the table of providers, the validation, and the hashes that distinguish configurations. Keys, revisions and
// decisions are in operator/revision and operator/core. The package is pure.
//
// The API has a section for Vault only. The other providers use an annotation of the same object, in the form that such
// a section would have: see Annotation.
package config
