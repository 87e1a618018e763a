// Package proxy is the program kmsharness-proxy: one netfault.Link with one fault, for networks that the harness is not
// part of, such as that of a node's container.
//
// It has the flags, the file that shows that the proxy listens, and the end by a signal. The fault is in package
// netfault; packet filters of harness/backend/kind direct connections to the proxy. There is no control API: another
// fault needs another proxy.
package proxy
