// Package apiserver is a kube-apiserver in memory: HTTP on the store, for clients that expect a real one. Several servers share a Cluster.
//
// It answers get, list, watch (initial events, bookmarks, 410), create, update, Server-Side Apply, merge and JSON patches, delete with
// finalizers and preconditions, selectors, discovery and health, and writes audit lines as kube-apiserver does. What it does not do, it
// refuses: tables, CBOR, proxying.
package apiserver
