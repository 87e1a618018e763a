// Package requests writes audit events for API requests, where the API server's own audit log cannot be read. A Transport
// is put into a client or a proxy; it writes each request to a log that harness/record/audit reads.
//
// The events have what the checker needs and no more: the body of writes to the objects that reports and rollups are on,
// the answer's code and reason, the resource version. What an API server would have logged at the level Metadata has no
// body here either. The package decides neither which requests matter nor who sent them.
package requests
