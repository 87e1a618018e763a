// Package publish writes a report to the operator's CR: one Server-Side Apply to the status subresource, under the
// node's own field manager, with a deadline. What to write and when is decided in reporter/core.
//
// It speaks to the API server through client-go's REST client alone. A typed clientset would pull in every API type
// and cost a reporter more memory than all the rest of it.
package publish
