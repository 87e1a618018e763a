package history

// Secrecy is a search of a log or a journal for bytes of objects. One without a Form tells how much was searched in all.
type Secrecy struct {
	Log string `json:"log"` // the source of its events: "log/cp-1", "audit/cp-1", "journal/cp-1/1", "remote-kms"
	// Lines were searched so far, for so many Values.
	Lines  int `json:"lines"`
	Values int `json:"values"`
	// Object whose bytes were found, of What ("value", "ciphertext"), printed as Form ("hex", "base64" …).
	Object string `json:"object,omitempty"`
	What   string `json:"what,omitempty"`
	Form   string `json:"form,omitempty"`
}
