// Package proxy is the program kmsharness-proxy: one netfault.Link with one fault, for places that the harness itself is not in, such
// as the network of a node's container.
//
// What lives here: flags, the file that says that it listens, an end by signal. What does not: the fault (package
// netfault), and how connections come to the proxy (packet filters, harness/backend/kind). There is no control API: another
// fault is another proxy.
package proxy
