package server

import (
	"sync"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// maxRelabelled is how many ciphertexts are remembered; the oldest are forgotten.
const maxRelabelled = 4096

// relabelled remembers the true key_ids of ciphertexts that left with a false one. A plugin behind the server may compare the key_id of a
// Decrypt with its own: it is given the true one, so that a fault which falsifies key_ids costs no data. The zero value is empty.
type relabelled struct {
	mu      sync.Mutex
	trueIDs map[string]string // by digest of the ciphertext
	order   []string
}

// note remembers an answer that names another key_id than the plugin did.
func (r *relabelled) note(sent any, trueID string) {
	e, ok := sent.(*kmsapi.EncryptResponse)
	if !ok || e.KeyId == trueID || trueID == "" {
		return
	}
	digest := journal.Digest(e.Ciphertext)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trueIDs == nil {
		r.trueIDs = map[string]string{}
	}
	if _, known := r.trueIDs[digest]; !known {
		r.order = append(r.order, digest)
	}
	r.trueIDs[digest] = trueID
	if len(r.order) > maxRelabelled {
		delete(r.trueIDs, r.order[0])
		r.order = r.order[1:]
	}
}

// restored is a request with the key_id that the plugin gave to its ciphertext.
func (r *relabelled) restored(req any) any {
	d, ok := req.(*kmsapi.DecryptRequest)
	if !ok {
		return req
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trueIDs) == 0 {
		return req
	}
	trueID, known := r.trueIDs[journal.Digest(d.Ciphertext)]
	if !known {
		return req
	}
	return &kmsapi.DecryptRequest{Ciphertext: d.Ciphertext, Uid: d.Uid, KeyId: trueID, Annotations: d.Annotations}
}
