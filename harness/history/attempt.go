package history

// Attempt is a stream that a scenario attempted, and how the aggregator answered. Attempts at an API server are requests of its audit log.
type Attempt struct {
	As          string `json:"as"`                    // node whose reporter's certificate was used
	Certificate string `json:"certificate,omitempty"` // what was shown in its place
	Node        string `json:"node,omitempty"`        // that the client called its own
	Code        string `json:"code"`                  // of gRPC; OK: the stream stood
	Message     string `json:"message,omitempty"`
}
