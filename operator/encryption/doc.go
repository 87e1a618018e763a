// Package encryption says in which order the encryption of a cluster is switched, so that nothing is lost.
//
// What lives here: the providers of an encryption configuration by type and key, ordered lists of them, the stages from one
// list to another, and what makes a list unfit to follow another one. It is pure. What does not: sockets and key material
// (harness/controlplane), who writes the configurations and when (the backends).
package encryption
