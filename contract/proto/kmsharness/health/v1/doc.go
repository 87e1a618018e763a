// Package healthv1 is the Go code of health.proto, the protocol of reporters that stream: make proto writes it.
package healthv1
