// Package trace follows envelope operations through a history: from the line in kube-apiserver's log and the API request behind it,
// over the call in the plugin's journal, to the record of the remote KMS. They are joined by the uid that the API server made (KEP-3130),
// and objects are joined to the operation that sealed their key.
//
// What cannot be joined is kept, with the reason. What lives here: joining, finding, and printing, all of it pure. What does not: whether a
// missing hop is a fault (invariant UID of harness/check), recording (harness/record), OpenTelemetry (harness/trace/otlp).
package trace
