// Package trace follows envelope operations through a history: from the line in kube-apiserver's log and its API
// request, over the call in the plugin's journal, to the record of the remote KMS. It joins them by the uid that the
// API server made (KEP-3130), and joins objects to the operation that sealed their key.
//
// It keeps records that cannot be joined, with the reason. It joins, finds and prints, and is pure. The invariant UID
// of harness/check judges a missing hop; harness/record records; harness/trace/otlp writes OpenTelemetry traces.
package trace
