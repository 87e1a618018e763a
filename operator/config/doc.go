// Package config reads the cluster's APIServer configuration (config.openshift.io/v1) as the encryption that is wanted: its type, and
// for KMS the provider with its settings.
//
// What lives here: the table of providers, validation, and the hashes by which configurations are told apart. What does not: keys,
// revisions and what is done about it all (operator/core). It is pure.
//
// The API knows Vault alone. The other providers come in by an annotation of the same object, in the form in which the field would
// have them: see Annotation.
package config
