// Package encryption orders the changes of a cluster's encryption so that no object is lost.
//
// It has the providers of an encryption configuration by type and key, ordered lists of them, the stages from one list
// to another, and the check whether a list may follow another one. It is pure. Sockets and key material are in
// harness/controlplane; the backends write the configurations.
package encryption
