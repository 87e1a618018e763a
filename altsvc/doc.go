// Package altsvc makes HTTP Alternative Services (RFC 7838) usable for clients of the Kubernetes API.
//
// An API server lists the addresses of all ready API servers in the Alt-Svc field of its responses. A wrapped client sends
// its requests to one of them directly, moves to the next one when it fails, and returns to the load balancer when none is
// left. Without the field a wrapped client behaves like a plain one.
//
// Wrap adds this to a rest.Config, New to any http.RoundTripper. Parse reads the field. The choice of an alternative is a
// function of what is known and of the time (table.go). The package imports nothing of this module. Its subpackage advertise
// is the server's part.
package altsvc
